"""The counters that concern a pod, cached for all pods that the same terms concern.

    its own terms ──────selection──> PodCounter ──┐
                                                  ├── by the domains of a label: Neighbours
    terms of others about it ──────> TermCounter ─┘

The counts are maintained incrementally. Which terms of others are about a pod is looked up in each
attempt: of its labels, only those matter that a selector names, so pods may differ in all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary, ref

import numpy as np
from msgspec import Struct

from kubesched.api.labels import Selector
from kubesched.cluster.affinity_terms import AffinityTerm, PodTerms, Role
from kubesched.cluster.arrays import BoolArray, Int64Array
from kubesched.cluster.domains import Domains
from kubesched.cluster.incremental import Memo
from kubesched.cluster.label_sets import LabelSet
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_counters import PodCounter, Selection
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.row_counter import RowCounter
from kubesched.cluster.term_counters import TermCounter
from kubesched.errors import InvariantError
from kubesched.framework.cycle_state import CycleState

#: Entries cached for pods with the same terms, by the terms of others about them.
MOST_OTHERS: Final = 16


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
    #: which pods match those; None without required terms
    company_selection: Selection | None
    #: pods of its required anti-affinity
    avoided: tuple[Neighbours, ...]
    #: pods whose required anti-affinity selects it
    avoiding: tuple[Neighbours, ...]
    #: preferred terms, and other pods' terms that select it
    attractions: tuple[Attraction, ...]

    def are_own_company(self, labels: LabelSet) -> bool:
        """Tell whether pods with these labels match their own required terms."""
        return self.company_selection is not None and self.company_selection.matches(labels)


class _Found(NamedTuple):
    stamp: tuple[int, int]
    relations: Relations


class PodRelations:
    """The relations of all pods, by terms and labels."""

    def __init__(self, table: NodeTable, *, hard_weight: int) -> None:
        """`hard_weight` is the weight of other pods' required affinity that selects a pod."""
        self._table = table
        self._hard_weight = hard_weight
        #: cached while there are pods with these terms
        self._known: WeakKeyDictionary[PodTerms, Memo[tuple[TermCounter, ...], Relations]]
        self._known = WeakKeyDictionary()

    def of(self, pod: PodInfo) -> Relations:
        """Return the current relations of a pod."""
        terms = pod.terms
        known = self._known.get(terms)
        if known is None:
            # The memo lives as long as the terms, so it must not hold a strong reference to them.
            find = partial(_find_for, ref(terms), self._find)
            known = self._known[terms] = Memo(find, stamp=self._lookups, limit=MOST_OTHERS)
        return known.of(self._table.term_counters.about(pod.labels))

    def in_attempt(self, state: CycleState, pod: PodInfo) -> Relations:
        """Return the same, cached in the attempt until the set of terms changes."""
        stamp = self._table.term_counters.version, self._table.pod_counters.dropped
        found = state.get(PodRelations)
        if not isinstance(found, _Found) or found.stamp != stamp:
            found = _Found(stamp, self.of(pod))
            state.write(PodRelations, found)
        return found.relations

    def _lookups(self) -> tuple[int, int]:
        """Return what the counters of a pod's own terms depend on."""
        return self._table.term_counters.epoch, self._table.pod_counters.dropped

    def _find(self, terms: PodTerms, about: tuple[TermCounter, ...]) -> Relations:
        company: tuple[Neighbours, ...] = ()
        selection: Selection | None = None
        if terms.required:
            counter = self._counter(terms.required)
            company = tuple(self._by(term, counter) for term in terms.required)
            selection = counter.selection
        return Relations(
            company,
            selection,
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
        return self._table.pod_counter(self._selection_of_all(terms))

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


def _find_for(
    terms: ref[PodTerms],
    find: Callable[[PodTerms, tuple[TermCounter, ...]], Relations],
    about: tuple[TermCounter, ...],
) -> Relations:
    found = terms()
    if found is None:
        raise InvariantError("pods with these terms are gone")
    return find(found, about)
