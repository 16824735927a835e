"""The scheduler with a system clock that the test sets.

    python -m tests.chaos.shifted_clock FILE --config=…

FILE holds the seconds by which the clock is off, as eight bytes. The monotonic clock goes on as
ever, as it does when the system's clock is set.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_SECONDS: Final = struct.Struct("d")


def set_clock(file: Path, off_s: float) -> None:
    """Set the clock of a scheduler that runs, or will."""
    # In place: a scheduler that runs has it mapped.
    with file.open("r+b" if file.exists() else "w+b") as shared:
        shared.write(_SECONDS.pack(off_s))


def shifted(file: Path) -> Callable[[], float]:
    """Return a clock that is as far off as a file says."""
    with file.open("rb") as shared:
        seconds = mmap.mmap(shared.fileno(), _SECONDS.size, access=mmap.ACCESS_READ)
    true_time = time.time

    def now() -> float:
        off_s: float = _SECONDS.unpack(seconds)[0]
        return true_time() + off_s

    return now


if __name__ == "__main__":
    # Before anything is imported that keeps the clock.
    time.time = shifted(Path(sys.argv[1]))
    from kubesched.cli import kube_scheduler

    sys.exit(kube_scheduler.main(sys.argv[2:]))
