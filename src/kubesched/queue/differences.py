"""Derives cluster events from the difference between two versions of a node or a pod.

Kubelets update nodes and pods all the time without changing anything that scheduling reads. Such an
update of a node causes no event, one of a pod the general update event.
"""

from __future__ import annotations

from kubesched.api.core import Node, Pod
from kubesched.api.requests import RESIZE_PENDING, Nanos, exact_requests, node_allocatable
from kubesched.errors import ObjectError
from kubesched.queue.events import Action, ClusterEvent, Resource


def node_events(old: Node, new: Node) -> list[ClusterEvent]:
    """Return the events that the update of a node causes."""
    if _is_heartbeat(old, new):
        return []
    changed = {
        Action.UPDATE_NODE_ALLOCATABLE: _allocatable_changed(old, new),
        Action.UPDATE_NODE_LABEL: (old.metadata.labels or {}) != (new.metadata.labels or {}),
        Action.UPDATE_NODE_TAINT: old.spec.taints != new.spec.taints,
        Action.UPDATE_NODE_CONDITION: _conditions(old) != _conditions(new),
        Action.UPDATE_NODE_ANNOTATION: old.metadata.annotations != new.metadata.annotations,
        Action.UPDATE_NODE_PREEMPTION_POLICY: (
            old.spec.pod_preemption_policy != new.spec.pod_preemption_policy
        ),
        Action.UPDATE_NODE_DECLARED_FEATURE: (
            old.status.declared_features != new.status.declared_features
        ),
    }
    actions = [action for action, is_changed in changed.items() if is_changed]
    if old.spec.unschedulable and not new.spec.unschedulable:
        actions.insert(0, Action.UPDATE_NODE_TAINT)
    return [ClusterEvent(Resource.NODE, action) for action in actions]


def pod_events(old: Pod, new: Pod, *, is_target: bool = False) -> list[ClusterEvent]:
    """Return the events that the update of a pod causes: a general one if none is specific.

    `is_target`: for the parked pod itself, as opposed to other parked pods.
    """
    without_node = Resource.TARGET_POD if is_target else Resource.UNSCHEDULED_POD
    resource = Resource.ASSIGNED_POD if new.spec.node_name else without_node
    gates_gone = bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates
    tolerations = len(old.spec.tolerations), len(new.spec.tolerations)
    shrunk, grown = _resized(old, new)
    changed = {
        Action.UPDATE_POD_LABEL: (old.metadata.labels or {}) != (new.metadata.labels or {}),
        Action.UPDATE_POD_SCALE_DOWN: shrunk,
        Action.UPDATE_POD_SCALE_UP: grown,
        Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: gates_gone,
        Action.UPDATE_POD_TOLERATION: tolerations[0] != tolerations[1],
        Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: (
            old.status.resource_claim_statuses != new.status.resource_claim_statuses
            or old.status.extended_resource_claim_status
            != new.status.extended_resource_claim_status
        ),
    }
    actions = [action for action, is_changed in changed.items() if is_changed]
    return [ClusterEvent(resource, action) for action in actions or [Action.UPDATE]]


def _is_heartbeat(old: Node, new: Node) -> bool:
    """Return whether nothing changed that scheduling reads, as in most updates."""
    before, after = old.metadata, new.metadata
    return (
        old.status == new.status
        and old.spec == new.spec
        and before.labels == after.labels
        and before.annotations == after.annotations
    )


def _allocatable_changed(old: Node, new: Node) -> bool:
    if old.status.allocatable == new.status.allocatable:
        return False
    try:
        return node_allocatable(old) != node_allocatable(new)
    except ObjectError:
        return True


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def _resized(old: Pod, new: Pod) -> tuple[bool, bool]:
    """Return whether a pod requests less of something than before, and whether more."""
    if _resources(old) == _resources(new):
        return False, False
    try:
        before, after = exact_requests(old, use_status=True), exact_requests(new, use_status=True)
    except ObjectError:
        return True, True  # the amounts of one of them cannot be read
    return _has_more(before, after), _has_more(after, before)


def _has_more(these: Nanos, than: Nanos) -> bool:
    return any(amount > than.get(name, -1) for name, amount in these.items())


def _resources(pod: Pod) -> tuple[object, ...]:
    return (
        pod.spec.containers,
        pod.spec.init_containers,
        pod.spec.resources,
        pod.status.container_statuses,
        pod.status.init_container_statuses,
        pod.status.resources,
        pod.status.allocated_resources,
        # Of all conditions, which change often, only this one decides what counts as requested.
        [each for each in pod.status.conditions if each.type == RESIZE_PENDING],
    )
