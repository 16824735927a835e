"""A cluster that records every change in a journal.

Every method that changes the state is overridden here, and nothing else records it. So a recording
is complete for decisions, and a scheduler that does not record has a plain `Cluster` without
overhead.
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
    ClaimDecided,
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
    """A nominator that records every change."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._told = journal

    def nominate(self, pod: PodInfo, node_name: str) -> None:
        """Nominate a pod to a node."""
        super().nominate(pod, node_name)
        self._told.nominated(pod.pod, node_name)

    def clear(self, uid: str) -> None:
        """Remove the nomination of a pod, if any."""
        if self.node_of(uid) is not None:
            super().clear(uid)
            self._told.unnominated(uid)

    def nominations(self) -> Iterator[tuple[PodInfo, str]]:
        """Return all nominated pods with their nodes, in an order that reproduces the state."""
        for node_name, pods in self._by_node.items():
            for pod in pods.values():
                yield pod, node_name


class RecordedCluster(Cluster):
    """A cluster that records every change."""

    nominator: RecordedNominator

    def __init__(self, rules: RequestRules, journal: Journal) -> None:
        super().__init__(rules)
        self._told = journal
        self.nominator = RecordedNominator(journal)
        self.nominated_rows = NominatedRows(self.table, self.nominator)
        for kind, store in stores(self):
            listener = _AssumeStoreListener if isinstance(store, Assumptions) else _StoreListener
            store.listeners.append(listener(kind.name, store, journal))
        self.devices.claims.on_decision = journal.claim_decided

    # --- inputs ----------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        """Add or update a node."""
        super().put_node(node)
        self._told.put("Node", node)

    def remove_node(self, node_name: str) -> None:
        """Remove a node, if present."""
        if self.table.row_of(node_name) is not None:
            super().remove_node(node_name)
            self._told.removed("Node", "", node_name)

    def put_pod(self, pod: Pod) -> PodInfo:
        """Add or update a pod that is on a node."""
        info = super().put_pod(pod)
        self._told.placed(pod)
        return info

    def remove_pod(self, uid: str) -> None:
        """Remove a pod, if it is on a node."""
        known = self.pod(uid)
        if known is not None:
            super().remove_pod(uid)
            self._told.removed("Pod", uid=uid)

    # --- actions ---------------------------------------------------------------------------

    def assume(self, pod: PodInfo, node_name: str) -> None:
        """Count a pod on the node that was chosen for it."""
        super().assume(pod, node_name)
        self._told.assumed(pod.pod, node_name)

    def forget(self, uid: str) -> None:
        """Undo an assumption."""
        if self.is_assumed(uid):
            super().forget(uid)
            self._told.forgotten(uid)

    # --- checkpoint ------------------------------------------------------------------------

    def checkpoint(self) -> Iterator[Entry]:
        """Return entries that reproduce this state, including the order of its dicts."""
        # Nodes in node order: that preserves the order of zones, and of nodes in each.
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
        for uid, allocation in self.devices.claims.decisions():
            yield ClaimDecided(uid=uid, allocation=allocation)
        for pod, node_name in self.nominator.nominations():
            yield Nominated(uid=pod.uid, node=node_name, pod=pod.pod)

    def _on_node(self, pod: PodInfo, node_name: str) -> Entry:
        if self.is_assumed(pod.uid):
            return Assumed(uid=pod.uid, node=node_name, pod=pod.pod)
        return Put(kind="Pod", object=pod.pod)


class _StoreListener:
    """Records changes of an object store."""

    def __init__(self, kind: str, store: ObjectStore[Any, Any], journal: Journal) -> None:
        self._kind = kind
        #: its methods take a name, or a namespace and a name
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
    """Records observed and assumed objects separately."""

    def __init__(self, kind: str, store: ObjectStore[Any, Any], journal: Journal) -> None:
        super().__init__(kind, store, journal)
        #: as last recorded, to know which of both changed
        self._seen: dict[StoreKey, object] = {}

    def __call__(self, key: StoreKey) -> None:
        observed = self._store.observed(*_parts(key))
        if observed is not self._seen.get(key):
            # A new version discards the assumption, in a replay too.
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
