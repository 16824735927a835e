"""The scheduler with a leak, to see whether it is found: something of each pod stays.

python -m tests.soak.leaking_scheduler --config=…
"""

from __future__ import annotations

import sys
from typing import Final

from kubesched.cli import kube_scheduler
from kubesched.cluster.pod_info import PodInfo
from kubesched.queue.scheduling_queue import SchedulingQueue

LEAKED_BYTES: Final = 400_000


def leak() -> None:
    """Let the queue keep something of each pod for good."""
    add, kept = SchedulingQueue.add, list[bytes]()

    def adding(self: SchedulingQueue, info: PodInfo) -> None:
        kept.append(b"x" * LEAKED_BYTES)
        add(self, info)

    SchedulingQueue.add = adding  # type: ignore[method-assign]


if __name__ == "__main__":
    leak()
    sys.exit(kube_scheduler.main(sys.argv[1:]))
