"""The rows that can reach storage: conditions on labels, for all rows at once.

    PV node affinity · allowedTopologies · CSIStorageCapacity.nodeTopology ──> Topology ──> rows

All three are alternatives, each a conjunction of conditions on node labels. There are many volumes
and few topologies, or one host per volume; so equal conditions are compiled once, and a condition
with few values is a comparison of ids instead of a table of all values of the label. Rows are
cached until one of the labels changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import count
from typing import Final

import numpy as np

from kubesched.api import labels
from kubesched.api.core import NodeSelector
from kubesched.api.labels import Requirement
from kubesched.api.meta import LabelSelector
from kubesched.api.storage import TopologySelectorTerm
from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array, Int64Array
from kubesched.cluster.incremental import View
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_selector import LabelMatch
from kubesched.cluster.node_table import LabelColumn, NodeTable
from kubesched.cluster.recent import Recent
from kubesched.errors import SelectorError, require

#: Up to so many values are compared one by one.
FEW_VALUES = 4
#: Number of cached topologies.
CACHED = 65_536
#: After so many changes, pairs are rebuilt instead of moved.
FEW_CHANGES = 32


class ValueMatch:
    """Matches a label with one of a few values."""

    def __init__(self, key: str, values: tuple[str, ...]) -> None:
        self.key = key
        self.values = values

    def __call__(self, nodes: NodeRows) -> BoolArray:
        """Return which of the rows have one of the values."""
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
        given = list(terms)
        self._terms = [[_matcher(requirement) for requirement in term] for term in given]
        #: the labels of its conditions
        self.keys = frozenset(requirement.key for term in given for requirement in term)
        #: the only condition, if there is one, with few values
        self.only: ValueMatch | None = None
        if len(self._terms) == 1 and len(self._terms[0]) == 1:
            single = self._terms[0][0]
            self.only = single if isinstance(single, ValueMatch) else None

    def __call__(self, nodes: NodeRows) -> BoolArray:
        """Return which of the rows match."""
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
_NUMBER_OF_ROWS: Final[frozenset[str | None]] = frozenset({None})


def of_node_selector(selector: NodeSelector) -> Topology:
    """Compile a volume's node affinity.

    Only labels are matched: a condition on a node's name counts as true. A
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
    """Compiled topologies, interned."""

    def __init__(self) -> None:
        self._compiled: Recent[NodeSelector, Topology] = Recent(CACHED)
        self._of_labels: Recent[Hashable, Topology] = Recent(CACHED)

    def of(self, selector: NodeSelector) -> Topology:
        """Return a volume's node affinity, compiled."""
        found = self._compiled.get(selector)
        if found is None:
            found = self._compiled[selector] = of_node_selector(selector)
        return found

    def of_labels(self, selector: LabelSelector | None) -> Topology:
        """Return a ``nodeTopology``, compiled."""
        if selector is None:
            return NOWHERE
        key = (frozenset((selector.match_labels or {}).items()), selector.match_expressions)
        found = self._of_labels.get(key)
        if found is None:
            found = self._of_labels[key] = of_label_selector(selector)
        return found


class _RowsByValue:
    """The rows that have each value of a label."""

    def __init__(self, column: LabelColumn, size: int, stamp: int) -> None:
        #: the version of the labels
        self.stamp = stamp
        self._vocabulary = column.vocabulary
        self._ids: Int32Array = column.ids[:size].copy()
        #: rows sorted by value; computed on demand
        self._rows: IndexArray | None = None
        #: value → where its rows start
        self._starts: list[int] = []

    def holds_for(self, column: LabelColumn, size: int) -> bool:
        """Return whether the labels are unchanged."""
        return column.vocabulary is self._vocabulary and np.array_equal(
            column.ids[:size], self._ids
        )

    def rows(self, value: str) -> IndexArray:
        """Return the rows that have a value."""
        ordered = self._rows
        if ordered is None:
            ordered = self._rows = np.argsort(self._ids, kind="stable")
            numbers = np.arange(len(self._vocabulary) + 1)
            self._starts = np.searchsorted(self._ids[ordered], numbers).tolist()
        number = self._vocabulary.find(value)
        # Later values are on no row, or the ids would differ.
        if number is None or number + 1 >= len(self._starts):
            return ordered[:0]
        return ordered[self._starts[number] : self._starts[number + 1]]


