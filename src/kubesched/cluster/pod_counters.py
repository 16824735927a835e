"""How many pods that match a selector are on each row, incrementally maintained.

Topology spread and inter-pod affinity need such counts. A counter is built from the label sets on
first use, then updated with every pod that is added or removed; it is never recounted. The least
recently used counters are dropped when all of them take too much memory, and those that count
nothing, which rollouts leave behind, when they are as many as the others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection

import numpy as np
from msgspec import Struct

from kubesched.api.labels import Selector
from kubesched.cluster.label_sets import LabelSet
from kubesched.cluster.row_counter import Countable, RowCounter
from kubesched.cluster.selector_index import SelectorIndex
from kubesched.errors import require

#: Memory limit of all counters.
LIMIT_BYTES = 256 << 20
#: Below this number, counters are not dropped for counting nothing.
FEW_COUNTERS = 64


class Selection(Struct, frozen=True, cache_hash=True):
    """Which pods are counted."""

    selector: Selector
    #: None means all
    namespaces: frozenset[str] | None
    #: whether terminating pods count
    with_terminating: bool

    def counts(self, labels: LabelSet) -> bool:
        """Tell whether pods count that are matched."""
        return self.with_terminating or not labels.terminating

    def matches(self, labels: LabelSet) -> bool:
        """Tell whether pods with these labels are counted."""
        if not self.counts(labels):
            return False
        if self.namespaces is not None and labels.namespace not in self.namespaces:
            return False
        return self.selector.matches(labels.labels)


class PodCounter(RowCounter):
    """The number of selected pods on each row."""

    __slots__ = ("selection",)

    def __init__(self, selection: Selection) -> None:
        super().__init__()
        self.selection = selection

    @property
    def counted(self) -> Selection:
        """The selection."""
        return self.selection

    def counts_pod(self, pod: Countable) -> bool:
        """Tell whether a pod is selected."""
        return self.selection.matches(pod.labels)


class PodCounters:
    """All counters, and the label sets they are made from."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        #: in order of last use
        self._counters: OrderedDict[Selection, PodCounter] = OrderedDict()
        #: their selectors, and the label sets that have pods on some row
        self._index: SelectorIndex[PodCounter] = SelectorIndex()
        #: how many were dropped; those are no longer updated
        self.dropped = 0
        #: at this number, counters that count nothing are dropped
        self._tidy_at = FEW_COUNTERS

    def __len__(self) -> int:
        return len(self._counters)

    def counter(self, selection: Selection) -> PodCounter:
        """Return the counter of a selection, built on first use."""
        counter = self._counters.get(selection)
        if counter is not None:
            self._counters.move_to_end(selection)
            return counter
        self._make_room()
        counter = self._counters[selection] = PodCounter(selection)
        self._index.put(counter, selection.selector, selection.namespaces)
        for labels in self._index.matched(counter):
            if selection.counts(labels):
                labels.counters += (counter,)
                for row, pods in labels.rows.items():
                    counter.add(row, pods)
        return counter

    def add(self, row: int, labels: LabelSet) -> None:
        """Count a pod with these labels on a row."""
        self._enter(row, labels)
        for counter in labels.counters:
            counter.add(row, 1)

    def remove(self, row: int, labels: LabelSet) -> None:
        """Stop counting a pod with these labels on a row."""
        for counter in labels.counters:
            counter.add(row, -1)
        self._leave(row, labels)

    def relabel(self, row: int, old: LabelSet, new: LabelSet) -> None:
        """Move a pod to other labels; only counters that distinguish the two are updated."""
        self._enter(row, new)
        for counter in old.counters:
            if counter not in new.counters:
                counter.add(row, -1)
        for counter in new.counters:
            if counter not in old.counters:
                counter.add(row, 1)
        self._leave(row, old)

    def _enter(self, row: int, labels: LabelSet) -> None:
        if not labels.rows:
            self._begin(labels)
        labels.rows[row] = labels.rows.get(row, 0) + 1

    def _leave(self, row: int, labels: LabelSet) -> None:
        left = labels.rows[row] - 1
        if left:
            labels.rows[row] = left
            return
        del labels.rows[row]
        if not labels.rows:
            self._end(labels)

    def _begin(self, labels: LabelSet) -> None:
        self._index.add(labels)
        matching = self._index.matching(labels)
        labels.counters = tuple([each for each in matching if each.selection.counts(labels)])

    def _end(self, labels: LabelSet) -> None:
        self._index.discard(labels)
        labels.counters = ()

    def _make_room(self) -> None:
        # Estimate the size of each by the largest of the most recent ones.
        recent = [
            counter.nbytes
            for _, counter in zip(range(8), reversed(self._counters.values()), strict=False)
        ]
        while self._counters and len(self._counters) * max(recent) > self._limit_bytes:
            self._drop(next(iter(self._counters)))
        if len(self._counters) >= self._tidy_at:
            for selection in [each for each, counts in self._counters.items() if not counts.total]:
                self._drop(selection)
            # Doubling keeps the cost constant per new counter.
            self._tidy_at = max(FEW_COUNTERS, 2 * len(self._counters))

    def _drop(self, selection: Selection) -> None:
        dropped = self._counters.pop(selection)
        self.dropped += 1
        for labels in self._index.matched(dropped):
            labels.counters = tuple([each for each in labels.counters if each is not dropped])
        self._index.remove(dropped)

    def validate(self, size: int, label_sets: Collection[LabelSet]) -> None:
        """Recount every counter from the label sets that have pods."""
        self._index.validate(label_sets)
        for selection, counter in self._counters.items():
            counted = np.zeros(size, dtype=np.int32)
            for labels in label_sets:
                require(
                    selection.matches(labels) == (counter in labels.counters),
                    f"{labels} knows whether {selection} counts it",
                )
                if selection.matches(labels):
                    for row, pods in labels.rows.items():
                        counted[row] += pods
            require(np.array_equal(counter.counts(size), counted), f"counts of {selection}")
            require(counter.total == counted.sum(), f"total of {selection}")
            counter.validate()
