"""The workload that a pod belongs to: its controller, and for a ReplicaSet the controller of that.

pod ── controller ──> ReplicaSet ── controller ──> Deployment, Rollout, …
                         └── not in the snapshot: its name without the hash of the template
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kubesched.api.core import Pod
from kubesched.api.meta import OwnerReference
from kubesched.api.workloads import ReplicaSet
from kubesched.cluster.object_store import NamespacedStore
from kubesched.snapshot.world import World

_HASH_LABEL: Final = "pod-template-hash"
_REPLICA_SET: Final = "ReplicaSet"
_DEPLOYMENT: Final = "Deployment"


class WorkloadName(NamedTuple):
    """A controller of pods."""

    kind: str
    namespace: str
    name: str

    @property
    def full_name(self) -> str:
        """What it is called in texts."""
        return f"{self.kind} {self.namespace}/{self.name}"


def controller(owners: Sequence[OwnerReference]) -> OwnerReference | None:
    """Return the owner that controls an object."""
    return next((each for each in owners if each.controller), None)


def workload_of(
    pod: Pod, replica_sets: NamespacedStore[ReplicaSet] | None = None
) -> WorkloadName | None:
    """Return the workload of a pod, None for one that no controller made."""
    meta = pod.metadata
    owner = controller(meta.owner_references)
    if owner is None:
        return None
    own = WorkloadName(owner.kind, meta.namespace, owner.name)
    if owner.kind != _REPLICA_SET:
        return own
    known = None if replica_sets is None else replica_sets.get(meta.namespace, owner.name)
    if known is not None:
        return _above(known) or own
    of_template = (meta.labels or {}).get(_HASH_LABEL)
    if of_template and owner.name.endswith(f"-{of_template}"):
        name = owner.name.removesuffix(f"-{of_template}")
        return WorkloadName(_DEPLOYMENT, meta.namespace, name)
    return own


def _above(replica_set: ReplicaSet) -> WorkloadName | None:
    meta = replica_set.metadata
    owner = controller(meta.owner_references)
    return None if owner is None else WorkloadName(owner.kind, meta.namespace, owner.name)


def replica_set_of(pod: Pod) -> WorkloadName | None:
    """Return the ReplicaSet that made a pod, None if another controller did."""
    owner = controller(pod.metadata.owner_references)
    if owner is None or owner.kind != _REPLICA_SET:
        return None
    return WorkloadName(_REPLICA_SET, pod.metadata.namespace, owner.name)


def known_workloads(world: World, pods: Iterable[Pod]) -> Iterator[WorkloadName]:
    """Return the workloads that pods belong to, and others that the snapshot has."""
    workloads = world.cluster.workloads
    for pod in pods:
        yield from filter(None, (workload_of(pod, workloads.replica_sets), replica_set_of(pod)))
    for each in workloads.replica_sets:
        yield WorkloadName(_REPLICA_SET, each.metadata.namespace, each.metadata.name)
        yield from filter(None, (_above(each),))
    for stateful_set in workloads.stateful_sets:
        meta = stateful_set.metadata
        yield WorkloadName("StatefulSet", meta.namespace, meta.name)
    for controller_of_replicas in workloads.replication_controllers:
        meta = controller_of_replicas.metadata
        yield WorkloadName("ReplicationController", meta.namespace, meta.name)
