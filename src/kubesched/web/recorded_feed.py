"""The decisions of a recording, and what was decided before any of its entries.

entries ──> checkpoint · first listing · decisions among changes
                         │               └── where time travel goes from one to the next
                         └── time travel begins after it
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np

from kubesched.recording.entries import (
    AnyEntry,
    Asking,
    CheckpointEnd,
    Configured,
    Decided,
    GroupDecided,
    MemberDecided,
    Put,
    Raised,
)
from kubesched.recording.entries import Pending as PendingEntry
from kubesched.recording.reader import Recording
from kubesched.web.report import DecisionsTold, DecisionTold
from kubesched.web.times import rfc3339


class RecordedFeed:
    """All decisions of a recording, in order; reading it takes a moment."""

    def __init__(self, recording: Recording) -> None:
        first, entries = recording.state()
        self._recording = recording
        #: positions at which a decision has just been made, and the decisions; the members of a
        #: group have the same position
        self.positions: list[int] = []
        self._told: list[DecisionTold] = []
        #: uid → when it was first seen pending, in milliseconds
        self._seen: dict[str, int] = {}
        #: uid → namespace/name of pods and claims
        self._names: dict[str, str] = {}
        listing = _Listing()
        number, in_checkpoint = first, True
        for entry in entries:
            if isinstance(entry, CheckpointEnd):
                in_checkpoint = False
                continue
            self._note_names(entry)
            if in_checkpoint:
                listing.is_over = True  # the state is there already
                continue
            if not listing.is_over:
                listing.read(entry, number)
            number += 1
            for told in self._decisions(entry, number):
                self.positions.append(number)
                self._told.append(told)
        #: position after the first listing: before it, the cluster is not complete
        self.start = listing.end if listing.is_over else first

    def name_of(self, uid: str) -> str:
        """Return namespace/name of a pod or claim; its uid, if it was never seen."""
        return self._names.get(uid, uid)

    def before(self, position: int, limit: int) -> DecisionsTold:
        """Return the decisions made before a position, newest first."""
        end = self.count(position)
        return DecisionsTold(tuple(reversed(self._told[max(end - limit, 0) : end])), end)

    def count(self, position: int) -> int:
        """Return the number of decisions up to a position."""
        return bisect_right(self.positions, position)

    def previous(self, position: int) -> int | None:
        """Return the last position before this one at which a decision was made."""
        at = bisect_left(self.positions, position)
        return self.positions[at - 1] if at else None

    def next(self, position: int) -> int | None:
        """Return the first position after this one at which a decision was made."""
        at = bisect_right(self.positions, position)
        return self.positions[at] if at < len(self.positions) else None

    def timeline(self, buckets: int) -> tuple[int, ...]:
        """Return the number of decisions in each of several equal parts of the positions."""
        span = (self.start, max(self._recording.entries, self.start + 1))
        counts, _ = np.histogram(self.positions, bins=buckets, range=span)
        return tuple(counts.tolist())

    def steps(self, most: int) -> tuple[int, ...]:
        """Return positions of decisions, all or so many of them evenly chosen."""
        every = sorted(set(self.positions))
        if len(every) <= most:
            return tuple(every)
        chosen = np.linspace(0, len(every) - 1, most).round().astype(int)
        return tuple(every[each] for each in chosen.tolist())

    # --- inside -----------------------------------------------------------------------------

    def _note_names(self, entry: AnyEntry) -> None:
        if isinstance(entry, PendingEntry):
            meta = entry.pod.metadata
            self._seen.setdefault(meta.uid, entry.at)
        elif isinstance(entry, Put) and entry.kind in ("Pod", "ResourceClaim"):
            meta = entry.object.metadata
        else:
            return
        self._names[meta.uid] = f"{meta.namespace}/{meta.name}"

    def _decisions(self, entry: AnyEntry, number: int) -> Iterator[DecisionTold]:
        if isinstance(entry, Decided):
            yield self._decision(
                entry, number, entry.at, evaluated=entry.evaluated, feasible=entry.feasible
            )
        elif isinstance(entry, GroupDecided):
            for member in entry.members:
                yield self._decision(member, number, entry.at)

    def _decision(
        self,
        decided: Decided | MemberDecided,
        number: int,
        at: int,
        *,
        evaluated: int | None = None,
        feasible: int | None = None,
    ) -> DecisionTold:
        began = self._seen.get(decided.uid)
        return DecisionTold(
            number=number,
            time=rfc3339(self._recording.time_of(at).timestamp()),
            namespace=decided.namespace,
            name=decided.name,
            node=decided.node,
            message=decided.message,
            attempts=decided.attempt,
            evaluated=evaluated,
            feasible=feasible,
            waited_s=None if began is None else (at - began) / 1000,
        )


class _Listing:
    """Finds where the scheduler has listed the cluster, which begins with an empty checkpoint.

    A listing adds each object once; it ends with the first attempt, or when something else happens
    to an object than to be added.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.end = 0
        self._added: set[tuple[str, str]] = set()

    def read(self, entry: AnyEntry, number: int) -> None:
        """Read the next entry, whose position is before `number`."""
        self.end = number
        if isinstance(entry, Put):
            key = entry.kind, f"{entry.object.metadata.namespace}/{entry.object.metadata.name}"
        elif isinstance(entry, PendingEntry):
            key = "Pod", entry.pod.metadata.uid
        else:
            self.is_over = isinstance(entry, (Asking, Decided, GroupDecided, Raised, Configured))
            return
        self.is_over = key in self._added
        self._added.add(key)
