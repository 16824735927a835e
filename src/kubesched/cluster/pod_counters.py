"""How many pods that match a selector are on each row, incrementally maintained.

Topology spread and inter-pod affinity need such counts. A counter is built from the label sets on
first use, then updated with every pod that is added or removed; it is never recounted. The least
recently used counters are dropped when all of them take too much memory, and those that count
nothing, which rollouts leave behind, when they are as many as the others.

Nearly every selector requires one value, or one of a few, of some label. Selectors and label sets
are indexed by that, so that neither is compared with all of the others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from kubesched.api.labels import IN, Selector
from kubesched.cluster.label_sets import LabelSet
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.row_counter import RowCounter
from kubesched.errors import require

#: A label: its key and its value.
Pair = tuple[str, str]

#: A namespace and a label, None for any.
Scope = tuple[str | None, Pair | None]

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

    def matches(self, labels: LabelSet) -> bool:
        """Tell whether pods with these labels are counted."""
        if labels.terminating and not self.with_terminating:
            return False
        if self.namespaces is not None and labels.namespace not in self.namespaces:
            return False
        return self.selector.matches(labels.labels)

    @property
    def pairs(self) -> tuple[Pair | None, ...]:
        """Labels of which every selected pod has at least one; None: not restricted."""
        for each in self.selector.requirements:
            if each.operator == IN:
                return tuple((each.key, value) for value in dict.fromkeys(each.values))
        return (None,)

    @property
    def scopes(self) -> Iterator[Scope]:
        """Where selected pods may be."""
        namespaces = (None,) if self.namespaces is None else self.namespaces
        return ((namespace, pair) for namespace in namespaces for pair in self.pairs)


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

    def counts_pod(self, pod: PodInfo) -> bool:
        """Tell whether a pod is selected."""
        return self.selection.matches(pod.labels)


class PodCounters:
    """All counters, and the label sets they are made from."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        #: in order of last use
        self._counters: OrderedDict[Selection, PodCounter] = OrderedDict()
        self._by_scope: dict[Scope, dict[Selection, PodCounter]] = {}
        #: how many were dropped; those are no longer updated
        self.dropped = 0
        #: at this number, counters that count nothing are dropped
        self._tidy_at = FEW_COUNTERS
        #: namespace → label, None for all → label sets that have pods on some row
        self._label_sets: dict[str, dict[Pair | None, dict[LabelSet, None]]] = {}

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
        for scope in selection.scopes:
            self._by_scope.setdefault(scope, {})[selection] = counter
        for labels in self._in_scope(selection):
            if selection.matches(labels):
                labels.counters.append(counter)
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
        in_namespace = self._label_sets.setdefault(labels.namespace, {})
        pairs = (None, *labels.labels.items())
        for pair in pairs:
            in_namespace.setdefault(pair, {})[labels] = None
        labels.counters = [
            counter
            for namespace in (labels.namespace, None)
            for pair in pairs
            for counter in self._by_scope.get((namespace, pair), {}).values()
            if counter.selection.matches(labels)
        ]

    def _end(self, labels: LabelSet) -> None:
        labels.counters = []
        in_namespace = self._label_sets[labels.namespace]
        for pair in (None, *labels.labels.items()):
            del in_namespace[pair][labels]
            if not in_namespace[pair]:
                del in_namespace[pair]
        if not in_namespace:
            del self._label_sets[labels.namespace]

    def _in_scope(self, selection: Selection) -> Iterator[LabelSet]:
        for namespace, pair in selection.scopes:
            for each in self._label_sets if namespace is None else (namespace,):
                yield from self._label_sets.get(each, {}).get(pair, ())

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
        for scope in selection.scopes:
            in_scope = self._by_scope[scope]
            del in_scope[selection]
            if not in_scope:
                del self._by_scope[scope]
        for labels in self._in_scope(selection):
            if dropped in labels.counters:
                labels.counters.remove(dropped)

    def validate(self, size: int) -> None:
        """Recount every counter from the label sets."""
        for selection, counter in self._counters.items():
            counted = np.zeros(size, dtype=np.int32)
            for labels in self._everywhere():
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

    def _everywhere(self) -> Iterator[LabelSet]:
        for in_namespace in self._label_sets.values():
            yield from in_namespace[None]
