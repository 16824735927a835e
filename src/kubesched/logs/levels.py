"""klog's verbosity as levels of the standard library: V(0) is INFO, V(2) is DEBUG."""

from __future__ import annotations

import logging
from typing import Final

#: Verbosity of commands that are not daemons: only errors.
ERRORS_ONLY: Final = -1

_V1: Final = 15
_LOWEST: Final = 1


def verbose(verbosity: int) -> int:
    """Return the level of klog's V(n); a logger at that level shows V(0) to V(n)."""
    if verbosity <= ERRORS_ONLY:
        return logging.ERROR
    if verbosity == 0:
        return logging.INFO
    if verbosity == 1:
        return _V1
    return max(logging.DEBUG + 2 - verbosity, _LOWEST)


def verbosity_of(level: int) -> int:
    """Return the n of V(n) that a record of this level was logged with."""
    if level >= logging.INFO:
        return 0
    return 1 if level > logging.DEBUG else logging.DEBUG + 2 - level
