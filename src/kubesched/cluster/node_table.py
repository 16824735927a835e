"""The node table: one row a node, one array a property.

Arrays are indexed by row. A row belongs to one node from its addition to its removal and is then
reused; `valid` tells which rows are in use. Logs record changes: `node_changes` holds rows whose
node object changed, `row_changes` those and also the rows whose pods changed, and `version_changes`
rows with a new pod version that is equivalent for scheduling.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from kubesched.api import names
from kubesched.api.core import Node, Taint
from kubesched.api.requests import node_allocatable
from kubesched.cluster.arrays import BoolArray, Int64Array, grown, read_only
from kubesched.cluster.domains import Domains
from kubesched.cluster.float_resource import FloatResource
from kubesched.cluster.images import Images, image_sizes
from kubesched.cluster.incremental import Log
from kubesched.cluster.node_order import NodeOrder
from kubesched.cluster.node_rows import ShownColumns
from kubesched.cluster.pod_counters import PodCounter, PodCounters, Selection
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.cluster.ports import HostPorts
from kubesched.cluster.recent import Recent
from kubesched.cluster.resources import CPU, MEMORY, Requests, ResourceIndex
from kubesched.cluster.term_counters import TermCounters
from kubesched.cluster.vocabulary import ValueColumn
from kubesched.cluster.volume_uses import VolumeUses
from kubesched.errors import InvariantError, require

FIRST_CAPACITY = 64
#: With more label columns than that, all are dropped, and rebuilt on demand: selectors of pods may
#: name any label.
MOST_LABELS = 1024

_NO_LABELS: Final[dict[str, str]] = {}

LabelColumn = ValueColumn[str | None]


class NodeTable:
    """All nodes as columns."""

    def __init__(self) -> None:
        #: the highest number of rows ever in use; every column has this length
        self.size = 0
        self._capacity = FIRST_CAPACITY
        self._free: list[int] = []
        self._row_of: dict[str, int] = {}
        #: row → node, None for free rows
        self.nodes: list[Node | None] = []
        #: row → pods on it by uid, in order of arrival
        self.pods: list[dict[str, PodInfo]] = []

        self.resources = ResourceIndex()
        #: [resource, row], cpu in milli
        self.allocatable: Int64Array = np.zeros((len(self.resources), FIRST_CAPACITY), np.int64)
        #: [resource, row]: sum over the row's pods
        self.requested: Int64Array = np.zeros((len(self.resources), FIRST_CAPACITY), np.int64)
        #: [cpu and memory, row]: the same with a default for pods that request nothing
        self.non_zero_requested: Int64Array = np.zeros((2, FIRST_CAPACITY), np.int64)
        #: extended resources that device classes stand for: a node without any of one may have
        #: devices instead
        self.device_resources: frozenset[str] = frozenset()
        #: how many pods the node takes, and has
        self.allowed_pods: Int64Array = np.zeros(FIRST_CAPACITY, np.int64)
        self.pod_count: Int64Array = np.zeros(FIRST_CAPACITY, np.int64)
        self.valid: BoolArray = np.zeros(FIRST_CAPACITY, np.bool_)
        self.unschedulable: BoolArray = np.zeros(FIRST_CAPACITY, np.bool_)
        #: the same columns as read-only views
        self.shown = self._show()
        self.taints: ValueColumn[tuple[Taint, ...]] = ValueColumn((), FIRST_CAPACITY)
        self.features: ValueColumn[frozenset[str]] = ValueColumn(frozenset(), FIRST_CAPACITY)
        # Nearly all clusters need these: pods are spread by them unless they say otherwise.
        self._labels: dict[str, LabelColumn] = {
            key: ValueColumn(None, FIRST_CAPACITY)
            for key in (names.LABEL_HOSTNAME, names.LABEL_ZONE)
        }
        self._domains: Recent[str, Domains] = Recent(limit=256)
        #: (resource number, whether a default counts for pods that request none) → float columns
        self._floats: dict[int, FloatResource] = {}

        #: pods by selector, and the affinity terms that pods carry
        self.pod_counters = PodCounters()
        self.term_counters = TermCounters()
        self.ports = HostPorts()
        self.volume_uses = VolumeUses()
        self.images = Images()
        self.order = NodeOrder()
        self.node_changes: Log[int] = Log()
        self.row_changes: Log[int] = Log()
        self.version_changes: Log[int] = Log()

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self._row_of)

    def row_of(self, node_name: str) -> int | None:
        """Return the row of a node, None if it is not in the table."""
        return self._row_of.get(node_name)

    def node_at(self, row: int) -> Node:
        """Return the node at a row that is in use."""
        node = self.nodes[row]
        if node is None:
            raise LookupError(f"row {row} has no node")
        return node

    def name_at(self, row: int) -> str:
        """Return the name of the node at a row that is in use."""
        return self.node_at(row).metadata.name

    def names(self) -> Iterator[str]:
        """Return the names of all nodes."""
        return iter(self._row_of)

    # --- nodes ------------------------------------------------------------------------------

    def put_node(self, node: Node) -> int:
        """Add a node or replace its object; return its row.

        Raises ObjectError, and changes nothing, if the node's resources cannot be read.
        """
        allocatable = node_allocatable(node)
        row = self._row_of.get(node.metadata.name)
        old = None
        if row is None:
            row = self._take_row(node.metadata.name)
        else:
            old = self.nodes[row]
        self.nodes[row] = node
        self.valid[row] = True
        self.unschedulable[row] = node.spec.unschedulable
        self.taints.put(row, node.spec.taints)
        self.features.put(row, frozenset(node.status.declared_features))
        self._set_allocatable(row, allocatable)
        self._set_labels(row, node.metadata.labels or {})
        self.images.replace(row, old, node)
        self.order.place(row, node)
        self._record_node_change(row)
        return row

    def remove_node(self, node_name: str) -> list[PodInfo]:
        """Remove a node; return the pods that were on it."""
        row = self._row_of.pop(node_name)
        pods = list(self.pods[row].values())
        for pod in pods:
            self.remove_pod(row, pod)
        self.images.replace(row, self.nodes[row], None)
        self.order.remove(row)
        self.nodes[row] = None
        self.valid[row] = self.unschedulable[row] = False
        # Rows without a node are evaluated along with the others, and always look the same.
        self.allocatable[:, row] = self.allowed_pods[row] = 0
        self.taints.put(row, ())
        self.features.put(row, frozenset())
        self._set_labels(row, {})
        self._free.append(row)
        self._record_node_change(row)
        return pods

    # --- pods -------------------------------------------------------------------------------

    def add_pod(self, row: int, pod: PodInfo) -> None:
        """Count a pod on its row; it must not be on the row already."""
        pods = self.pods[row]
        if pod.uid in pods:
            raise InvariantError(f"{pod} is in row {row} already")
        pods[pod.uid] = pod
        self._account(row, pod.requests, 1)
        if pod.signature.host_ports:
            self.ports.add(row, pod.signature.host_ports)
        self.pod_counters.add(row, pod.labels)
        if pod.terms.any:
            self.term_counters.add(row, pod.terms)
        if pod.volumes is not NO_VOLUMES:
            self.volume_uses.add(row, pod.volumes)
        self.row_changes.record(row)

    def remove_pod(self, row: int, pod: PodInfo) -> None:
        """Stop counting a pod on its row."""
        del self.pods[row][pod.uid]
        self._account(row, pod.requests, -1)
        if pod.signature.host_ports:
            self.ports.remove(row, pod.signature.host_ports)
        self.pod_counters.remove(row, pod.labels)
        if pod.terms.any:
            self.term_counters.remove(row, pod.terms)
        if pod.volumes is not NO_VOLUMES:
            self.volume_uses.remove(row, pod.volumes)
        self.row_changes.record(row)

    @contextmanager
    def supposing(self, row: int) -> Iterator[None]:
        """Restore the sums of a row (requested resources, number of pods) at the end of a block."""
        requested, pod_count = self.requested[:, row].copy(), self.pod_count.item(row)
        try:
            yield
        finally:
            self.requested[:, row], self.pod_count[row] = requested, pod_count

    def suppose_more(self, row: int, requests: Requests, pods: int) -> None:
        """Add the requests of some pods to the sums of a row, inside `supposing`.

        A negative number subtracts them.
        """
        requests.resolve(self.resources)
        for number, amount in requests.pairs:
            self.requested[number, row] += pods * amount
        self.pod_count[row] += pods

    def swap_pod(self, row: int, pod: PodInfo) -> None:
        """Replace a pod by a new version that is equivalent for scheduling."""
        self.pods[row][pod.uid] = pod
        self.version_changes.record(row)

    def relabel_pod(self, row: int, old: PodInfo, new: PodInfo) -> None:
        """Replace a pod by a new version that differs only in labels."""
        self.pod_counters.relabel(row, old.labels, new.labels)
        self.swap_pod(row, new)

    def count_requests(self, row: int, requests: Requests, pods: int) -> None:
        """Count the requests of some further pods on a row; no log shows it.

        A negative number removes them, which the caller must do before any view is refreshed.
        """
        self._account(row, requests, pods)

    def _account(self, row: int, requests: Requests, pods: int) -> None:
        self.suppose_more(row, requests, pods)
        cpu, memory = requests.non_zero
        self.non_zero_requested[CPU, row] += pods * cpu
        self.non_zero_requested[MEMORY, row] += pods * memory

    def pod_counter(self, selection: Selection) -> PodCounter:
        """Return the incrementally maintained count of selected pods per row."""
        return self.pod_counters.counter(selection)

    # --- columns ----------------------------------------------------------------------------

    def label_column(self, key: str) -> LabelColumn:
        """Return the column of a label, built on first use."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = ValueColumn(None, self._capacity)
            labels = [_NO_LABELS if node is None else node.metadata.labels for node in self.nodes]
            column.put_all([None if each is None else each.get(key) for each in labels])
        return column

    def domains(self, key: str) -> Domains:
        """Return the current domains of a label."""
        domains = self._domains.get(key)
        if domains is None:
            domains = self._domains[key] = Domains(self, key)
        domains.refresh()
        return domains

    def float_resource(self, number: int) -> FloatResource:
        """Return the current float columns of a resource."""
        found = self._floats.get(number)
        if found is None:
            found = self._floats[number] = FloatResource(self, number)
        found.refresh()
        return found

    def _set_labels(self, row: int, labels: dict[str, str]) -> None:
        # Only here, because the change of a node invalidates the views that have read ids.
        if len(self._labels) > MOST_LABELS:
            self._labels.clear()
        for key, column in self._labels.items():
            column.put(row, labels.get(key))

    def _set_allocatable(self, row: int, allocatable: dict[str, int]) -> None:
        for name in allocatable:
            if name != names.PODS and self.resources.find(name) is None:
                self._add_resource(name)
        self.allowed_pods[row] = allocatable.get(names.PODS, 0)
        self.allocatable[:, row] = [allocatable.get(name, 0) for name in self.resources.names]

    def _add_resource(self, name: str) -> None:
        number = self.resources.add(name)
        signature = (len(self.resources), self._capacity)
        self.allocatable = grown(self.allocatable, signature)
        self.requested = grown(self.requested, signature)
        self.shown = self._show()
        # Pods may have requested it before any node had it.
        for row, pods in enumerate(self.pods):
            for pod in pods.values():
                self.requested[number, row] += pod.requests.amounts.get(name, 0)

    def set_device_resources(self, names: frozenset[str]) -> None:
        """Set which resources are devices; cached answers about nodes may be stale."""
        if names != self.device_resources:
            self.device_resources = names
            for row in range(self.size):
                self.row_changes.record(row)

    def _record_node_change(self, row: int) -> None:
        self.node_changes.record(row)
        self.row_changes.record(row)

    def _take_row(self, node_name: str) -> int:
        if self._free:
            row = self._free.pop()
        else:
            row = self.size
            if row == self._capacity:
                self._grow(self._capacity * 2)
            self.size += 1
            self.nodes.append(None)
            self.pods.append({})
        self._row_of[node_name] = row
        return row

    def _grow(self, capacity: int) -> None:
        resources = len(self.resources)
        self.allocatable = grown(self.allocatable, (resources, capacity))
        self.requested = grown(self.requested, (resources, capacity))
        self.non_zero_requested = grown(self.non_zero_requested, (2, capacity))
        self.allowed_pods = grown(self.allowed_pods, (capacity,))
        self.pod_count = grown(self.pod_count, (capacity,))
        self.valid = grown(self.valid, (capacity,), fill=False)
        self.unschedulable = grown(self.unschedulable, (capacity,), fill=False)
        self.taints.grow(capacity)
        self.features.grow(capacity)
        for column in self._labels.values():
            column.grow(capacity)
        self._capacity = capacity
        self.shown = self._show()

    def _show(self) -> ShownColumns:
        return ShownColumns(
            allocatable=read_only(self.allocatable),
            requested=read_only(self.requested),
            non_zero_requested=read_only(self.non_zero_requested),
            allowed_pods=read_only(self.allowed_pods),
            pod_count=read_only(self.pod_count),
            unschedulable=read_only(self.unschedulable),
        )

    # --- checks -----------------------------------------------------------------------------

    def validate(self) -> None:
        """Recount everything from the objects; raise InvariantError if a column disagrees."""
        require(len(self._row_of) + len(self._free) == self.size, "rows in use or free")
        require(all(self.name_at(row) == name for name, row in self._row_of.items()), "row names")
        ports = HostPorts()
        for row, node in enumerate(self.nodes):
            require(self.valid[row] == (node is not None), f"valid[{row}]")
            self._validate_pods(row)
            for pod in self.pods[row].values():
                ports.add(row, pod.signature.host_ports)
            if node is not None:
                self._validate_node(row, node)
        require(self.ports.snapshot() == ports.snapshot(), "host ports in use")
        placed = [(row, pod) for row, pods in enumerate(self.pods) for pod in pods.values()]
        self.pod_counters.validate(self.size, {pod.labels for _, pod in placed})
        self.term_counters.validate(self.size, [(row, pod.terms) for row, pod in placed])
        self.volume_uses.validate((row, pod.volumes) for row, pod in placed)
        for view in (*self._floats.values(), *self._domains.values()):
            view.validate()
        require(sorted(self.order.rows()) == sorted(self._row_of.values()), "rows in order")

    def _validate_node(self, row: int, node: Node) -> None:
        allocatable = node_allocatable(node)
        require(self.allowed_pods[row] == allocatable.get(names.PODS, 0), f"allowed_pods[{row}]")
        for number, name in enumerate(self.resources.names):
            what = f"allocatable {name} in row {row}"
            require(self.allocatable[number, row] == allocatable.get(name, 0), what)
        require(self.unschedulable[row] == node.spec.unschedulable, f"unschedulable[{row}]")
        require(self.taints.at(row) == node.spec.taints, f"taints in row {row}")
        for key, column in self._labels.items():
            value = (node.metadata.labels or {}).get(key)
            require(column.at(row) == value, f"label {key} in row {row}")
        for image_name in image_sizes(node):
            state = self.images.find(image_name)
            require(state is not None and row in state.rows, f"image {image_name} in row {row}")

    def _validate_pods(self, row: int) -> None:
        pods = self.pods[row].values()
        require(self.pod_count[row] == len(pods), f"pod_count[{row}]")
        for number, name in enumerate(self.resources.names):
            total = sum(pod.requests.amounts.get(name, 0) for pod in pods)
            require(self.requested[number, row] == total, f"{name} requested in row {row}")
        for number in (CPU, MEMORY):
            total = sum(int(pod.requests.non_zero[number]) for pod in pods)
            require(self.non_zero_requested[number, row] == total, f"non-zero in row {row}")
