"""From which nodes storage can be reached: conditions on labels, over all rows at once.

    PV node affinity · allowedTopologies · CSIStorageCapacity.nodeTopology ──> Topology ──> rows

All three are the same thing: alternatives, each a conjunction of conditions on node labels. Volumes
are many and the places they are tied to are few, or just one host each; so equal conditions are
compiled once, and a condition that names few values is a comparison of ids and not a table of all
the values that the label has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from kubesched.api import labels
from kubesched.api.core import NodeSelector
from kubesched.api.labels import Requirement
from kubesched.api.meta import LabelSelector
from kubesched.api.storage import TopologySelectorTerm
from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_selector import LabelMatch
from kubesched.cluster.node_table import LabelColumn, NodeTable
from kubesched.cluster.recent import Recent
from kubesched.errors import SelectorError

#: So many values are compared one by one.
FEW_VALUES = 4
#: So many topologies are remembered.
REMEMBERED = 65_536


class ValueMatch:
    """A label that must have one of a few values."""

    def __init__(self, key: str, values: tuple[str, ...]) -> None:
        self.key = key
        self.values = values

    def __call__(self, nodes: NodeRows) -> BoolArray:
        """Tell which of the rows have one of them."""
        column = nodes.table.label_column(self.key)
        ids = column.ids[nodes.rows]
        result = nodes.none()
        for value in self.values:
            number = column.vocabulary.find(value)
            if number is not None:
                result |= ids == number
        return result


class Topology:
    """Alternatives, each a conjunction of conditions on labels; without any, no row matches."""

    def __init__(self, terms: Iterable[Sequence[Requirement]]) -> None:
        self._terms = [[_matcher(requirement) for requirement in term] for term in terms]
        #: the only condition, if there is just one, and it is one of few values
        self.only: ValueMatch | None = None
        if len(self._terms) == 1 and len(self._terms[0]) == 1:
            single = self._terms[0][0]
            self.only = single if isinstance(single, ValueMatch) else None

    def __call__(self, nodes: NodeRows) -> BoolArray:
        """Tell which of the rows match."""
        if self.only is not None:
            return self.only(nodes)
        result = nodes.none()
        for term in self._terms:
            matching = np.ones(len(nodes), dtype=np.bool_)
            for condition in term:
                matching &= condition(nodes)
            result |= matching
        return result


def _matcher(requirement: Requirement) -> ValueMatch | LabelMatch:
    if requirement.operator == labels.IN and len(requirement.values) <= FEW_VALUES:
        return ValueMatch(requirement.key, requirement.values)
    return LabelMatch(requirement)


NOWHERE: Final = Topology(())


def of_node_selector(selector: NodeSelector) -> Topology:
    """Compile a volume's node affinity.

    Volumes are matched against labels only: a condition on a node's name counts as fulfilled. A
    malformed term matches nothing.
    """
    terms = labels.node_selector_terms(selector)
    return Topology(term.labels for term in terms if not term.errors)


def of_allowed_topologies(terms: Sequence[TopologySelectorTerm]) -> Topology | None:
    """Compile a class's ``allowedTopologies``; None if it allows all nodes."""
    if not terms:
        return None
    compiled = []
    for term in terms:
        conditions = [
            Requirement(each.key, labels.IN, each.values) for each in term.match_label_expressions
        ]
        malformed = (
            labels.requirement_errors(each.key, labels.IN, each.values)
            for each in term.match_label_expressions
        )
        if conditions and not any(malformed):
            compiled.append(conditions)
    return Topology(compiled)


def of_label_selector(selector: LabelSelector | None) -> Topology:
    """Compile a ``nodeTopology``: none, or a malformed one, matches no node, an empty one all."""
    try:
        compiled = labels.from_label_selector(selector)
    except SelectorError:
        return NOWHERE
    return NOWHERE if compiled.nothing else Topology([compiled.requirements])


class Topologies:
    """Compiled node affinities, those of them that are equal just once."""

    def __init__(self) -> None:
        self._compiled: Recent[NodeSelector, Topology] = Recent(REMEMBERED)

    def of(self, selector: NodeSelector) -> Topology:
        """Return a volume's node affinity, compiled."""
        found = self._compiled.get(selector)
        if found is None:
            found = self._compiled[selector] = of_node_selector(selector)
        return found


class _RowsByValue:
    """The rows that have each value of a label."""

    def __init__(self, column: LabelColumn, size: int) -> None:
        self._vocabulary = column.vocabulary
        self._ids: Int32Array = column.ids[:size].copy()
        self._rows: IndexArray = np.argsort(self._ids, kind="stable")
        ordered = self._ids[self._rows]
        self._starts: list[int] = np.searchsorted(
            ordered, np.arange(len(self._vocabulary) + 1)
        ).tolist()

    def holds_for(self, column: LabelColumn, size: int) -> bool:
        """Tell whether the labels are still as they were."""
        return column.vocabulary is self._vocabulary and np.array_equal(
            column.ids[:size], self._ids
        )

    def rows(self, value: str) -> IndexArray:
        """Return the rows that have a value."""
        number = self._vocabulary.find(value)
        # Values that came later are on no row, or the ids would differ.
        if number is None or number + 1 >= len(self._starts):
            return self._rows[:0]
        return self._rows[self._starts[number] : self._starts[number + 1]]


class TopologyRows:
    """Rows by topology, for many topologies of few rows each; remembered while labels stay."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._by_label: dict[str, _RowsByValue] = {}
        #: answers so far
        self._rows: dict[Topology | None, IndexArray] = {}
        #: whether one of them depends on more than what `_by_label` has
        self._depends_on_more = False
        #: position in the log of node changes up to which all that was checked
        self._position = -1

    def rows(self, topology: Topology | None) -> IndexArray:
        """Return the rows that match, not to be changed; None matches all."""
        if self._table.node_changes.position != self._position:
            self._forget_outdated()
        found = self._rows.get(topology)
        if found is None:
            if len(self._rows) >= REMEMBERED:
                self._rows.clear()
            found = self._rows[topology] = self.find(topology)
            if topology is None or topology.only is None:
                self._depends_on_more = True
        return found

    def find(self, topology: Topology | None) -> IndexArray:
        """Return the same without remembering it, for topologies that are asked about once."""
        if self._table.node_changes.position != self._position:
            self._forget_outdated()
        if topology is None:
            return np.arange(self._table.size, dtype=np.intp)
        if topology.only is None:
            return np.flatnonzero(topology(NodeRows.all_of(self._table)))
        index = self._index(topology.only.key)
        found = [index.rows(value) for value in topology.only.values]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _index(self, key: str) -> _RowsByValue:
        index = self._by_label.get(key)
        if index is None:
            column = self._table.label_column(key)
            index = self._by_label[key] = _RowsByValue(column, self._table.size)
        return index

    def _forget_outdated(self) -> None:
        """Most changes of nodes are none of labels, and leave everything as it is."""
        self._position = self._table.node_changes.position
        size = self._table.size
        outdated = [
            key
            for key, index in self._by_label.items()
            if not index.holds_for(self._table.label_column(key), size)
        ]
        for key in outdated:
            del self._by_label[key]
        if outdated or self._depends_on_more:
            self._rows.clear()
            self._depends_on_more = False
