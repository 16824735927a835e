"""The nodes as the page draws them: columns in page order, with the version of each row.

    NodeTable (arrays, logs of changed rows) ──refresh()──> NodeColumns ──> all() · since(version)

A refresh reads the table's logs from where it left off, and stamps the changed rows with a new
version: after a quiet second there are none, however many nodes there are. Nothing is copied.
Values are read from the table on request, so they are never older than their version.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kubesched.api import names
from kubesched.api.core import Node
from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array
from kubesched.cluster.incremental import View
from kubesched.cluster.node_order import zone_name
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.vocabulary import Lookup
from kubesched.web.report import AllNodes, ChangedNodes, NodesTold, ResourceColumns

ObjectArray = npt.NDArray[Any]

_NONE: Final[IndexArray] = np.zeros(0, dtype=np.intp)


class NodeColumns(View):
    """All nodes of a table, in page order; `version` is the one that browsers have."""

    derived = ("_rows", "_places", "_order", "_names", "_zones", "_ready", "_resources")

    def __init__(self, table: NodeTable) -> None:
        super().__init__(table.row_changes, table.node_changes)
        self._table = table
        #: version since which nodes and their order are unchanged
        self._laid_out = 0
        #: rows in page order
        self._rows: IndexArray = _NONE
        #: by row: zone and name as last laid out; None for free rows
        self._places: list[tuple[str, str] | None] = []
        #: zone, name and row of each node, in order: the inverse of `_places`
        self._order: list[tuple[str, str, int]] = []
        #: by row, as `_places`: arrays for bulk access
        self._names: ObjectArray = np.zeros(0, np.object_)
        self._zones: ObjectArray = np.zeros(0, np.object_)
        self._ready: Int64Array = np.zeros(0, np.int64)
        #: by row: the version of its last change
        self._changed: Int64Array = np.zeros(0, np.int64)
        self._taint_count = Lookup(table.taints, len, np.int64)
        self._resources: tuple[str, ...] = ()

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that some node has."""
        self.refresh()
        return self._resources

    def current_version(self) -> int:
        """Apply changes; return the version."""
        self.refresh()
        return self.version

    def rebuild(self) -> None:
        """Read all nodes."""
        before = self._order, self._resources, self._laid_out
        self._rows, self._places, self._order = _NONE, [], []
        self._names, self._zones = np.zeros(0, np.object_), np.zeros(0, np.object_)
        self._ready, self._changed = np.zeros(0, np.int64), np.zeros(0, np.int64)
        everything = list(range(self._table.size))
        self.update(everything, everything)
        if (self._order, self._resources) == before[:2]:
            self._laid_out = before[2]

    def update(self, rows: list[int], nodes: list[int]) -> bool:
        """Mark rows as changed, and read nodes that changed."""
        self._grow(self._table.size)
        self._changed[rows] = self.version + 1
        if nodes:
            self._look_at(nodes)
        return True

    def all(self) -> AllNodes:
        """Return all nodes."""
        self.refresh()
        told = self._told(self._rows)
        return AllNodes(
            version=self.version,
            names=told.names,
            zones=told.zones,
            unschedulable=told.unschedulable,
            ready=told.ready,
            taints=told.taints,
            pods=told.pods,
            resources=told.resources,
        )

    def since(self, version: int) -> ChangedNodes | None:
        """Return the nodes that changed after a version; None if there are none."""
        self.refresh()
        if not self._laid_out <= version <= self.version:
            return ChangedNodes(self.version, self._told(_NONE), reload=True)
        rows = self._rows[self._changed[self._rows] > version]
        return ChangedNodes(self.version, self._told(rows)) if len(rows) else None

    # --- inside -----------------------------------------------------------------------------

    def _grow(self, size: int) -> None:
        missing = size - len(self._places)
        if missing > 0:
            self._places += [None] * missing
            self._names = np.append(self._names, np.full(missing, "", np.object_))
            self._zones = np.append(self._zones, np.full(missing, "", np.object_))
            self._ready = np.append(self._ready, np.zeros(missing, np.int64))
            self._changed = np.append(self._changed, np.zeros(missing, np.int64))

    def _look_at(self, rows: list[int]) -> None:
        """Read the fields of changed nodes that are not in the table's arrays."""
        moved = False
        for row in rows:
            node = self._table.nodes[row]
            place = None if node is None else (zone_name(node), node.metadata.name)
            if place != self._places[row]:
                moved = True
                self._place(row, place)
            self._ready[row] = node is not None and is_ready(node)
        offered = self._offered()
        if moved or offered != self._resources:
            self._resources = offered
            self._rows = np.array([row for _, _, row in self._order], dtype=np.intp)
            self._laid_out = self.version + 1

    def _place(self, row: int, place: tuple[str, str] | None) -> None:
        old = self._places[row]
        if old is not None:
            del self._order[bisect_left(self._order, (*old, row))]
        if place is not None:
            insort(self._order, (*place, row))
        self._places[row] = place
        self._zones[row], self._names[row] = place or ("", "")

    def _offered(self) -> tuple[str, ...]:
        table = self._table
        in_use = table.allocatable[:, : table.size][:, table.valid[: table.size]]
        some_node: BoolArray = np.any(in_use, axis=1)
        offers = zip(table.resources.names, some_node.tolist(), strict=True)
        found = [name for name, offered in offers if offered]
        basic = [name for name in (names.CPU, names.MEMORY) if name in found]
        return (*basic, names.PODS, *(name for name in found if name not in basic))

    def _told(self, rows: IndexArray) -> NodesTold:
        table = self._table
        pods: list[int] = table.pod_count[rows].tolist()
        return NodesTold(
            names=self._names[rows].tolist(),
            zones=self._zones[rows].tolist(),
            unschedulable=table.unschedulable[rows].astype(np.int64).tolist(),
            ready=self._ready[rows].tolist(),
            taints=self._taint_count(rows).tolist(),
            pods=pods,
            resources={name: self._resource(name, rows, pods) for name in self._resources},
        )

    def _resource(self, name: str, rows: IndexArray, pods: list[int]) -> ResourceColumns:
        table = self._table
        if name == names.PODS:
            return ResourceColumns(table.allowed_pods[rows].tolist(), pods)
        number = table.resources.find(name)
        return ResourceColumns(
            table.allocatable[number, rows].tolist(), table.requested[number, rows].tolist()
        )


def is_ready(node: Node) -> bool:
    """Tell whether a node is Ready, or has no such condition."""
    return all(each.status == "True" for each in node.status.conditions if each.type == "Ready")
