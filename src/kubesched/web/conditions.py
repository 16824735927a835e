"""Why a pod waits, by what the scheduler in charge wrote into its condition.

The message of a condition says what keeps the pod away from nodes and not which plugin said so.
The texts are Kubernetes' and do not change, so they tell; where none does, no plugin is named.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kubesched.api import names
from kubesched.api.core import Pod, PodCondition
from kubesched.explain.unclaimed import is_unclaimed, unclaimed_message
from kubesched.web.report import WaitingPod

ACTIVE: Final = "active"
BACKOFF: Final = "backoff"
UNSCHEDULABLE: Final = "unschedulable"
GATED: Final = "gated"
UNCLAIMED: Final = "unclaimed"

_GATED_REASON: Final = "SchedulingGated"
#: Part of a message → the plugin that says so.
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
)


def waiting_pod(pod: Pod, profiles: Collection[str]) -> WaitingPod:
    """Tell how a pod waits that has no node; `profiles` are those of the scheduler."""
    said = scheduled_condition(pod)
    if is_unclaimed(pod, profiles):
        return WaitingPod(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            state=UNCLAIMED,
            message=unclaimed_message(pod, profiles),
            since=pod.metadata.creation_timestamp or "",
            priority=pod.spec.priority or 0,
        )
    gated = bool(pod.spec.scheduling_gates)
    message = said.message if said is not None else ""
    return WaitingPod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        state=GATED if gated else _state(said),
        plugins=("SchedulingGates",) if gated else plugins_named(message),
        message=message or (gates_message(pod) if gated else ""),
        since=pod.metadata.creation_timestamp or "",
        priority=pod.spec.priority or 0,
    )


def scheduled_condition(pod: Pod) -> PodCondition | None:
    """Return what a scheduler last said of a pod."""
    return next((each for each in pod.status.conditions if each.type == names.POD_SCHEDULED), None)


def plugins_named(message: str) -> tuple[str, ...]:
    """Return the plugins whose reasons a message holds."""
    # What preemption has to add speaks of the same nodes again.
    reasons = message.partition(". preemption:")[0].partition(" preemption:")[0]
    return tuple(dict.fromkeys(plugin for text, plugin in _WHO_SAYS if text in reasons))


def _state(said: PodCondition | None) -> str:
    if said is None:
        return ACTIVE
    if said.reason == _GATED_REASON:
        return GATED
    return UNSCHEDULABLE if said.reason == names.POD_REASON_UNSCHEDULABLE else BACKOFF


def gates_message(pod: Pod) -> str:
    """Say which gates hold a pod back."""
    named = " ".join(each.name for each in pod.spec.scheduling_gates)
    return f"waiting for scheduling gates: [{named}]"
