"""The scheduler as a process that says what it holds, for tests of its memory.

    python -m tests.integration.weighed_scheduler FILE --config=…

On SIGUSR1 it appends a line of JSON to the file: what was left in reference cycles since the last
time, by type, and how many blocks of memory Python has handed out. Its watches last a second or
two instead of minutes, so that a day's worth of them fits into a test.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from kubesched.cli import kube_scheduler
from kubesched.client import informer

WATCH_SECONDS = (1, 2)


def weigh_into(file: Path) -> None:
    """Weigh on SIGUSR1, until the end of the process."""

    def weigh(_signal: int, _frame: FrameType | None) -> None:
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        cycles = Counter(
            f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage
        )
        gc.garbage.clear()
        gc.collect()
        weight = {"cycles": cycles, "blocks": sys.getallocatedblocks()}
        with file.open("a") as sink:
            sink.write(json.dumps(weight) + "\n")

    signal.signal(signal.SIGUSR1, weigh)


if __name__ == "__main__":
    informer._WATCH_TIMEOUT_S = WATCH_SECONDS
    weigh_into(Path(sys.argv[1]))
    sys.exit(kube_scheduler.main(sys.argv[2:]))
