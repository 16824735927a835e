"""Bounds on what an expression may build.

Upstream counts the cost of a call after it was made, and lets a few functions make results that
are far larger than what they cost. Results of this size could not be used for anything: to read
them once costs more than the limit. So making them counts as exceeding the limit.
"""

from __future__ import annotations

from typing import Final

from kubesched.cel.values import CostLimitExceeded

_MAX_CHARACTERS: Final = 10_000_000
_MAX_ELEMENTS: Final = 1_000_000


def check_characters(count: int) -> None:
    """Refuse to build a string of this length if it is too long."""
    if count > _MAX_CHARACTERS:
        raise CostLimitExceeded


def check_elements(count: int) -> None:
    """Refuse to build, or to go through, a list of this length if it is too long."""
    if count > _MAX_ELEMENTS:
        raise CostLimitExceeded
