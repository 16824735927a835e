"""Transactions: hypothetical changes to the cluster that are undone at the end.

    with cluster.transaction() as tx:
        tx.remove(victim.uid)
        tx.place(pod, "node-1")
        ...                          # everything sees the changed cluster
    # the cluster is as before, unless tx.keep() was called

Inside, all changes are real: counts, logs and views follow them. The end undoes them in reverse
order, restores the order of pods and nodes, and rolls the logs back if only pods changed. So a
transaction costs what it touches, not the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.api.resource import ResourceClaim, ResourceClaimStatus
from kubesched.cluster.incremental import Log
from kubesched.cluster.object_store import HasMeta, ObjectStore
from kubesched.cluster.pod_info import PodInfo

if TYPE_CHECKING:
    from kubesched.cluster.cluster import Cluster

T = TypeVar("T", bound=HasMeta)


class Transaction:
    """Changes to a cluster that are undone at the end, unless they are kept."""

    def __init__(self, cluster: Cluster, parent: Transaction | None = None) -> None:
        self._cluster = cluster
        self._parent = parent
        #: parts that were neither kept nor undone
        self._open: list[Transaction] = []
        self._undo: list[Callable[[], None]] = []
        logs: tuple[Log[Any], ...] = (
            cluster.table.node_changes,
            cluster.table.row_changes,
            cluster.table.version_changes,
            cluster.nominator.changes,
        )
        self._positions = [(log, log.position) for log in logs]
        #: whether nodes changed: views must then read the logs again, since new rows and label
        #: values remain after the undo
        self._changes_nodes = False
        #: row → its pods in their previous order, for rows whose pods changed
        self._pods: dict[int, dict[str, PodInfo]] = {}
        #: rows whose ports count as free
        self._supposed: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.undo()

    def undo(self) -> None:
        """Undo all changes, also those of parts that an exception left open."""
        while self._open:
            self._open[-1].undo()
        self._close()
        undo, self._undo = self._undo, []
        if not undo:
            return
        for each in reversed(undo):
            each()
        table = self._cluster.table
        for row, order in self._pods.items():
            pods = table.pods[row]
            # The row may have had another node when its pods were saved.
            table.pods[row] = {uid: pods[uid] for uid in order if uid in pods} | pods
        for row in self._supposed:
            table.ports.stop_supposing(row)
        self._pods, self._supposed = {}, set()
        if not self._changes_nodes:
            for log, position in self._positions:
                log.roll_back(position)

    def keep(self) -> None:
        """Keep all changes, or hand them to the enclosing transaction."""
        self._close()
        if self._parent is not None:
            self._parent._adopt(self)  # noqa: SLF001 (its own class)
        self._undo, self._pods = [], {}

    def part(self) -> Transaction:
        """Return a nested transaction: kept changes become part of this one."""
        made = Transaction(self._cluster, self)
        self._open.append(made)
        return made

    def _close(self) -> None:
        siblings = [] if self._parent is None else self._parent._open  # noqa: SLF001 (its own class)
        if self in siblings:
            siblings.remove(self)

    def _adopt(self, part: Transaction) -> None:
        self._undo += part._undo
        self._supposed |= part._supposed
        self._changes_nodes |= part._changes_nodes
        for row, pods in part._pods.items():
            self._pods.setdefault(row, pods)

    def on_undo(self, call: Callable[[], None]) -> None:
        """Call `call` before the changes made so far are undone."""
        self._undo.append(call)

    # --- pods -------------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """Add a pod that is on a node, and not yet in the cluster."""
        cluster, uid = self._cluster, pod.metadata.uid
        self._save_pods(pod.spec.node_name)
        cluster.put_pod(pod)
        self._undo.append(lambda: cluster.remove_pod(uid))

    def withdraw(self, pod: PodInfo) -> None:
        """Remove the nomination of a pod, if any."""
        nominator = self._cluster.nominator
        node_name = nominator.node_of(pod.uid)
        if node_name is not None:
            nominator.clear(pod.uid)
            self._undo.append(lambda: nominator.nominate(pod, node_name))

    def place(self, pod: PodInfo, node_name: str) -> None:
        """Place a pod on a node; it must not be on one already."""
        cluster = self._cluster
        self._save_pods(node_name)
        cluster.suppose_on(pod, node_name)
        self._undo.append(lambda: cluster.suppose_off(pod.uid))

    def remove(self, uid: str) -> None:
        """Remove a pod from its node, if it is on one."""
        cluster = self._cluster
        pod, node_name = cluster.pod(uid), cluster.node_of(uid)
        if pod is None or node_name is None:
            return
        self._save_pods(node_name)
        was_assumed = cluster.is_assumed(uid)
        cluster.suppose_off(uid)
        self._undo.append(lambda: cluster.suppose_on(pod, node_name, is_assumed=was_assumed))

    def evict(self, pod: PodInfo) -> None:
        """Remove a pod as a dry-run victim: its host ports count as free."""
        row = self._row_of(pod)
        self.remove(pod.uid)
        self._supposed.add(row)
        self._cluster.table.ports.suppose_free(row, pod.signature.host_ports)

    def reprieve(self, pod: PodInfo, node_name: str) -> None:
        """Put a victim back."""
        self.place(pod, node_name)
        self._cluster.table.ports.suppose_taken(self._row_of(pod), pod.signature.host_ports)

    def _save_pods(self, node_name: str) -> None:
        row = self._cluster.table.row_of(node_name)
        if row is not None and row not in self._pods:
            self._pods[row] = dict(self._cluster.table.pods[row])

    def _row_of(self, pod: PodInfo) -> int:
        node_name = self._cluster.node_of(pod.uid)
        row = None if node_name is None else self._cluster.table.row_of(node_name)
        if row is None:
            raise LookupError(f"{pod.full_name} is on no node")
        return row

    # --- nodes ------------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        """Add or replace a node."""
        self._changes_nodes = True
        cluster, name = self._cluster, node.metadata.name
        row = cluster.table.row_of(name)
        if row is None:
            cluster.put_node(node)
            self._undo.append(lambda: cluster.remove_node(name))
            return
        before, order = cluster.table.node_at(row), cluster.table.order.saved()

        def undo() -> None:
            cluster.put_node(before)
            cluster.table.order.restore(order)

        cluster.put_node(node)
        self._undo.append(undo)

    def remove_node(self, node_name: str) -> None:
        """Remove a node, if present; its pods are then on no node."""
        cluster = self._cluster
        row = cluster.table.row_of(node_name)
        if row is None:
            return
        self._changes_nodes = True
        self._save_pods(node_name)
        before, order = cluster.table.node_at(row), cluster.table.order.saved()

        def undo() -> None:
            cluster.put_node(before)
            cluster.table.order.restore(order)

        cluster.remove_node(node_name)
        self._undo.append(undo)

    # --- other objects ------------------------------------------------------------------------

    def put_object(self, store: ObjectStore[T, Any], obj: T) -> None:
        """Add or replace an object of a store."""
        before = store.newest(store.key_of(obj))
        store.put(obj)
        self._undo.append(lambda: store.remove(obj) if before is None else store.put(before))

    def release(self, pod: Pod) -> None:
        """Release the devices of a removed pod, unless another pod uses the same claim.

        Preemption does not count on it: kube-scheduler evicts no pod for its devices.
        """
        for claim in self._cluster.devices.claims.of_pod(pod):
            self._release(claim, pod)

    def _release(self, claim: ResourceClaim, pod: Pod) -> None:
        claims, uid = self._cluster.devices.claims, claim.metadata.uid
        decided = claims.pending(uid)
        if decided is not None and claims.drop(uid):
            self._undo.append(lambda: claims.signal(uid, decided))
        users = tuple(each for each in claim.status.reserved_for if each.uid != pod.metadata.uid)
        status = replace(claim.status, reserved_for=users) if users else ResourceClaimStatus()
        if status != claim.status:
            self.put_object(claims, replace(claim, status=status))