class TopologyRows(View):
    """Rows by topology, for many topologies of few rows each; cached until labels change."""

    derived = ("size",)

    def __init__(self, table: NodeTable) -> None:
        super().__init__(table.node_changes)
        self._table = table
        #: all labels that the cached rows depend on
        self._by_label: dict[str, _RowsByValue] = {}
        self._stamps = count(1)
        #: cached rows
        self._rows: dict[Topology | None, IndexArray] = {}
        #: the number of rows that the cache is valid for
        self.size = 0

    def rows(self, topology: Topology | None) -> IndexArray:
        """Return the rows that match, read-only; None matches all."""
        self.refresh()
        found = self._rows.get(topology)
        if found is None:
            if len(self._rows) >= CACHED:
                self._rows.clear()
            found = self._rows[topology] = self._find(topology)
        return found

    def version_of(self, key: str | None) -> int:
        """Return a number that changes with a label of any row; None: with the number of rows."""
        self.refresh()
        return self.size if key is None else self._index(key).stamp

    def _find(self, topology: Topology | None) -> IndexArray:
        if topology is None:
            return np.arange(self._table.size, dtype=np.intp)
        if topology.only is None:
            for key in topology.keys:
                self._index(key)
            return np.flatnonzero(topology(NodeRows.all_of(self._table)))
        index = self._index(topology.only.key)
        found = [index.rows(value) for value in topology.only.values]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _index(self, key: str) -> _RowsByValue:
        index = self._by_label.get(key)
        if index is None:
            column, stamp = self._table.label_column(key), next(self._stamps)
            index = self._by_label[key] = _RowsByValue(column, self._table.size, stamp)
        return index

    def rebuild(self) -> None:
        """Invalidate rows whose labels changed; most changes of nodes leave labels alone."""
        size = self._table.size
        outdated = [
            key
            for key, index in self._by_label.items()
            if not index.holds_for(self._table.label_column(key), size)
        ]
        for key in outdated:
            del self._by_label[key]
        if outdated or size != self.size:
            self._rows = {}
        self.size = size

    def validate(self) -> None:
        """Compute all cached rows again, and compare."""
        self.refresh()
        everywhere = NodeRows.all_of(self._table)
        for topology, rows in self._rows.items():
            found = np.ones(len(everywhere)) if topology is None else topology(everywhere)
            require(np.array_equal(np.sort(rows), np.flatnonzero(found)), "rows of a topology")


class RowPairs:
    """A sequence of topologies, and their rows as (position, row) pairs.

    An inserted or removed topology only moves the pairs behind it; a changed label invalidates the
    rows of the topologies that read it.
    """

    def __init__(self, places: TopologyRows, topologies: Iterable[Topology | None] = ()) -> None:
        self._places = places
        self._topologies: list[Topology | None] = []
        #: position → rows
        self._found: list[IndexArray] = []
        #: the labels that these depend on, with the version that they are valid for
        self._stamps: dict[str | None, int] = {}
        #: number of pairs
        self._total = 0
        #: concatenated rows of all positions, and the end of each; None if so much changed that a
        #: rebuild is cheaper
        self._rows: IndexArray | None = None
        self._ends: Int64Array = np.zeros(0, dtype=np.int64)
        #: number of changes since the last read
        self._changes = 0
        for place, topology in enumerate(topologies):
            self.insert(place, topology)

    def __len__(self) -> int:
        return len(self._topologies)

    def insert(self, place: int, topology: Topology | None) -> None:
        """Insert a topology; all from `place` on move up."""
        self._catch_up()
        rows = self._places.rows(topology)
        for key in _depends_on(topology):
            self._stamps.setdefault(key, self._places.version_of(key))
        self._topologies.insert(place, topology)
        self._found.insert(place, rows)
        self._total += len(rows)
        if self._rows is not None and self._is_worth_moving():
            start = int(self._ends[place - 1]) if place else 0
            self._rows = np.concatenate([self._rows[:start], rows, self._rows[start:]])
            moved = self._ends[place:] + len(rows)
            self._ends = np.concatenate([self._ends[:place], [start + len(rows)], moved])

    def remove(self, place: int) -> None:
        """Remove the topology at a position; all behind it move down."""
        del self._topologies[place]
        rows = self._found.pop(place)
        self._total -= len(rows)
        if self._rows is not None and self._is_worth_moving():
            end = int(self._ends[place])
            self._rows = np.concatenate([self._rows[: end - len(rows)], self._rows[end:]])
            self._ends = np.concatenate([self._ends[:place], self._ends[place + 1 :] - len(rows)])

    def _is_worth_moving(self) -> bool:
        self._changes += 1
        if self._changes > FEW_CHANGES:
            self._rows = None
        return self._rows is not None

    def count(self) -> int:
        """Return the number of pairs."""
        self._catch_up()
        return self._total

    def pairs(self, first: int = 0) -> tuple[IndexArray, IndexArray]:
        """Return all pairs from the position `first` on, in order: positions and rows."""
        self._catch_up()
        self._changes = 0
        if self._rows is None:
            self._rows = np.concatenate([np.zeros(0, dtype=np.intp), *self._found])
            self._ends = np.cumsum([len(rows) for rows in self._found], dtype=np.int64)
        start = int(self._ends[first - 1]) if first else 0
        counts = np.diff(self._ends[first:], prepend=start)
        return np.repeat(np.arange(first, len(self)), counts), self._rows[start:]

    def _catch_up(self) -> None:
        version_of = self._places.version_of
        changed = {key for key, noted in self._stamps.items() if version_of(key) != noted}
        if not changed:
            return
        self._stamps.update({key: version_of(key) for key in changed})
        for place, topology in enumerate(self._topologies):
            if not changed.isdisjoint(_depends_on(topology)):
                self._found[place] = self._places.rows(topology)
        self._total = sum(map(len, self._found))
        self._rows = None


def _depends_on(topology: Topology | None) -> frozenset[str | None]:
    """Return the argument of `TopologyRows.version_of` for each dependency of a topology."""
    return (topology and topology.keys) or _NUMBER_OF_ROWS
