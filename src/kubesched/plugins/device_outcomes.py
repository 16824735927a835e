"""Whether claims can be served, for everything that nodes see: searched once, and cached.

    what a node sees ──> its device signature ──> searched before? ──> the same outcome
                                                  └── no: Search

An outcome holds for a node until a device is taken, given back, or published anew in a pool that it
sees. Outcomes are also cached by signature, as *places* among the devices that a node sees, so
that equal nodes are searched once. Which devices a claim gets is decided for the node that
wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kubesched.cluster.arrays import Int32Array, Int64Array, grown
from kubesched.cluster.device_uses import PoolKey
from kubesched.cluster.devices import Devices
from kubesched.cluster.incremental import View
from kubesched.cluster.recent import Recent
from kubesched.cluster.visible_devices import NodeDevices, VisibleDevices
from kubesched.errors import require
from kubesched.plugins.device_ledger import Consumed, DeviceState
from kubesched.plugins.device_requests import (
    AllocationError,
    RequestCompiler,
    Wanted,
    WantedRequest,
)
from kubesched.plugins.device_rules import SearchRules
from kubesched.plugins.device_search import Pick, Search, SearchPausedError, Solution
from kubesched.plugins.node_signatures import DeviceSignature, NodeSignatures
from kubesched.plugins.search_budget import SearchBudget

#: What was found: nothing yet; a solution; none; none, but a driver contradicts itself; an error;
#: nothing in the time there is.
UNKNOWN, FITS, LACKS, INVALID, FAILS, LATE = range(6)
#: How many kinds of claims are cached, and how many signatures of nodes for each.
CACHED_KINDS: Final = 256
CACHED_SIGNATURES: Final = 4096
#: How many are looked at before the time is: that takes a few milliseconds.
AT_ONCE: Final = 1024
#: Nodes that see more devices have signatures that are too large to cache many of them.
MAX_SIGNED: Final = 1024

#: Messages of the others name devices or nodes.
_SHARED: Final = frozenset({FITS, LACKS, INVALID})

Codes = npt.NDArray[np.uint8]


class PlacedPick(NamedTuple):
    """A device that was chosen for a request, by its place among those that a node sees."""

    request: WantedRequest
    place: int
    share: Consumed | None


class SearchOutcome(NamedTuple):
    """What a search found."""

    code: int
    score: int = 0
    #: claim → its devices
    places: tuple[tuple[PlacedPick, ...], ...] = ()
    #: claim → for each request, the number of the alternative that was chosen
    chosen: tuple[tuple[int, ...], ...] = ()

    def on(self, visible: NodeDevices) -> Solution:
        """Return the devices on a node."""
        rows = visible.rows
        picks = tuple(
            [
                tuple([Pick(request, rows[place], share) for request, place, share in claim])
                for claim in self.places
            ]
        )
        return Solution(picks, self.chosen)


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
        #: number → what a search found, where one came to an end
        self._found: dict[int, SearchOutcome]
        #: the same by signature, for all nodes that will ever have it
        self._by_signature: Recent[DeviceSignature, SearchOutcome]
        self._signatures: NodeSignatures
        #: paused searches, and numbers whose search timed out
        self._paused: dict[int, Search]
        self._late: set[int]
        #: numbers in use without an outcome
        self._unknown: set[int]

    def rebuild(self) -> None:
        """Invalidate everything."""
        size = len(self._visible.by_number)
        self._signatures = NodeSignatures(self.wanted, self._visible, self._state)
        self._by_signature = Recent(CACHED_SIGNATURES)
        self.codes = np.zeros(size, dtype=np.uint8)
        self.scores = np.zeros(size, dtype=np.int64)
        self.errors, self._found = {}, {}
        self._paused, self._late = {}, set()
        in_use = enumerate(self._visible.by_number)
        self._unknown = {number for number, each in in_use if each is not None}

    def update(self, numbers: list[int], pools: list[PoolKey]) -> bool:
        """Invalidate the outcomes of nodes whose devices changed."""
        size = len(self._visible.by_number)
        if len(self.codes) > size:
            return False  # all nodes were looked at anew, and there are fewer numbers now
        if len(self.codes) < size:
            self.codes, self.scores = grown(self.codes, (size,)), grown(self.scores, (size,))
        for number in numbers:
            self._signatures.forget(number)
            self._forget(number)
        for key in pools:
            for number in self._visible.with_pool(key):
                self._forget(number)
        return True

    def _forget(self, number: int) -> None:
        if number < len(self.codes):
            self.codes[number] = UNKNOWN
            self.errors.pop(number, None)
            self._found.pop(number, None)
            self._paused.pop(number, None)
            self._late.discard(number)
            if self._visible.by_number[number] is not None:
                self._unknown.add(number)
            else:
                self._unknown.discard(number)

    def find(self, numbers: Int32Array | None, budget: SearchBudget) -> bool:
        """Search for numbers without an outcome; None means all of them.

        Returns False if the time of the attempt is up before that, in which case the next one goes
        on from there. A search that has taken too long by itself ends everything, here as in
        kube-scheduler. The view must be refreshed.
        """
        wanted, late = self._unknown, self._late
        if numbers is not None and (wanted or late):
            asked = set(numbers.tolist())
            wanted, late = wanted & asked, late & asked
        if late or not wanted:
            return True
        self.wanted.refresh()
        in_order, late_before = sorted(wanted), len(self._late)
        for start in range(0, len(in_order), AT_ONCE):
            # Each attempt makes some progress, however short its time.
            if start and budget.is_paused:
                return False
            if not self._find(in_order[start : start + AT_ONCE], budget):
                return False
            if len(self._late) > late_before:
                break
        if not self._unknown:
            # A set that once held thousands of numbers takes as long to look through as then.
            self._unknown = set()
        return True

    def _find(self, numbers: Sequence[int], budget: SearchBudget) -> bool:
        """Search for some numbers; return False if the time of the attempt is up before that."""
        for number, signature in self._signed(numbers):
            found = None if signature is None else self._by_signature.get(signature)
            if found is None:
                if budget.is_paused and number != numbers[0]:
                    return False
                found = self._search(number, budget)
                if found.code == UNKNOWN:
                    return False
                if signature is not None and found.code in _SHARED:
                    self._by_signature[signature] = found
            self._note(number, found)
            if found.code == LATE:
                self._late.add(number)
                break
        return True

    def _signed(self, numbers: Sequence[int]) -> list[tuple[int, DeviceSignature | None]]:
        """Return the numbers with their signatures, None for those that see too many devices."""
        at = self._visible.at
        small = [number for number in numbers if len(at(number).relevant) <= MAX_SIGNED]
        found = dict(zip(small, self._signatures.of(small), strict=True))
        return [(number, found.get(number)) for number in numbers]

    def _note(self, number: int, found: SearchOutcome) -> None:
        self.codes[number], self.scores[number] = found.code, found.score
        self._unknown.discard(number)
        if found.code in _SHARED:
            self._found[number] = found

    def _search(self, number: int, budget: SearchBudget) -> SearchOutcome:
        visible = self._visible.at(number)
        search = self._paused.pop(number, None) or Search(self.wanted, visible, self._state)
        try:
            found = budget.run(search)
        except AllocationError as impossible:
            self.errors[number] = impossible
            return SearchOutcome(FAILS)
        except SearchPausedError:
            if budget.is_spent(search):
                return SearchOutcome(LATE)
            self._paused[number] = search
            return SearchOutcome(UNKNOWN)
        if found is None:
            return SearchOutcome(INVALID if visible.has_invalid_pool else LACKS)
        place_of = {row: place for place, row in enumerate(visible.rows)}
        places = tuple(
            tuple(PlacedPick(pick.request, place_of[pick.row], pick.share) for pick in claim)
            for claim in found.picks
        )
        return SearchOutcome(FITS, found.score(self.wanted), places, found.chosen)

    def solution(self, number: int) -> Solution | None:
        """Return the devices for nodes on which the claims can be served; the view is current."""
        found = self._found.get(number)
        if found is None or found.code != FITS:
            return None
        return found.on(self._visible.at(number))

    def validate(self) -> None:
        """Search again for every cached outcome, and compare."""
        self._visible.refresh()
        self.refresh()
        in_use = {number for number, each in enumerate(self._visible.by_number) if each is not None}
        known = np.flatnonzero(self.codes).astype(np.int32)
        require(in_use - set(known.tolist()) == self._unknown, "the others have no outcome")
        late = np.flatnonzero(self.codes == LATE).tolist()
        require(set(late) == self._late, "numbers whose search timed out")
        require(self._paused.keys() <= self._unknown, "no outcome while a search is paused")
        self.wanted.refresh()
        for number in known.tolist():
            if self.codes[number] != LATE:
                self._validate(number)

    def _validate(self, number: int) -> None:
        """Search this node again, without the outcome of nodes with the same signature."""
        search = Search(self.wanted, self._visible.at(number), self._state)
        try:
            found = search.run()
        except AllocationError as impossible:
            require(str(self.errors[number]) == str(impossible), f"error of {number}")
            return
        require((self.codes[number] == FITS) == (found is not None), f"outcome for {number}")
        require(self.solution(number) == found, f"devices for {number}")
        score = 0 if found is None else found.score(self.wanted)
        require(self.scores[number] == score, f"score of {number}")


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
        self.state = state
        self._compiler = compiler
        #: what claims ask for → what was found
        self._known: Recent[tuple[bytes, ...], Outcomes] = Recent(CACHED_KINDS)
        #: classes as they were then
        self._position = self._classes.changes.position

    @property
    def rules(self) -> SearchRules:
        """The rules that follow from the feature gates."""
        return self.state.rules

    def of(self, asked: tuple[bytes, ...]) -> Outcomes:
        """Return the refreshed outcomes of claims with some requests."""
        if self._position != self._classes.changes.position:
            self._position = self._classes.changes.position
            self._known.clear()
        found = self._known.get(asked)
        if found is None:
            wanted = self._compiler.compile(asked)
            found = self._known[asked] = Outcomes(wanted, self.visible, self.state)
        self.visible.refresh()
        found.refresh()
        return found
