"""Which pods are behind rejections by affinity and anti-affinity, domain by domain.

pod's anti-affinity         a pod in the domain that a term selects
existing pods' anti-affinity a pod in the domain with a term that selects this one
pod's affinity              no pod in the domain that all terms select, and where there are some
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from kubesched.cluster.affinity_terms import AffinityTerm
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.domains import Domains
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_counters import PodCounter
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.term_counters import TermCounter
from kubesched.framework.detail import Detail, listed
from kubesched.plugins.pod_relations import Neighbours, Relations

Concerned = Callable[[PodInfo], bool]
#: So many domains with matching pods are named.
_DOMAINS: Final = 3


class AffinityReasons:
    """The plugin's reason for each of its three rules."""

    def __init__(self, *, near: str, away: str, kept_away: str) -> None:
        self.near = near
        self.away = away
        self.kept_away = kept_away


class AffinityDetails:
    """The pods behind rejections of one pod."""

    def __init__(
        self, pod: PodInfo, relations: Relations, nodes: NodeRows, said: AffinityReasons
    ) -> None:
        self._pod = pod
        self._relations = relations
        self._table = nodes.table
        self._rows = nodes.row_numbers()
        self._said = said

    def __iter__(self) -> Iterator[Detail]:
        own = self._pod.terms
        for term, avoided in zip(own.required_anti, self._relations.avoided, strict=True):
            yield from self._too_near(avoided, term, _selected_by(avoided), self._avoided)
        for avoiding in self._relations.avoiding:
            carried = (
                avoiding.counter.carried if isinstance(avoiding.counter, TermCounter) else None
            )
            if carried is not None:
                concerned = _carrying(carried)
                yield from self._too_near(avoiding, carried.term, concerned, self._avoiding)
        if self._relations.company:
            yield from self._without_company()

    # --- anti-affinity --------------------------------------------------------------------------

    def _too_near(
        self,
        neighbours: Neighbours,
        term: AffinityTerm,
        concerned: Concerned,
        tell: Callable[[AffinityTerm, PodInfo], tuple[str, str]],
    ) -> Iterator[Detail]:
        rows = self._rows[neighbours.near()[self._rows]]
        counts = neighbours.counter.by_domain(neighbours.domains)
        for domain, here in _by_domain(neighbours.domains, rows):
            found = _first(self._table, neighbours, domain, concerned)
            if found is None:
                continue
            other, node = found
            reason, text = tell(term, other)
            more = int(counts[domain]) - 1
            also = (
                f", as do {more} more pods" if more > 1 else ", as does 1 more pod" if more else ""
            )
            where = self._where(term, domain)
            yield Detail(
                f"{other.full_name} on {node} {text}{where}{also}",
                {
                    "pod": other.full_name,
                    "node": node,
                    "pods": int(counts[domain]),
                    **self._place(term, domain),
                    "selector": str(term.selector),
                },
                reason,
                here,
            )

    def _avoided(self, term: AffinityTerm, other: PodInfo) -> tuple[str, str]:  # noqa: ARG002
        return self._said.away, f"matches the anti-affinity to {self._selecting(term)}"

    def _avoiding(self, term: AffinityTerm, other: PodInfo) -> tuple[str, str]:  # noqa: ARG002
        return self._said.kept_away, f"has anti-affinity to {self._selecting(term)}"

    # --- affinity -------------------------------------------------------------------------------

    def _without_company(self) -> Iterator[Detail]:
        own = self._pod.terms.required
        wanted = ", ".join(dict.fromkeys(self._selecting(each) for each in own))
        for term, company in zip(own, self._relations.company, strict=True):
            rows = self._rows[~company.near()[self._rows]]
            counts = company.counter.by_domain(company.domains)
            there = {
                self._value(term, domain): int(counts[domain])
                for domain in np.flatnonzero(counts).tolist()
            }
            key = term.topology_key
            elsewhere = listed(f"{number} in {name}" for name, number in there.items())
            if not there and not self._relations.are_own_company(self._pod.labels):
                text = f"no pod anywhere matches {wanted}"
                values = {"topologyKey": key, "selector": wanted, "matching": {}}
                yield Detail(text, values, self._said.near, tuple(rows.tolist()))
                continue
            for domain, here in _by_domain(company.domains, rows):
                text = f"no pod matches {wanted} in {key}={self._value(term, domain)}"
                yield Detail(
                    f"{text}; there is {elsewhere}" if domain else f"the node has no label {key}",
                    {
                        **self._place(term, domain),
                        "selector": wanted,
                        "matching": dict(list(there.items())[:_DOMAINS]),
                    },
                    self._said.near,
                    here,
                )

    # --- words ----------------------------------------------------------------------------------

    def _selecting(self, term: AffinityTerm) -> str:
        selector = str(term.selector) or ("nothing" if term.selector.nothing else "all pods")
        own = frozenset((self._pod.labels.namespace,))
        if term.namespaces == own and term.namespace_selector.nothing:
            return selector
        if not term.namespace_selector.nothing:
            which = str(term.namespace_selector) or "all namespaces"
            return f"{selector} in {which}"
        return f"{selector} in {listed(sorted(term.namespaces))}"

    def _value(self, term: AffinityTerm, domain: int) -> str:
        value = self._table.label_column(term.topology_key).vocabulary.values[domain]
        return value or ""

    def _where(self, term: AffinityTerm, domain: int) -> str:
        return f" in {term.topology_key}={self._value(term, domain)}"

    def _place(self, term: AffinityTerm, domain: int) -> dict[str, Any]:
        domain_name = self._value(term, domain) if domain else None
        return {"topologyKey": term.topology_key, "domain": domain_name}


def _by_domain(domains: Domains, rows: IndexArray) -> Iterator[tuple[int, tuple[int, ...]]]:
    ids = domains.ids[rows]
    for domain in np.unique(ids).tolist():
        yield domain, tuple(rows[ids == domain].tolist())


def _first(
    table: NodeTable, neighbours: Neighbours, domain: int, concerned: Concerned
) -> tuple[PodInfo, str] | None:
    """Return the first of the pods that are counted in a domain, and its node."""
    counts = neighbours.counter.counts(table.size)
    rows = neighbours.domains.rows_of(domain)
    for row in rows[counts[rows] > 0].tolist():
        for other in table.pods[row].values():
            if concerned(other):
                return other, table.name_at(row)
    return None


def _selected_by(neighbours: Neighbours) -> Concerned:
    counter = neighbours.counter
    if not isinstance(counter, PodCounter):
        return lambda _: False
    return lambda other: counter.selection.matches(other.labels)


def _carrying(carried: object) -> Concerned:
    return lambda other: carried in other.terms.carried
