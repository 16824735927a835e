"""Why a pod is pending, from the condition that its scheduler wrote.

The message of a condition has the reasons, but not the plugins. The texts are Kubernetes' and
stable, so plugins are inferred from them; where none matches, no plugin is named.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kubesched.api import names
from kubesched.api.core import Pod, PodCondition
from kubesched.explain.unclaimed import is_unclaimed, unclaimed_message
from kubesched.web.report import PendingPodReport

ACTIVE: Final = "active"
BACKOFF: Final = "backoff"
UNSCHEDULABLE: Final = "unschedulable"
GATED: Final = "gated"
UNCLAIMED: Final = "unclaimed"

#: A Deployment's pods have it; their ReplicaSet's name ends with it.
_TEMPLATE_HASH: Final = "pod-template-hash"
_GATED_REASON: Final = "SchedulingGated"
#: Part of a message → its plugin.
_WHO_SAYS: Final = (
    ("Insufficient ", "NodeResourcesFit"),
    ("Too many pods", "NodeResourcesFit"),
    ("untolerated taint", "TaintToleration"),
    ("node affinity/selector", "NodeAffinity"),
    ("node(s) didn't match the requested node name", "NodeName"),
    ("node(s) were unschedulable", "NodeUnschedulable"),
    ("free ports for the requested pod ports", "NodePorts"),
    ("pod topology spread constraints", "PodTopologySpread"),
    ("pod affinity rules", "InterPodAffinity"),
    ("anti-affinity rules", "InterPodAffinity"),
    ("volume node affinity conflict", "VolumeBinding"),
    ("persistent volumes to bind", "VolumeBinding"),
    ("persistentvolumeclaim ", "VolumeBinding"),
    ("not have enough free storage", "VolumeBinding"),
    ("unbound immediate PersistentVolumeClaims", "VolumeBinding"),
    ("no available volume zone", "VolumeZone"),
    ("max volume count", "NodeVolumeLimits"),
    ("ReadWriteOncePod", "VolumeRestrictions"),
    ("no available disk", "VolumeRestrictions"),
    ("resourceclaim", "DynamicResources"),
    ("allocate all claims", "DynamicResources"),
    ("minCount (", "GangScheduling"),
    ("pod group is unschedulable", "GangScheduling"),
)


def waiting_pod(pod: Pod, profiles: Collection[str]) -> PendingPodReport:
    """Return the report of a pending pod; `profiles` are those of the scheduler."""
    said = scheduled_condition(pod)
    if is_unclaimed(pod, profiles):
        return PendingPodReport(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            state=UNCLAIMED,
            message=unclaimed_message(pod, profiles),
            since=pod.metadata.creation_timestamp or "",
            priority=pod.spec.priority or 0,
            group=group_name(pod),
            workload=workload_of(pod),
        )
    gated = bool(pod.spec.scheduling_gates)
    message = said.message if said is not None else ""
    return PendingPodReport(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        state=GATED if gated else _state(said),
        plugins=("SchedulingGates",) if gated else plugins_named(message),
        message=message or (gates_message(pod) if gated else ""),
        since=pod.metadata.creation_timestamp or "",
        priority=pod.spec.priority or 0,
        group=group_name(pod),
        workload=workload_of(pod),
    )


def group_name(pod: Pod) -> str:
    """Return the name of a pod's group, "" if it has none."""
    group = pod.spec.scheduling_group
    return "" if group is None else group.pod_group_name or ""


def workload_of(pod: Pod) -> str:
    """Return kind and name of a pod's controller; that of a ReplicaSet, if it tells its name."""
    for owner in pod.metadata.owner_references:
        if owner.controller:
            of_template = (pod.metadata.labels or {}).get(_TEMPLATE_HASH)
            if owner.kind == "ReplicaSet" and of_template:
                return f"Deployment/{owner.name.removesuffix(f'-{of_template}')}"
            return f"{owner.kind}/{owner.name}"
    return ""


def scheduled_condition(pod: Pod) -> PodCondition | None:
    """Return the last scheduling condition of a pod."""
    return next((each for each in pod.status.conditions if each.type == names.POD_SCHEDULED), None)


def plugins_named(message: str) -> tuple[str, ...]:
    """Return the plugins whose reasons a message holds."""
    # The part about preemption repeats the nodes.
    reasons = message.partition(". preemption:")[0].partition(" preemption:")[0]
    return tuple(dict.fromkeys(plugin for text, plugin in _WHO_SAYS if text in reasons))


def _state(said: PodCondition | None) -> str:
    if said is None:
        return ACTIVE
    if said.reason == _GATED_REASON:
        return GATED
    return UNSCHEDULABLE if said.reason == names.POD_REASON_UNSCHEDULABLE else BACKOFF


def gates_message(pod: Pod) -> str:
    """Return the message for a gated pod."""
    named = " ".join(each.name for each in pod.spec.scheduling_gates)
    return f"waiting for scheduling gates: [{named}]"
