"""The search for devices that serve claims together on one node: first fit, with backtracking.

    claim ──> request ──> alternative ──> device, device, … ──> next request ──> … ──> found
                  ^            ^             │ fails: the next device
                  └────────────┴─────────────┘ none left: one step back

Claims, requests and devices are tried in order, so that the first solution is the one that
kube-scheduler finds. A device that is like one that failed in the same place is not tried: if there
were a solution with it, exchanging the two would give one with the other.

Where alternatives ask for more devices than a claim may have, later ones, which ask for fewer, are
tried at once: that is an *overflow*, as opposed to a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import Enum, auto
from typing import Final, NamedTuple

from kubesched.cluster.visible_devices import NodeDevices
from kubesched.errors import KubeschedError
from kubesched.plugins.device_ledger import Consumed, DeviceState, Ledger, Undo
from kubesched.plugins.device_requests import MAX_RESULTS, AllocationError, Wanted, WantedRequest

#: How many devices are tried between two checks of the clock.
DEVICES_PER_LOOK: Final = 512
#: A request has so many alternatives at most; the first counts as much in the score.
MAX_ALTERNATIVES: Final = 8


class SearchPausedError(KubeschedError):
    """A search that was stopped, and can go on."""


class Pick(NamedTuple):
    """A device that was chosen for a request."""

    request: WantedRequest
    row: int
    #: what it takes of the device's capacities, if others may have the rest
    share: Consumed | None


class Solution(NamedTuple):
    """Devices for all claims."""

    #: claim → its devices
    picks: tuple[tuple[Pick, ...], ...]
    #: claim → for each request, the number of the alternative that was chosen
    chosen: tuple[tuple[int, ...], ...]

    def score(self, wanted: Wanted) -> int:
        """Return the sum over requests with alternatives: the earlier the choice, the more."""
        return sum(
            MAX_ALTERNATIVES - index
            for claim, chosen in zip(wanted.claims, self.chosen, strict=True)
            for index, is_choice in zip(chosen, claim.has_alternatives, strict=True)
            if is_choice
        )


class _Outcome(Enum):
    FOUND = auto()
    FAILED = auto()
    OVERFLOW = auto()


class _Position(NamedTuple):
    """What is to be done next."""

    claim: int
    request: int
    #: None to begin with the request
    wanted: WantedRequest | None = None
    #: number of the device among those of the request, and where to look for it
    device: int = 0
    start: int = 0


class _Claim:
    """Marks that all requests of a claim are served; an overflow after it is a failure."""

    __slots__ = ()


class _Choice:
    """Which alternative of a request is being tried."""

    __slots__ = ("at", "has_failed", "index")

    def __init__(self, at: _Position) -> None:
        self.at = at
        self.index = 0
        #: whether an alternative failed for another reason than that it requests too many devices
        self.has_failed = False


class _Slot:
    """One device of a request: which one is being tried."""

    __slots__ = ("at", "failed", "next", "taken", "wanted")

    def __init__(self, at: _Position, wanted: WantedRequest) -> None:
        self.at = at
        self.wanted = wanted
        #: where to look next
        self.next = at.start
        #: classes of devices that lead to no solution here
        self.failed: set[Hashable] = set()
        #: the device that is being tried, if there is one
        self.taken: list[Undo] = []


#: A slot means that its device is being searched.
_Step = _Position | _Outcome | _Slot


class Search:
    """One search on one node."""

    def __init__(
        self,
        wanted: Wanted,
        visible: NodeDevices,
        state: DeviceState,
    ) -> None:
        self._wanted = wanted
        self._visible = visible
        self._ledger = Ledger(wanted, visible, state)
        self._rules = state.rules
        #: what is to be done next; None before the beginning
        self._step: _Step | None = None
        #: how many devices were tried since the last check of the clock
        self._looked_at = 0
        #: how long the search has taken, written by the caller
        self.spent_s = 0.0
        #: for requests that ask for all devices, which ones these are
        self._all: dict[WantedRequest, list[int]] = {}
        self._picks: list[list[Pick]] = [[] for _ in wanted.claims]
        #: claim → request → number of the alternative that is being tried
        self._chosen = [[0] * len(claim.requests) for claim in wanted.claims]
        self._stack: list[_Claim | _Choice | _Slot] = []

    def run(self, is_over: Callable[[], bool] = lambda: False) -> Solution | None:
        """Return the first solution, None if there is none.

        Raises AllocationError if a claim cannot be served on any node, and SearchPausedError as
        soon as `is_over`: called again, the search resumes there.
        """
        step = self._step
        if step is None:
            self._prepare()
            step = _Position(0, 0)
        while step is not _Outcome.FOUND:
            if self._looked_at >= DEVICES_PER_LOOK:
                self._looked_at, self._step = 0, step
                if is_over():
                    raise SearchPausedError
            if isinstance(step, _Position):
                step = self._advance(step)
            elif isinstance(step, _Slot):
                step = self._try_next(step)
            elif self._stack:
                step = self._step_back(step)
            else:
                return None
        return Solution(tuple(map(tuple, self._picks)), tuple(map(tuple, self._chosen)))

    # --- before ---------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Check what can be checked of requests before devices are chosen."""
        for number, claim in enumerate(self._wanted.claims):
            least = 0
            for group in claim.requests:
                fewest = min(self._count(number, each) for each in group)
                if fewest > MAX_RESULTS - least:
                    raise AllocationError(
                        f", request {group[0].name}: adding {fewest} devices exceeds the claim "
                        f"limit of {MAX_RESULTS}, with {least} already accounted for",
                        claim=number,
                    )
                least += fewest
            for index, each in enumerate(claim.constraints):
                is_known = each.distinct_attribute is not None and not self._rules.is_stable
                if each.match_attribute is None and not is_known:
                    raise AllocationError(
                        f", constraint #{index}: empty constraint (unsupported constraint type?)",
                        claim=number,
                    )

    def _count(self, claim: int, request: WantedRequest) -> int:
        """Return how many devices a request needs."""
        if request.problem:
            raise AllocationError(request.problem, claim=claim)
        if not request.is_all:
            return request.count
        self._all[request] = self._find_all(claim, request)
        return len(self._all[request])

    def _find_all(self, claim: int, request: WantedRequest) -> list[int]:
        """Return the devices that a request for all devices needs."""
        found: list[int] = []
        for pool in self._visible.pools:
            if not pool.is_usable:
                state = "being updated" if pool.is_incomplete else "invalid"
                raise AllocationError(
                    f", request {request.own_name}: asks for all devices, but resource pool {pool} "
                    f"is currently {state}",
                    claim=claim,
                )
            # Whether enough of a device is left is checked later; if not, the whole request fails.
            found += [
                row
                for row in pool.rows
                if self._ledger.is_selectable(claim, request, row)
                and self._ledger.could_have_room(claim, request, row)
            ]
        if self._wanted.claims[claim].constraints:
            # Whether a constraint forbids one of them is an error, and which of them are taken by
            # then decides about it.
            self._ledger.tell_apart(found)
        return found

    # --- forward ----------------------------------------------------------------------------------

    def _advance(self, at: _Position) -> _Step:
        """Do what is to be done next."""
        if at.wanted is None:
            return self._begin(at)
        self._looked_at += 1
        wanted = at.wanted
        number = len(self._all[wanted]) if wanted.is_all else wanted.count
        if at.device == number:
            return _Position(at.claim, at.request + 1)
        if number - at.device > MAX_RESULTS - len(self._picks[at.claim]):
            return _Outcome.OVERFLOW
        slot = _Slot(at, wanted)
        self._stack.append(slot)
        return self._try_next(slot)

    def _begin(self, at: _Position) -> _Step:
        """Begin with a request, or with what comes after the last one."""
        claims = self._wanted.claims
        if at.claim == len(claims):
            return _Outcome.FOUND
        claim = claims[at.claim]
        if at.request == len(claim.requests):
            self._stack.append(_Claim())
            return _Position(at.claim + 1, 0)
        if claim.has_alternatives[at.request]:
            self._stack.append(_Choice(at))
        return self._begin_with(at, 0)

    def _begin_with(self, at: _Position, index: int) -> _Step:
        wanted = self._wanted.claims[at.claim].requests[at.request][index]
        self._chosen[at.claim][at.request] = index
        if wanted.is_all and not self._all[wanted]:
            return _Outcome.FAILED
        return _Position(at.claim, at.request, wanted)

    def _try_next(self, slot: _Slot) -> _Step:
        """Take the next device that will do; return the slot itself if it is time for a look."""
        is_taken = self._take_next(slot)
        if is_taken is None:
            return slot
        if is_taken:
            at = slot.at
            return _Position(at.claim, at.request, slot.wanted, at.device + 1, slot.next)
        self._stack.pop()
        return _Outcome.FAILED

    def _take_next(self, slot: _Slot) -> bool | None:
        if slot.wanted.is_all:
            return self._take(slot, self._all[slot.wanted][slot.at.device])
        rows, ledger, claim, wanted = self._visible.rows, self._ledger, slot.at.claim, slot.wanted
        while slot.next < len(rows):
            if self._looked_at >= DEVICES_PER_LOOK:
                return None
            self._looked_at += 1
            row = rows[slot.next]
            slot.next += 1
            if (
                not ledger.is_in_use(claim, wanted, row)
                and ledger.is_selectable(claim, wanted, row)
                and ledger.has_room(claim, wanted, row)
                and not (slot.failed and ledger.class_of(row) in slot.failed)
                and self._take(slot, row)
            ):
                return True
        return False

    def _take(self, slot: _Slot, row: int) -> bool:
        undo = self._ledger.take(slot.at.claim, slot.wanted, row)
        if undo is None:
            return False
        slot.taken.append(undo)
        self._picks[slot.at.claim].append(Pick(slot.wanted, row, undo.share))
        return True

    # --- back -------------------------------------------------------------------------------------

    def _step_back(self, outcome: _Outcome) -> _Step:
        """Go back to the last choice, after what followed it had this outcome."""
        last = self._stack[-1]
        if isinstance(last, _Claim):
            # With another choice for an earlier claim, a later one may be content with less.
            self._stack.pop()
            return _Outcome.FAILED
        if isinstance(last, _Choice):
            return self._try_alternative(last, outcome)
        undo = last.taken.pop()
        self._picks[last.at.claim].pop()
        self._ledger.give_back(undo)
        if outcome is _Outcome.OVERFLOW or last.wanted.is_all:
            self._stack.pop()
            return outcome
        last.failed.add(self._ledger.class_of(undo.row))
        return self._try_next(last)

    def _try_alternative(self, choice: _Choice, outcome: _Outcome) -> _Step:
        choice.has_failed = choice.has_failed or outcome is _Outcome.FAILED
        choice.index += 1
        at = choice.at
        if choice.index < len(self._wanted.claims[at.claim].requests[at.request]):
            return self._begin_with(at, choice.index)
        self._stack.pop()
        return _Outcome.FAILED if choice.has_failed else _Outcome.OVERFLOW
