"""How many pods on each row carry an affinity term, incrementally maintained.

The terms of placed pods apply to new pods too: anti-affinity rejects nodes, preferences change
scores. Each distinct term has one counter, however many pods carry it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

import numpy as np

from kubesched.cluster.affinity_terms import AffinityTerm, CarriedTerm, PodTerms, Role
from kubesched.cluster.arrays import Int32Array
from kubesched.cluster.label_sets import LabelSet
from kubesched.cluster.row_counter import Countable, RowCounter
from kubesched.cluster.selector_index import SelectorIndex
from kubesched.errors import require


class TermCounter(RowCounter):
    """The number of pods on each row that carry a term."""

    __slots__ = ("carried", "number")

    def __init__(self, carried: CarriedTerm, number: int) -> None:
        super().__init__()
        self.carried = carried
        #: in order of appearance
        self.number = number

    @property
    def counted(self) -> CarriedTerm:
        """The term."""
        return self.carried

    def counts_pod(self, pod: Countable) -> bool:
        """Return whether a pod carries the term."""
        return self.carried in pod.terms.carried


_BY_APPEARANCE = attrgetter("number")


class TermCounters:
    """All terms that placed pods carry."""

    def __init__(self) -> None:
        self._counters: dict[CarriedTerm, TermCounter] = {}
        #: how many terms there have been
        self._appeared = 0
        self._index: SelectorIndex[TermCounter] = SelectorIndex()
        #: changes with the labels of namespaces
        self.epoch = 0
        #: changes with the set of terms, and with the epoch
        self.version = 0
        self._namespace_labels: dict[str, Mapping[str, str]] = {}

    def __len__(self) -> int:
        return len(self._counters)

    def add(self, row: int, terms: PodTerms) -> None:
        """Count a pod that carries `terms` on a row."""
        for carried in terms.carried:
            counter = self._counters.get(carried)
            if counter is None:
                counter = self._counters[carried] = TermCounter(carried, self._appeared)
                self._appeared += 1
                self.version += 1
                term = carried.term
                anywhere = not term.namespace_selector.nothing
                self._index.put(counter, term.selector, None if anywhere else term.namespaces)
            counter.add(row, 1)

    def remove(self, row: int, terms: PodTerms) -> None:
        """Stop counting a pod that carries `terms` on a row."""
        for carried in terms.carried:
            counter = self._counters[carried]
            counter.add(row, -1)
            if not counter.total:
                del self._counters[carried]
                self._index.remove(counter)
                self.version += 1

    def about(self, labels: LabelSet) -> tuple[TermCounter, ...]:
        """Return the counters of terms that select pods with these labels, by appearance."""
        matching = self._index.matching(labels)
        if not matching:
            return ()
        namespace, of_namespace = labels.namespace, self._namespace_labels.get(labels.namespace, {})
        found = [
            each
            for each in matching
            if each.carried.term.covers(namespace, namespace_labels=of_namespace)
        ]
        found.sort(key=_BY_APPEARANCE)
        return tuple(found)

    def of_nominated(
        self, labels: LabelSet, terms: Iterable[AffinityTerm]
    ) -> Iterator[TermCounter]:
        """Return counters of those required anti-affinity terms that select pods with these labels
        and that no placed pod carries.
        """
        namespace_labels = self._namespace_labels.get(labels.namespace, {})
        for term in terms:
            if term.is_about(
                labels.labels, namespace=labels.namespace, namespace_labels=namespace_labels
            ):
                counter = TermCounter(CarriedTerm(term, Role.REQUIRED_ANTI), number=-1)
                if counter.carried not in self._counters:
                    yield counter

    # --- namespaces -------------------------------------------------------------------------

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Update the labels of a namespace."""
        if self._namespace_labels.get(name) != labels:
            self._namespace_labels[name] = labels
            self._begin_epoch()

    def remove_namespace(self, name: str) -> None:
        """Remove a namespace."""
        if self._namespace_labels.pop(name, None) is not None:
            self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.epoch += 1
        self.version += 1

    def namespaces_of(self, term: AffinityTerm) -> frozenset[str] | None:
        """Return the namespaces that a new pod's own term selects; None means all.

        Other than an empty selector, which is about all namespaces, one is about those that there
        are: a namespace that is not known yet is not selected, not even by the lack of a label.
        """
        selector = term.namespace_selector
        if selector.nothing:
            return term.namespaces
        if not selector.requirements:
            return None
        return term.namespaces | {
            name for name, labels in self._namespace_labels.items() if selector.matches(labels)
        }

    def validate(self, size: int, carriers: list[tuple[int, PodTerms]]) -> None:
        """Recount every term from the pods that carry it."""
        counted: dict[CarriedTerm, Int32Array] = {}
        for row, terms in carriers:
            for carried in terms.carried:
                counted.setdefault(carried, np.zeros(size, dtype=np.int32))[row] += 1
        require(counted.keys() == self._counters.keys(), "terms that pods carry")
        self._index.validate(())
        require(len(self._index) == len(self._counters), "terms in the index")
        for carried, counter in self._counters.items():
            same = np.array_equal(counter.counts(size), counted[carried])
            require(same and counter.total == counted[carried].sum(), f"carriers of {carried}")
            counter.validate()
