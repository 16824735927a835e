"""The state of one evaluation: the device, local variables, and the cost so far."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.cel.device import CelDevice
from kubesched.cel.values import CostLimitExceeded, Value


class Frame:
    """One evaluation."""

    __slots__ = ("cost", "device", "limit", "slots")

    def __init__(self, device: CelDevice, slots: int, limit: int) -> None:
        self.device = device
        self.slots: list[Value] = [None] * slots
        self.cost = 0
        self.limit = limit

    def charge(self, cost: int) -> None:
        """Add to the cost; beyond the limit, the evaluation ends."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded


Evaluate = Callable[[Frame], Value]
