"""What must hold of a group before it is tried: its pods have to agree with it, and each other."""

from __future__ import annotations

from collections.abc import Container, Iterable

from kubesched.api.core import Pod
from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_groups import GroupKey, GroupKind
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.group import GroupInfo
from kubesched.queue.queued_group import QueuedGroup

DEFAULT_POLICY = "PreemptLowerPriority"


def build_info(
    forest: GroupForest, queued: QueuedGroup, leaving_out: Container[str] = ()
) -> GroupInfo | None:
    """Return the `GroupInfo` of a queued group; None if an object of the tree was deleted."""
    pods = (pod.info for pod in queued.pods())
    return info_of(forest, queued.group, [pod for pod in pods if pod.uid not in leaving_out])


def info_of(forest: GroupForest, root: GroupKey, members: Iterable[PodInfo]) -> GroupInfo | None:
    """Return the `GroupInfo` of a group with some members, in order; None if it was deleted."""
    pods: dict[GroupKey, list[PodInfo]] = {}
    for info in members:
        leaf = forest.groups.of(info.pod)
        if leaf is not None:
            pods.setdefault(leaf, []).append(info)

    def build(key: GroupKey) -> GroupInfo | None:
        group = forest.get(key)
        children = [build(child) for child in forest.children(key)]
        if group is None:
            return None
        known = tuple(child for child in children if child is not None)
        own = tuple(pods.get(key, ()))
        below = tuple(pod for child in known for pod in child.pods)
        return GroupInfo(key, group, own + below, known)

    return build(root)


def disagreement(root: GroupInfo, placed: Iterable[Pod], *, groups_have_policy: bool) -> str:
    """Return in what a pod of the group differs from the group or the first pod, "" if in nothing.

    `placed` are the pods of the group that have a node. A group of scheduler-plugins has neither a
    priority nor a preemption policy to agree with. Of the preemption policy counts what the
    group says if `groups_have_policy`, which the gate PodGroupPreemptionPolicy decides.
    """
    scheduler_name = policy = ""
    if groups_have_policy:
        policy = root.group.spec.preemption_policy or DEFAULT_POLICY
    whole = " as the pod group's preemption policy" if groups_have_policy else ""
    for pod in (*(info.pod for info in root.pods), *placed):
        spec = pod.spec
        scheduler_name = scheduler_name or spec.scheduler_name
        if spec.scheduler_name != scheduler_name:
            return (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{spec.scheduler_name}" and "{scheduler_name}"'
            )
        if root.key.kind is GroupKind.COSCHEDULED:
            continue
        if (spec.priority or 0) != root.priority:
            return (
                "all pods in a single pod group should have the same priority as the pod group's "
                f"priority, got {spec.priority or 0} and {root.priority}"
            )
        own = spec.preemption_policy or DEFAULT_POLICY
        policy = policy or own
        if own != policy:
            return (
                "all pods in a single pod group should have the same preemption policy"
                f"{whole}, got {own} and {policy}"
            )
    return ""
