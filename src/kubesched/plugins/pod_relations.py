"""The counters that concern a pod, cached for all pods with the same terms and labels.

    its own terms ──────selection──> PodCounter ──┐
                                                  ├── by the domains of a label: Neighbours
    terms of others about it ──────> TermCounter ─┘

The counts are maintained incrementally. Which counters concern a pod changes only when a term gets
its first carrier or loses its last one, or when the labels of a namespace change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from kubesched.api.labels import Selector
from kubesched.cluster.affinity_terms import AffinityTerm, PodTerms, Role
from kubesched.cluster.arrays import BoolArray, Int64Array
from kubesched.cluster.domains import Domains
from kubesched.cluster.incremental import Memo
from kubesched.cluster.label_sets import LabelMemo, LabelSet
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_counters import PodCounter, Selection
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.row_counter import RowCounter
from kubesched.cluster.term_counters import TermCounter
from kubesched.framework.cycle_state import CycleState

#: Entries cached for different terms of pods with the same labels.
MOST_TERMS: Final = 16


class Neighbours(NamedTuple):
    """A counter of pods, and the domains of a label."""

    counter: RowCounter
    domains: Domains

    def near(self) -> BoolArray:
        """Return which rows have one of the pods in their domain; read-only."""
        return self.counter.hit(self.domains)


class Attraction(NamedTuple):
    """Counters of preferred terms, all by the domains of the same label."""

    domains: Domains
    #: with the weight of each
    counters: tuple[tuple[RowCounter, int], ...]

    def by_domain(self) -> Int64Array | None:
        """Return the weight of each domain, 0 for domain 0; None if all are 0."""
        total: Int64Array | None = None
        for counter, weight in self.counters:
            counts = counter.by_domain(self.domains)
            if np.count_nonzero(counts[1:]):
                total = counts * weight if total is None else total + counts * weight
        if total is not None:
            total[0] = 0
        return total


class Relations(Struct, frozen=True):
    """The counters of a pod's terms, and of other pods' terms that select it."""

    #: pods that match all of its required terms, by the label of each term
    company: tuple[Neighbours, ...]
    #: whether it is one of those itself
    is_own_company: bool
    #: pods of its required anti-affinity
    avoided: tuple[Neighbours, ...]
    #: pods whose required anti-affinity selects it
    avoiding: tuple[Neighbours, ...]
    #: preferred terms, and other pods' terms that select it
    attractions: tuple[Attraction, ...]


class _Found(NamedTuple):
    stamp: tuple[int, int]
    relations: Relations


class PodRelations:
    """The relations of all pods, by terms and labels."""

    def __init__(self, table: NodeTable, *, hard_weight: int) -> None:
        """`hard_weight` is the weight of other pods' required affinity that selects a pod."""
        self._table = table
        self._hard_weight = hard_weight
        self._known: LabelMemo[PodTerms, Relations] = LabelMemo(
            self._find, stamp=self._stamp, limit=MOST_TERMS
        )
        counters = table.term_counters
        self._selections: Memo[tuple[AffinityTerm, ...], Selection] = Memo(
            self._selection_of_all, stamp=lambda: counters.epoch
        )

    def of(self, pod: PodInfo) -> Relations:
        """Return the current relations of a pod."""
        return self._known.of(pod.labels, pod.terms)

    def in_attempt(self, state: CycleState, pod: PodInfo) -> Relations:
        """Return the same, cached in the attempt until the set of terms changes."""
        stamp, found = self._stamp(), state.get(PodRelations)
        if not isinstance(found, _Found) or found.stamp != stamp:
            found = _Found(stamp, self.of(pod))
            state.write(PodRelations, found)
        return found.relations

    def _stamp(self) -> tuple[int, int]:
        return self._table.term_counters.version, self._table.pod_counters.dropped

    def _find(self, labels: LabelSet, terms: PodTerms) -> Relations:
        about = self._table.term_counters.about(labels)
        company: tuple[Neighbours, ...] = ()
        is_own_company = False
        if terms.required:
            counter = self._counter(terms.required)
            company = tuple(self._by(term, counter) for term in terms.required)
            is_own_company = counter.selection.matches(labels)
        return Relations(
            company,
            is_own_company,
            avoided=tuple(self._by(term, self._counter((term,))) for term in terms.required_anti),
            avoiding=tuple(
                self._by(each.carried.term, each)
                for each in about
                if each.carried.role is Role.REQUIRED_ANTI
            ),
            attractions=self._attractions(terms, about),
        )

    def _by(self, term: AffinityTerm, counter: RowCounter) -> Neighbours:
        return Neighbours(counter, self._table.domains(term.topology_key))

    def _attractions(self, terms: PodTerms, about: Iterable[TermCounter]) -> tuple[Attraction, ...]:
        by_key: dict[str, list[tuple[RowCounter, int]]] = {}
        for preferred in terms.preferred:
            counted = self._counter((preferred.term,)), preferred.weight
            by_key.setdefault(preferred.term.topology_key, []).append(counted)
        for counter in about:
            carried = counter.carried
            if carried.role is Role.REQUIRED_ANTI:
                continue
            weight = carried.weight if carried.role is Role.PREFERRED else self._hard_weight
            if weight:
                by_key.setdefault(carried.term.topology_key, []).append((counter, weight))
        return tuple(
            Attraction(self._table.domains(key), tuple(counters))
            for key, counters in by_key.items()
        )

    def _counter(self, terms: tuple[AffinityTerm, ...]) -> PodCounter:
        """Return the counter of existing pods that all of a pod's own terms select."""
        return self._table.pod_counter(self._selections.of(terms))

    def _selection_of_all(self, terms: Sequence[AffinityTerm]) -> Selection:
        if any(each.selector.nothing for each in terms):
            return Selection(Selector(nothing=True), None, with_terminating=True)
        selector = Selector.of(
            requirement for each in terms for requirement in each.selector.requirements
        )
        namespaces = map(self._table.term_counters.namespaces_of, terms)
        limited = [each for each in namespaces if each is not None]
        common = frozenset.intersection(*limited) if limited else None
        return Selection(selector, common, with_terminating=True)
