"""A cluster that tells a journal of every change.

Each way to change the state is overridden here, and nowhere else is anything recorded about it. So
a recording lacks nothing that decisions depend on, and a scheduler that does not record has a plain
`Cluster` and pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kubesched.api.core import Node, Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.nominated_rows import NominatedRows
from kubesched.cluster.nominator import Nominator
from kubesched.cluster.object_store import Assumptions, ObjectStore
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.kinds import stores
from kubesched.recording.entries import (
    Assumed,
    Entry,
    Nominated,
    Put,
    VolumeAssumed,
)

if TYPE_CHECKING:
    from kubesched.recording.journal import Journal

#: A name, or a namespace and a name.
StoreKey = str | tuple[str, str]


class RecordedNominator(Nominator):
    """Who is nominated where, and whoever changes it is heard of."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._told = journal

    def nominate(self, pod: PodInfo, node_name: str) -> None:
        """Promise a pod a place."""
        super().nominate(pod, node_name)
        self._told.nominated(pod.pod, node_name)

    def clear(self, uid: str) -> None:
        """Take the promise back, if there is one."""
        if self.node_of(uid) is not None:
            super().clear(uid)
            self._told.unnominated(uid)

    def everybody(self) -> Iterator[tuple[PodInfo, str]]:
        """Return all nominated pods with their nodes, in an order that leads to the same order."""
        for node_name, pods in self._by_node.items():
            for pod in pods.values():
                yield pod, node_name


class RecordedCluster(Cluster):
    """A cluster whose journal knows everything about it."""

    nominator: RecordedNominator

    def __init__(self, rules: RequestRules, journal: Journal) -> None:
        super().__init__(rules)
        self._told = journal
        self.nominator = RecordedNominator(journal)
        self.nominated_rows = NominatedRows(self.table, self.nominator)
        for kind, store in stores(self):
            listener = _AssumeStoreListener if isinstance(store, Assumptions) else _StoreListener
            store.listeners.append(listener(kind.name, store, journal))

    # --- what was seen ----------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        """Add a node, or take over its new version."""
        super().put_node(node)
        self._told.put("Node", node)

    def remove_node(self, node_name: str) -> None:
        """Remove a node, if it is there."""
        if self.table.row_of(node_name) is not None:
            super().remove_node(node_name)
            self._told.removed("Node", "", node_name)

    def put_pod(self, pod: Pod) -> PodInfo:
        """Add a pod that is on a node, or take over its new version."""
        info = super().put_pod(pod)
        self._told.placed(pod)
        return info

    def remove_pod(self, uid: str) -> None:
        """Remove a pod, if it is on a node."""
        known = self.pod(uid)
        if known is not None:
            super().remove_pod(uid)
            self._told.removed("Pod", uid=uid)

    # --- what was done ----------------------------------------------------------------------

    def assume(self, pod: PodInfo, node_name: str) -> None:
        """Count a pod on the node chosen for it."""
        super().assume(pod, node_name)
        self._told.assumed(pod.pod, node_name)

    def forget(self, uid: str) -> None:
        """Take an assumption back."""
        if self.is_assumed(uid):
            super().forget(uid)
            self._told.forgotten(uid)

    # --- all of it --------------------------------------------------------------------------

    def checkpoint(self) -> Iterator[Entry]:
        """Return entries that lead to this state: not only to equal sets, but in equal order."""
        # Nodes one of each zone in turn: that keeps the order of zones, and of nodes in each.
        rows = self.table.order.rows().tolist()
        for row in rows:
            yield Put(kind="Node", object=self.table.node_at(row))
        for kind, store in stores(self):
            yield from _of_store(kind.name, store)
        for row in rows:
            node_name = self.table.name_at(row)
            for pod in self.table.pods[row].values():
                yield self._on_node(pod, node_name)
        for node_name, pods in self._without_node.items():
            for pod in pods.values():
                yield self._on_node(pod, node_name)
        for pod, node_name in self.nominator.everybody():
            yield Nominated(uid=pod.uid, node=node_name, pod=pod.pod)

    def _on_node(self, pod: PodInfo, node_name: str) -> Entry:
        if self.is_assumed(pod.uid):
            return Assumed(uid=pod.uid, node=node_name, pod=pod.pod)
        return Put(kind="Pod", object=pod.pod)


class _StoreListener:
    """Tells of changes in a store of objects."""

    def __init__(self, kind: str, store: ObjectStore[Any, Any], journal: Journal) -> None:
        self._kind = kind
        #: a name, or a namespace and a name, is what its methods take
        self._store: Any = store
        self._told = journal

    def __call__(self, key: StoreKey) -> None:
        self._tell(key, self._store.get(*_parts(key)))

    def _tell(self, key: StoreKey, obj: object | None) -> None:
        if obj is None:
            namespace, name = _names(key)
            self._told.removed(self._kind, namespace, name)
        else:
            self._told.put(self._kind, obj)


class _AssumeStoreListener(_StoreListener):
    """Tells of what was seen and what was assumed apart."""

    def __init__(self, kind: str, store: ObjectStore[Any, Any], journal: Journal) -> None:
        super().__init__(kind, store, journal)
        #: as it was last told, to know which of both changed
        self._seen: dict[StoreKey, object] = {}

    def __call__(self, key: StoreKey) -> None:
        observed = self._store.observed(*_parts(key))
        if observed is not self._seen.get(key):
            # What was assumed of another version goes by itself, in a replay, too.
            if observed is None:
                del self._seen[key]
            else:
                self._seen[key] = observed
            self._tell(key, observed)
        elif self._store.is_assumed(key):
            self._told.volume_assumed(self._kind, self._store.get(*_parts(key)))
        else:
            self._told.volume_restored(self._kind, *_names(key))


def _parts(key: StoreKey) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else key


def _names(key: StoreKey) -> tuple[str, str]:
    """Return namespace and name."""
    return ("", key) if isinstance(key, str) else key


def _of_store(kind: str, store: Any) -> Iterator[Entry]:  # noqa: ANN401 (each kind has its own)
    may_assume = isinstance(store, Assumptions)
    for shown in store:
        key = store.key_of(shown)
        if may_assume:
            yield Put(kind=kind, object=store.observed(*_parts(key)))
            if store.is_assumed(key):
                yield VolumeAssumed(kind=kind, object=shown)
        else:
            yield Put(kind=kind, object=shown)
