"""The state of a recorded scheduler, followed entry by entry.

Each entry is applied by the method that was called when it was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubesched.api.core import Pod
from kubesched.api.meta import ObjectMeta
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.errors import ObjectError
from kubesched.kinds import KINDS, stores
from kubesched.recording.entries import (
    Assumed,
    ClaimDecided,
    ClaimDropped,
    Entry,
    Forgotten,
    Gone,
    GroupDecided,
    Nominated,
    OfPod,
    Pending,
    Put,
    Removed,
    Unnominated,
    VolumeAssumed,
    VolumeRestored,
)


class ReplayState:
    """The scheduler's cluster at some entry."""

    def __init__(self, rules: RequestRules) -> None:
        self.cluster = Cluster(rules)
        #: uid → pending pod, as last recorded
        self.pending: dict[str, Pod] = {}
        #: uid → the same, compiled; only of pods that were tried
        self._compiled: dict[str, PodInfo] = {}
        #: uids of pods on nodes, in order of arrival (a dict is an ordered set)
        self._placed: dict[str, None] = {}
        self._stores: dict[str, Any] = {kind.name: store for kind, store in stores(self.cluster)}
        self._methods: dict[type[Entry], Callable[[Any], None]] = {
            Put: self._put,
            Removed: self._removed,
            Pending: self._pending,
            Gone: self._gone,
            Assumed: self._assumed,
            Forgotten: self._forgotten,
            Nominated: self._nominated,
            Unnominated: self._unnominated,
            VolumeAssumed: self._volume_assumed,
            VolumeRestored: self._volume_restored,
            ClaimDecided: self._claim_decided,
            ClaimDropped: self._claim_dropped,
        }

    def apply(self, entry: Entry) -> None:
        """Apply an entry; those that do not change the state are ignored."""
        method = self._methods.get(type(entry))
        if method is not None:
            method(entry)

    def pod_of(self, entry: OfPod) -> PodInfo:
        """Return the pod of an entry, as the scheduler had it."""
        pod = entry.pod or self.pending.get(entry.uid)
        if pod is None:
            raise ObjectError(f"the recording has no pod with the uid {entry.uid}")
        return self._compiled_version(pod)

    def pods_of(self, entry: GroupDecided) -> list[PodInfo]:
        """Return the members of a group in an entry, as the scheduler had them."""
        changed = {pod.metadata.uid: pod for pod in entry.pods}
        found = []
        for uid in entry.uids:
            pod = changed.get(uid) or self.pending.get(uid)
            if pod is None:
                raise ObjectError(f"the recording has no pod with the uid {uid}")
            found.append(self._compiled_version(pod))
        return found

    def _compiled_version(self, pod: Pod) -> PodInfo:
        uid = pod.metadata.uid
        known = self._compiled.get(uid)
        if known is None or known.pod is not pod:
            known = self._compiled[uid] = self.cluster.compiler.pending(pod)
        return known

    # --- objects ----------------------------------------------------------------------------

    def _put(self, entry: Put) -> None:
        kind, obj = entry.kind, entry.object
        if kind == "Pod":
            self._put_pod(obj)
        elif kind == "Node":
            self.cluster.put_node(obj)
        else:
            self._stores[kind].put(obj)

    def _put_pod(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self.cluster.put_pod(pod)
        self._placed[uid] = None
        self._no_longer_pending(uid)

    def _removed(self, entry: Removed) -> None:
        if entry.kind == "Pod":
            self._remove_pod(entry.uid)
        elif entry.kind == "Node":
            self.cluster.remove_node(entry.name)
        else:
            self._stores[entry.kind].remove(_named(entry))

    def _remove_pod(self, uid: str) -> None:
        self.cluster.remove_pod(uid)
        self._placed.pop(uid, None)

    def _pending(self, entry: Pending) -> None:
        pod = entry.pod
        self.pending[pod.metadata.uid] = pod
        if pod.spec.scheduling_group is not None:
            self.cluster.groups.put_pending(self.cluster.compiler.pending(pod))

    def _gone(self, entry: Gone) -> None:
        self._no_longer_pending(entry.uid)

    def _no_longer_pending(self, uid: str) -> None:
        pod = self.pending.pop(uid, None)
        if pod is not None:
            self.cluster.groups.remove_pending(pod)
        self._compiled.pop(uid, None)

    # --- decisions --------------------------------------------------------------------------

    def _assumed(self, entry: Assumed) -> None:
        self.cluster.assume(self.pod_of(entry), entry.node)
        self._placed[entry.uid] = None

    def _forgotten(self, entry: Forgotten) -> None:
        self.cluster.forget(entry.uid)
        self._placed.pop(entry.uid, None)

    def _nominated(self, entry: Nominated) -> None:
        self.cluster.nominator.nominate(self.pod_of(entry), entry.node)

    def _unnominated(self, entry: Unnominated) -> None:
        self.cluster.nominator.clear(entry.uid)

    def _claim_decided(self, entry: ClaimDecided) -> None:
        self.cluster.devices.claims.signal(entry.uid, entry.allocation)

    def _claim_dropped(self, entry: ClaimDropped) -> None:
        self.cluster.devices.claims.drop(entry.uid, is_written=entry.written)

    def _volume_assumed(self, entry: VolumeAssumed) -> None:
        self._stores[entry.kind].assume(entry.object)

    def _volume_restored(self, entry: VolumeRestored) -> None:
        store = self._stores[entry.kind]
        store.restore(store.key_of(_named(entry)))

    # --- all of it --------------------------------------------------------------------------

    def placements(self) -> dict[str, str]:
        """Return the node of each pod that has one, by uid."""
        nodes = ((uid, self.cluster.node_of(uid)) for uid in self._placed)
        return {uid: node_name for uid, node_name in nodes if node_name is not None}

    def objects(self, kind: str) -> Iterator[Any]:
        """Return the objects of a kind; pods and volumes as assumed."""
        table = self.cluster.table
        if kind == "Node":
            for row in table.order.rows().tolist():
                yield table.node_at(row)
        elif kind == "Pod":
            yield from self._pods()
        else:
            yield from self._stores[kind]

    def _pods(self) -> Iterator[Pod]:
        for uid in self._placed:
            info, node_name = self.cluster.pod(uid), self.cluster.node_of(uid)
            if info is not None and node_name is not None:
                placed = info.pod.spec.node_name == node_name
                yield info.pod if placed else info.object_on(node_name)
        for uid, pod in self.pending.items():
            if uid not in self._placed:
                yield pod


def _named(entry: Removed | VolumeRestored) -> Any:  # noqa: ANN401 (of the kind's type)
    meta = ObjectMeta(namespace=entry.namespace, name=entry.name)
    return KINDS[entry.kind].type(metadata=meta)
