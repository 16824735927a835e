"""Counts of pods by topology domain, for plugins with a selector of their own.

    selector, topology key ──> PodCounts ──> of(nodes)      [node] -> pods in its domain
                                         ──> scores(nodes)  the same, factored by domain

The engine counts pods by selector anyway, for spread and affinity. A count is built once and then
incrementally maintained.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.api.labels import Selector
from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.domains import Domains
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_counters import Selection
from kubesched.framework.domain_scores import DomainScores


class PodCounts:
    """How many pods that a selector matches are in each domain of a topology key."""

    def __init__(
        self,
        table: NodeTable,
        topology_key: str,
        selector: Selector,
        *,
        namespaces: Iterable[str] | None = None,
        with_terminating: bool = False,
    ) -> None:
        """`namespaces` are those of the pods, None for all."""
        self._table = table
        self._key = topology_key
        chosen = None if namespaces is None else frozenset(namespaces)
        self._selection = Selection(selector, chosen, with_terminating)

    def of(self, nodes: NodeRows) -> Int64Array:
        """Return the number of pods in each node's domain, 0 for nodes without the label."""
        domains, counts = self._counted()
        return counts.take(domains.ids[nodes.rows])

    def near(self, node_name: str) -> int:
        """Return the number of pods in the domain of one node."""
        row = self._table.row_of(node_name)
        domains, counts = self._counted()
        return 0 if row is None else counts.item(domains.ids.item(row))

    def scores(self, nodes: NodeRows) -> DomainScores:
        """Return the number of pods in each node's domain, for `Score.score` to return."""
        domains, counts = self._counted()
        return DomainScores(counts.copy(), domains.ids[nodes.rows], domains.with_rows(nodes))

    def by_domain(self) -> dict[str, int]:
        """Return the number of pods in each domain that has nodes, by the label's value."""
        domains, counts = self._counted()
        values = self._table.label_column(self._key).vocabulary.values
        return {
            str(values[number]): counts.item(number)
            for number in domains.there.nonzero()[0].tolist()
        }

    def _counted(self) -> tuple[Domains, Int64Array]:
        domains = self._table.domains(self._key)
        return domains, self._table.pod_counter(self._selection).by_domain(domains)
