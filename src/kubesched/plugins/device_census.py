"""How many devices there are for what claims ask for, and what speaks against the others.

The allocation decides whether claims can be served; this module counts the reasons. What a
device is excluded by is the ledger's answer, and how many devices can be had together the search's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

import numpy as np
from msgspec import Struct

from kubesched.api.resource import ResourceClaim
from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.visible_devices import NodeDevices, VisibleDevices
from kubesched.plugins.device_ledger import DeviceState, Ledger, Obstacle
from kubesched.plugins.device_requests import (
    MAX_RESULTS,
    AllocationError,
    Wanted,
    WantedClaim,
    WantedRequest,
)
from kubesched.plugins.device_search import Search, SearchPausedError

#: How often a search may check the clock: many thousands of steps.
_LOOKS = 64


class CountedRequest(Struct, frozen=True, eq=False):
    """One request, or one alternative of it, among some devices."""

    claim: int
    request: WantedRequest
    #: device → what excludes it; None for those that may serve the request
    obstacles: dict[int, Obstacle | None]
    #: why a selector has no answer, "" if all have one
    problem: str = ""

    @property
    def usable(self) -> list[int]:
        """The devices that may serve the request."""
        return [row for row, obstacle in self.obstacles.items() if obstacle is None]

    @property
    def wanted(self) -> int:
        """How many devices are requested."""
        if not self.request.is_all:
            return self.request.count
        asked_for = (Obstacle.NODE, Obstacle.SELECTOR)
        return sum(each not in asked_for for each in self.obstacles.values())

    @property
    def missing(self) -> int:
        """How many are missing, whether or not those that are there can be had together."""
        return max(self.wanted - len(self.usable), 0)


class DeviceCensus:
    """What speaks against devices for some claims, node by node."""

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        wanted: Wanted,
        visible: VisibleDevices,
        state: DeviceState,
        nodes: BoolArray,
    ) -> None:
        #: those that have no devices yet
        self.claims = claims
        self.table = state.table
        self._wanted = wanted
        self._visible = visible
        self._state = state
        #: the rows to explain
        self._nodes = nodes

    def rows_with_devices(self) -> dict[int, list[int]]:
        """Return the rows of nodes that see devices, by the number of what they see."""
        self._visible.refresh()
        self._wanted.refresh()
        found: dict[int, list[int]] = {}
        numbers = self._visible.of_row
        for row in np.flatnonzero(self._nodes).tolist():
            if self._visible.of(row).rows:
                found.setdefault(numbers.item(row), []).append(row)
        return found

    def sees(self, number: int) -> NodeDevices:
        """Return the devices that nodes with a number see."""
        return self._visible.at(number)

    def requests(self) -> Iterator[tuple[int, WantedRequest]]:
        """Return the requests, and alternatives of requests, with the numbers of their claims."""
        for number, claim in enumerate(self._wanted.claims):
            for group in claim.requests:
                for request in group:
                    yield number, request

    def count(self, number: int) -> list[CountedRequest]:
        """Count the devices that nodes with a number see, for each request by itself."""
        visible = self._visible.at(number)
        ledger = Ledger(self._wanted, visible, self._state)
        return [self._counted(claim, each, visible, ledger) for claim, each in self.requests()]

    def _counted(
        self, claim: int, request: WantedRequest, visible: NodeDevices, ledger: Ledger
    ) -> CountedRequest:
        obstacles: dict[int, Obstacle | None] = {}
        problem = ""
        for row in visible.rows:
            try:
                obstacles[row] = ledger.obstacle(claim, request, row)
            except AllocationError as failed:
                names = [each.metadata.name for each in self.claims]
                problem = problem or failed.message(names)
                obstacles[row] = Obstacle.SELECTOR
        return CountedRequest(claim, request, obstacles, problem)

    def most(self, number: int, counted: CountedRequest) -> int:
        """Return how many devices a request could have by itself, at most as many as it asks for.

        Fewer than are usable, if they cannot be had together: constraints, or shared counters.
        """
        if counted.request.is_all:
            return len(counted.usable)
        for count in range(min(counted.wanted, len(counted.usable), MAX_RESULTS), 0, -1):
            if self._is_possible(number, counted, count):
                return count
        return 0

    def _is_possible(self, number: int, counted: CountedRequest, count: int) -> bool:
        request = copy(counted.request)
        request.count = count
        claim = self._wanted.claims[counted.claim]
        alone = Wanted((WantedClaim(((request,),), (False,), claim.constraints),))
        looks = iter(range(_LOOKS))
        search = Search(alone, self._visible.at(number), self._state)
        try:
            return search.run(lambda: next(looks, None) is None) is not None
        except (AllocationError, SearchPausedError):
            return False
