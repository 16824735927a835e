"""Whether claims can be served, for everything that nodes see: found once, and remembered.

    claims that ask for a number of devices and no more:  enough of those that match are free?
    all others:                                           is there a solution? ──> Search

What was found holds until a device is taken, given back, or published anew, and then only for the
nodes that see its pool. Which devices a claim gets is decided for the node that wins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from kubesched.cluster.arrays import Int32Array, Int64Array, grown
from kubesched.cluster.device_uses import PoolKey
from kubesched.cluster.devices import Devices
from kubesched.cluster.incremental import View
from kubesched.cluster.recent import Recent
from kubesched.cluster.visible_devices import NodeDevices, VisibleDevices
from kubesched.errors import require
from kubesched.plugins.device_ledger import DeviceState
from kubesched.plugins.device_match import FAILED, NO, YES
from kubesched.plugins.device_requests import AllocationError, RequestCompiler, Wanted
from kubesched.plugins.device_search import Search, SearchTimeoutError, Solution

#: What was found: nothing yet; a solution; none; none, but a driver contradicts itself; an error.
UNKNOWN, FITS, LACKS, INVALID, FAILS = range(5)
#: So many kinds of claims are remembered.
REMEMBERED: Final = 256

Codes = npt.NDArray[np.uint8]


class Outcomes(View):
    """What was found about some claims, by the number of what nodes see."""

    derived = ("codes", "scores")

    def __init__(self, wanted: Wanted, visible: VisibleDevices, state: DeviceState) -> None:
        super().__init__(visible.changes, state.uses.changes)
        self.wanted = wanted
        self._visible = visible
        self._state = state
        #: number → what was found
        self.codes: Codes
        #: number → the score of the solution
        self.scores: Int64Array
        self.errors: dict[int, AllocationError]
        self._solutions: dict[int, Solution]
        #: numbers in use of which nothing is known
        self._unknown: set[int]

    def rebuild(self) -> None:
        """Forget everything."""
        size = len(self._visible.by_number)
        self.codes = np.zeros(size, dtype=np.uint8)
        self.scores = np.zeros(size, dtype=np.int64)
        self.errors, self._solutions = {}, {}
        in_use = enumerate(self._visible.by_number)
        self._unknown = {number for number, each in in_use if each is not None}

    def update(self, numbers: list[int], pools: list[PoolKey]) -> bool:
        """Forget what was found where devices are not as they were."""
        size = len(self._visible.by_number)
        if len(self.codes) < size:
            self.codes, self.scores = grown(self.codes, (size,)), grown(self.scores, (size,))
        for number in numbers:
            self._forget(number)
        for key in pools:
            for number in self._visible.with_pool(key):
                self._forget(number)
        return True

    def _forget(self, number: int) -> None:
        if number < len(self.codes):
            self.codes[number] = UNKNOWN
            self.errors.pop(number, None)
            self._solutions.pop(number, None)
            if self._visible.by_number[number] is not None:
                self._unknown.add(number)
            else:
                self._unknown.discard(number)

    def find(self, numbers: Int32Array | None, is_late: Callable[[], bool]) -> None:
        """Find out about numbers of which nothing is known, until time is up; None is all of them.

        The view must be refreshed.
        """
        unknown = self._unknown
        if unknown and numbers is not None:
            unknown = unknown & set(numbers.tolist())
        if not unknown:
            return
        self.wanted.refresh()
        for number in sorted(unknown):
            try:
                self.codes[number] = self._outcome(number, is_late)
            except SearchTimeoutError:
                return
            self._unknown.discard(number)

    def _outcome(self, number: int, is_late: Callable[[], bool]) -> int:
        visible = self._visible.at(number)
        fits = self._has_enough(visible)
        if fits is None:
            try:
                found = Search(self.wanted, visible, self._state, is_late=is_late).run()
            except AllocationError as impossible:
                self.errors[number] = impossible
                return FAILS
            fits = found is not None
            if found is not None:
                self._solutions[number] = found
                self.scores[number] = found.score(self.wanted)
        if fits:
            return FITS
        return INVALID if visible.has_invalid_pool else LACKS

    def _has_enough(self, visible: NodeDevices) -> bool | None:
        """Tell whether enough devices are free, if that is all there is to it; None if not."""
        counts = self.wanted.counts
        if counts is None or not self._state.rules.binding_conditions:
            return None
        table, uses = self._state.table, self._state.uses
        left = dict(counts)
        for row in visible.rows:
            is_counted = False
            for match in counts:
                state = match.at(row)
                if state == NO:
                    continue
                if state == FAILED or is_counted or not table.plain[row]:
                    # Which request gets it, or whether it is looked at, is a matter of order.
                    return None
                is_counted = True
                is_free = state == YES and row not in visible.unreachable
                if is_free and uses.of(table.keys[row]) is None:
                    left[match] -= 1
        return all(each <= 0 for each in left.values())

    def solution(self, number: int) -> Solution | None:
        """Return the devices for nodes on which the claims can be served; the view is current."""
        found = self._solutions.get(number)
        if found is None and self.codes[number] == FITS:
            self.wanted.refresh()
            visible = self._visible.at(number)
            found = Search(self.wanted, visible, self._state, is_late=lambda: False).run()
        return found

    def validate(self) -> None:
        """Find out again about everything that is known."""
        self._visible.refresh()
        self.refresh()
        anew = Outcomes(self.wanted, self._visible, self._state)
        anew.refresh()
        in_use = {number for number, each in enumerate(self._visible.by_number) if each is not None}
        known = np.flatnonzero(self.codes).astype(np.int32)
        require(in_use - set(known.tolist()) == self._unknown, "of the others nothing is known")
        anew.find(known, lambda: False)
        for number in known.tolist():
            require(self.codes[number] == anew.codes[number], f"outcome for {number}")
            require(self.scores[number] == anew.scores[number], f"score of {number}")


class OutcomeCache:
    """What was found about the kinds of claims that were seen last."""

    def __init__(
        self,
        devices: Devices,
        *,
        visible: VisibleDevices,
        state: DeviceState,
        compiler: RequestCompiler,
    ) -> None:
        self._classes = devices.classes
        self.visible = visible
        self._state = state
        self._compiler = compiler
        #: what claims ask for → what was found
        self._known: Recent[tuple[bytes, ...], Outcomes] = Recent(REMEMBERED)
        #: classes as they were then
        self._position = self._classes.changes.position

    def of(self, asked: tuple[bytes, ...]) -> Outcomes:
        """Return what is known about claims that ask for something, up to date."""
        if self._position != self._classes.changes.position:
            self._position = self._classes.changes.position
            self._known.clear()
        found = self._known.get(asked)
        if found is None:
            wanted = self._compiler.compile(asked)
            found = self._known[asked] = Outcomes(wanted, self.visible, self._state)
        self.visible.refresh()
        found.refresh()
        return found
