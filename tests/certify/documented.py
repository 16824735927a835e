"""Differences that docs/differences.md has, recognised by rule.

A rule is named by the first cell of its row there; `test_documented` checks that the row exists.
"""

from __future__ import annotations

from typing import Final

EQUAL_VOLUMES: Final = "Equally large volumes for a claim"
NOMINATED_RETRY: Final = "A nominated pod whose victims terminate"

ALL: Final = (EQUAL_VOLUMES, NOMINATED_RETRY)
