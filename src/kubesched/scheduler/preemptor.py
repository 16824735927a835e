"""Preemptors: a pod, or a group of pods."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kubesched.client import resources
from kubesched.client.meta import ObjectReference
from kubesched.cluster.pod_groups import GroupKind
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.group import GroupInfo
from kubesched.scheduler.recorders import reference

POD = "pod"
#: In place of the node's name where victims may be on several nodes.
CLUSTER = "cluster"


API_VERSIONS: Final = {
    GroupKind.POD_GROUP: resources.POD_GROUPS.api_version,
    GroupKind.COMPOSITE: "scheduling.k8s.io/v1alpha3",
    GroupKind.COSCHEDULED: resources.COSCHEDULED_GROUPS.api_version,
}


class Preemptor(Struct, frozen=True):
    """What evictions read of the preemptor."""

    #: "pod", "podgroup" or "compositepodgroup"
    kind: str
    uid: str
    full_name: str
    scheduler_name: str
    priority: int
    reference: ObjectReference
    #: the node of the victims, "cluster" for groups
    target: str
    #: uids of its pods
    pods: tuple[str, ...]

    @classmethod
    def of_pod(cls, pod: PodInfo, node_name: str) -> Preemptor:
        """Return a pod that preempts on a node."""
        return cls(
            kind=POD,
            uid=pod.uid,
            full_name=pod.full_name,
            scheduler_name=pod.pod.spec.scheduler_name,
            priority=pod.priority,
            reference=reference(pod.pod),
            target=node_name,
            pods=(pod.uid,),
        )

    @classmethod
    def of_group(cls, group: GroupInfo) -> Preemptor:
        """Return a group that preempts."""
        meta, is_composite = group.group.metadata, group.key.kind is GroupKind.COMPOSITE
        version = API_VERSIONS[group.key.kind]
        return cls(
            kind=GroupKind.COMPOSITE if is_composite else GroupKind.POD_GROUP,
            uid=meta.uid,
            full_name=group.key.full_name,
            scheduler_name=group.pods[0].pod.spec.scheduler_name,
            priority=group.priority,
            reference=ObjectReference(
                kind="CompositePodGroup" if is_composite else "PodGroup",
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
                api_version=version,
                resource_version=meta.resource_version,
            ),
            target=CLUSTER,
            pods=tuple(pod.uid for pod in group.pods),
        )
