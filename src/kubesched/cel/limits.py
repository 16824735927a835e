"""Bounds on what an expression may build.

Upstream counts the cost of a call after it was made, and lets a few functions make results that are
far larger than what they cost. A result of this size could not be used for anything: to read it
once costs more than the limit. So making it counts as exceeding the limit.
"""

from __future__ import annotations

from typing import Final

from kubesched.cel.values import CostLimitExceeded

MAX_LENGTH: Final = 10_000_000


def checked_length(length: int) -> None:
    """Refuse to build a string or a list of this length if it is too long."""
    if length > MAX_LENGTH:
        raise CostLimitExceeded
