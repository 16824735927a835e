"""Finds differences that are due to the order of bindings in a burst.

A scheduler decides on pods in sequence and binds them concurrently, so the first decision may be
seen last. A decision that differs is evaluated again on states that the other scheduler may have
seen: without some of the bindings just before it, and with those just after it.

    … b c P d e …    P differs on a state with b and c
                     ├─ again without c, without b, without both: immediately
                     └─ again with d, with e, with both: once they have arrived

Bindings to one of the two nodes in question are the most likely cause, so those are tried even if
they are further away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubesched.cluster.cluster import Cluster
from kubesched.shadow.report import ShadowFinding

#: Bindings this close to each other may have been decided in another order.
BURST_S: Final = 0.5
#: This many neighbours of a decision are tried; others are too unlikely a cause, unless they are on
#: one of the nodes in question.
NEIGHBOURS: Final = 8
#: This many later bindings are waited for.
LATER: Final = 32


class ObservedBinding(NamedTuple):
    """An observed binding."""

    at: float
    uid: str
    node_name: str


class Doubt(Struct):
    """A difference that may still be due to the order."""

    finding: ShadowFinding
    #: tells whether both agree on the then current state
    agrees: Callable[[], bool]
    #: time after which it is reported as a difference
    until: float
    #: bindings just before it to the same node: the most likely causes
    on_theirs: list[str]
    #: bindings observed since
    later: list[ObservedBinding]


class Reordering:
    """Tracks recent bindings, and tries other orders."""

    def __init__(self, cluster: Cluster, on_finding: Callable[[ShadowFinding], None]) -> None:
        self._cluster = cluster
        self._on_finding = on_finding
        #: newest last
        self._recent: deque[ObservedBinding] = deque()
        self._doubts: list[Doubt] = []

    def seen_before(self, now: float) -> int:
        """Return the number of bindings just before now."""
        while self._recent and now - self._recent[0].at > BURST_S:
            self._recent.popleft()
        return len(self._recent)

    def report(self, finding: ShadowFinding, agrees: Callable[[], bool], now: float) -> None:
        """Report a difference: immediately if the order explains it, else when nothing can any
        more.
        """
        self.seen_before(now)
        recent = [each.uid for each in self._recent]
        on_theirs = [each.uid for each in self._recent if each.node_name in finding.theirs.nodes]
        left_away = [
            *_endings(recent),
            *_endings(on_theirs),
            *([uid] for uid in recent[-NEIGHBOURS:]),
        ]
        if any(self._agrees_without(uids, agrees) for uids in _distinct(left_away)):
            self._on_finding(replace(finding, by_order=True))
        else:
            self._doubts.append(Doubt(finding, agrees, now + BURST_S, on_theirs, []))

    def bound(self, uid: str, node_name: str, now: float) -> None:
        """Add a binding that was just applied, and evaluate open doubts again."""
        self.flush(now)
        self._recent.append(ObservedBinding(now, uid, node_name))
        for doubt in list(self._doubts):
            if doubt.finding.uid == uid:
                continue
            doubt.later.append(self._recent[-1])
            if self._resolves(doubt):
                self._doubts.remove(doubt)
                self._on_finding(replace(doubt.finding, by_order=True))
            elif len(doubt.later) >= LATER:
                self._doubts.remove(doubt)
                self._on_finding(doubt.finding)

    def flush(self, now: float | None = None) -> None:
        """Report differences that no binding can explain any more; all of them without a time."""
        over = [each for each in self._doubts if now is None or now > each.until]
        for doubt in over:
            self._doubts.remove(doubt)
            self._on_finding(doubt.finding)

    def _resolves(self, doubt: Doubt) -> bool:
        """Tell whether both agree after undoing some of the bindings since."""
        own, newest = doubt.finding.uid, doubt.later[-1]
        left_away: list[list[str]] = []
        if len(doubt.later) <= NEIGHBOURS:
            others = [each.uid for each in doubt.later[:-1]]
            left_away += [own], [own, *others]
        best = doubt.finding.ours.nodes
        if newest.node_name in best:
            elsewhere = [each.uid for each in doubt.later if each.node_name not in best]
            left_away += [own, *elsewhere], [own, *elsewhere, *doubt.on_theirs]
        return any(self._agrees_without(uids, doubt.agrees) for uids in _distinct(left_away))

    def _agrees_without(self, uids: Collection[str], agrees: Callable[[], bool]) -> bool:
        with self._cluster.transaction() as tx:
            for uid in uids:
                tx.remove(uid)
            return agrees()


def _endings(uids: list[str]) -> list[list[str]]:
    """Return all suffixes, the shortest first."""
    return [uids[-count:] for count in range(1, min(len(uids), NEIGHBOURS) + 1)]


def _distinct(sets: Iterable[Iterable[str]]) -> Iterable[frozenset[str]]:
    return dict.fromkeys(map(frozenset, sets))
