"""How many pods on each row carry a certain affinity term, kept up to date.

The terms of pods that are there already concern new pods too: their anti-affinity keeps new pods
away, their preferences attract or repel them. Each distinct term has one counter, however many pods
carry it. Which terms are about a pod depends on its labels alone, so label sets remember it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

import numpy as np
from msgspec import Struct

from kubesched.cluster.affinity_terms import AffinityTerm, PodTerms
from kubesched.cluster.arrays import Int32Array, grown
from kubesched.cluster.label_sets import LabelSet
from kubesched.errors import require


class Role(Enum):
    """What a pod carries a term for."""

    REQUIRED = auto()
    REQUIRED_ANTI = auto()
    PREFERRED = auto()


class CarriedTerm(Struct, frozen=True, cache_hash=True):
    """A term, what it is for, and the weight of a preference."""

    term: AffinityTerm
    role: Role
    weight: int = 0


class TermCounter:
    """The number of pods on each row that carry a term."""

    __slots__ = ("_counts", "carried", "total")

    def __init__(self, carried: CarriedTerm, capacity: int) -> None:
        self.carried = carried
        self._counts: Int32Array = np.zeros(capacity, dtype=np.int32)
        self.total = 0

    def add(self, row: int, pods: int) -> None:
        """Change the count of a row."""
        if row >= len(self._counts):
            self._counts = grown(self._counts, (max(2 * len(self._counts), row + 1),))
        self._counts[row] += pods
        self.total += pods

    def counts(self, size: int) -> Int32Array:
        """Return the counts of the first `size` rows."""
        if len(self._counts) < size:
            self._counts = grown(self._counts, (size,))
        return self._counts[:size]


class TermCounters:
    """All terms that pods on rows carry."""

    def __init__(self) -> None:
        self._counters: dict[CarriedTerm, TermCounter] = {}
        #: all counters in the order in which they appeared, those that are gone included
        self._history: list[TermCounter] = []
        #: a new epoch makes what label sets remember worthless
        self._epoch = 0
        self._namespace_labels: dict[str, Mapping[str, str]] = {}

    def __len__(self) -> int:
        return len(self._counters)

    def add(self, row: int, terms: PodTerms, *, capacity: int) -> None:
        """Count a pod that carries `terms` on a row."""
        for carried in _carried(terms):
            counter = self._counters.get(carried)
            if counter is None:
                counter = self._counters[carried] = TermCounter(carried, capacity)
                self._history.append(counter)
            counter.add(row, 1)

    def remove(self, row: int, terms: PodTerms) -> None:
        """Stop counting a pod that carries `terms` on a row."""
        for carried in _carried(terms):
            counter = self._counters[carried]
            counter.add(row, -1)
            if not counter.total:
                del self._counters[carried]
        if len(self._history) > 2 * len(self._counters) + 64:
            self._history = list(self._counters.values())
            self._epoch += 1

    def about(self, labels: LabelSet) -> list[TermCounter]:
        """Return the counters of terms that are about pods with these labels."""
        if labels.terms_epoch != self._epoch:
            labels.matching_terms, labels.terms_seen = [], 0
            labels.terms_epoch = self._epoch
        if labels.terms_seen < len(self._history):
            namespace_labels = self._namespace_labels.get(labels.namespace, {})
            labels.matching_terms += (
                counter
                for counter in self._history[labels.terms_seen :]
                if counter.carried.term.is_about(
                    labels.labels,
                    namespace=labels.namespace,
                    namespace_labels=namespace_labels,
                )
            )
            labels.terms_seen = len(self._history)
        return [counter for counter in labels.matching_terms if counter.total]

    # --- namespaces -------------------------------------------------------------------------

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Take over the labels of a namespace."""
        if self._namespace_labels.get(name) != labels:
            self._namespace_labels[name] = labels
            self._epoch += 1

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace."""
        if self._namespace_labels.pop(name, None) is not None:
            self._epoch += 1

    def namespaces_of(self, term: AffinityTerm) -> frozenset[str] | None:
        """Return the namespaces that a new pod's own term is about; None means all.

        A selector that matches a namespace without labels is taken to match all namespaces. That
        is how kube-scheduler evaluates it, for new pods' terms only.
        """
        if term.namespace_selector.matches({}):
            return None
        if term.namespace_selector.nothing:
            return term.namespaces
        return term.namespaces | {
            name
            for name, labels in self._namespace_labels.items()
            if term.namespace_selector.matches(labels)
        }

    @property
    def namespaces_version(self) -> int:
        """Changes whenever a namespace does."""
        return self._epoch

    def validate(self, size: int, carriers: list[tuple[int, PodTerms]]) -> None:
        """Recount every term from the pods that carry it."""
        counted: dict[CarriedTerm, Int32Array] = {}
        for row, terms in carriers:
            for carried in _carried(terms):
                counted.setdefault(carried, np.zeros(size, dtype=np.int32))[row] += 1
        require(counted.keys() == self._counters.keys(), "terms that pods carry")
        for carried, counter in self._counters.items():
            same = np.array_equal(counter.counts(size), counted[carried])
            require(same and counter.total == counted[carried].sum(), f"carriers of {carried}")
            require(counter in self._history, f"{carried} is in the history")


def _carried(terms: PodTerms) -> list[CarriedTerm]:
    return [
        *(CarriedTerm(term, Role.REQUIRED) for term in terms.required),
        *(CarriedTerm(term, Role.REQUIRED_ANTI) for term in terms.required_anti),
        *(CarriedTerm(each.term, Role.PREFERRED, each.weight) for each in terms.preferred),
    ]
