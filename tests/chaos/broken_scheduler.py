"""The scheduler with a bug, to see whether the judge finds it.

python -m tests.chaos.broken_scheduler BUG --config=…
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Final

from kubesched.cli import kube_scheduler
from kubesched.cluster.device_uses import DeviceUses, Results
from kubesched.cluster.pod_info import PodInfo
from kubesched.queue.scheduling_queue import SchedulingQueue


def lose_pods() -> None:
    """Do not queue every eighth pod, as if its event had been lost for good."""
    add = SchedulingQueue.add

    def adding(self: SchedulingQueue, info: PodInfo) -> None:
        if int(info.uid[-1], 16) % 8:
            add(self, info)

    SchedulingQueue.add = adding  # type: ignore[method-assign]


def forget_devices() -> None:
    """Do not count devices that are allocated."""

    def counting(self: DeviceUses, results: Results) -> None:
        """Count nothing."""

    DeviceUses.take = DeviceUses.give_back = counting  # type: ignore[method-assign]


BUGS: Final[Mapping[str, Callable[[], None]]] = {
    "loses pods": lose_pods,
    "forgets devices": forget_devices,
}


if __name__ == "__main__":
    BUGS[sys.argv[1]]()
    sys.exit(kube_scheduler.main(sys.argv[2:]))
