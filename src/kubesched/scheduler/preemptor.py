"""Preemptors: a pod, or a group of pods."""

from __future__ import annotations

from msgspec import Struct

from kubesched.client import resources
from kubesched.client.meta import ObjectReference
from kubesched.cluster.pod_groups import GroupKind
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.group import GroupInfo
from kubesched.scheduler.recorders import reference

POD = "pod"
#: What takes the place of a node's name where victims are on any nodes.
CLUSTER = "cluster"


class Preemptor(Struct, frozen=True):
    """What evictions need to know of the pod or the group that they are for."""

    #: "pod", "podgroup" or "compositepodgroup"
    kind: str
    uid: str
    full_name: str
    scheduler_name: str
    priority: int
    reference: ObjectReference
    #: the node that it is to get, "cluster" for groups
    target: str
    #: uids of the pods that wait for it
    pods: tuple[str, ...]

    @classmethod
    def of_pod(cls, pod: PodInfo, node_name: str) -> Preemptor:
        """Return a pod that is to be on a node."""
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
        """Return a group."""
        meta, is_composite = group.group.metadata, group.key.kind is GroupKind.COMPOSITE
        version = "scheduling.k8s.io/v1alpha3" if is_composite else resources.POD_GROUPS.api_version
        return cls(
            kind=group.key.kind,
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
