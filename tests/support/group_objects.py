"""Builders of pod groups and their members, and a laboratory to schedule them in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Node, Pod, PodSchedulingGroup
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheduling import (
    BasicPolicy,
    CompositeGangPolicy,
    CompositePodGroup,
    CompositePodGroupSpec,
    CompositeSchedulingPolicy,
    CoscheduledGroup,
    CoscheduledGroupSpec,
    DisruptionMode,
    EmptyMode,
    GangPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    SchedulingConstraints,
    TopologyConstraint,
)
from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_groups import POD_GROUP_LABEL, GroupKey, GroupKind
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.features import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import GroupInfo
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.group_cycle import GroupCycle
from kubesched.scheduler.group_results import GroupResult, GroupResults
from kubesched.scheduler.group_trial import GroupTrialRun
from tests.support.objects import pod
from tests.support.scheduling import RecordingEvictor, cluster_of, framework_of

GROUPS = FeatureGates.of({"GenericWorkload": True})
TOPOLOGY = GROUPS.replace(TopologyAwareWorkloadScheduling=True)
COMPOSITE = TOPOLOGY.replace(CompositePodGroup=True)


def pod_group(
    name: str = "g",
    *,
    gang: int | None = None,
    topology: str | None = None,
    all_or_none: bool = False,
    priority: int | None = None,
    parent: str | None = None,
    created: str | None = None,
    policy: str | None = None,
) -> PodGroup:
    """A PodGroup: a gang if it is said how many pods it needs, otherwise a basic one."""
    return PodGroup(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"uid-{name}",
            resource_version="1",
            creation_timestamp=created,
        ),
        spec=PodGroupSpec(
            parent_composite_pod_group_name=parent,
            scheduling_policy=PodGroupSchedulingPolicy(
                basic=BasicPolicy() if gang is None else None,
                gang=None if gang is None else GangPolicy(min_count=gang),
            ),
            scheduling_constraints=_constraints(topology),
            disruption_mode=DisruptionMode(all=EmptyMode()) if all_or_none else None,
            priority=priority,
            preemption_policy=policy,
        ),
    )


def composite(
    name: str = "top",
    *,
    gang: int | None = None,
    topology: str | None = None,
    all_or_none: bool = False,
    priority: int | None = None,
    parent: str | None = None,
) -> CompositePodGroup:
    """A group of groups."""
    return CompositePodGroup(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        spec=CompositePodGroupSpec(
            parent_composite_pod_group_name=parent,
            scheduling_policy=CompositeSchedulingPolicy(
                gang=None if gang is None else CompositeGangPolicy(min_group_count=gang)
            ),
            scheduling_constraints=_constraints(topology),
            disruption_mode=DisruptionMode(all=EmptyMode()) if all_or_none else None,
            priority=priority,
        ),
    )


def _constraints(topology: str | None) -> SchedulingConstraints | None:
    if topology is None:
        return None
    return SchedulingConstraints(topology=(TopologyConstraint(key=topology),))


def member(name: str, group: str = "g", **options: Any) -> Pod:
    """A pod of a group."""
    made = pod(name, **options)
    of_group = PodSchedulingGroup(pod_group_name=group)
    return replace(made, spec=replace(made.spec, scheduling_group=of_group))


def coscheduled(
    name: str = "g", *, members: int = 1, created: str | None = None, **spec: Any
) -> CoscheduledGroup:
    """A PodGroup of scheduler-plugins."""
    return CoscheduledGroup(
        metadata=ObjectMeta(
            name=name, namespace="default", uid=f"uid-{name}", creation_timestamp=created
        ),
        spec=CoscheduledGroupSpec(min_member=members, **spec),
    )


def labelled(name: str, group: str = "g", **options: Any) -> Pod:
    """A pod of such a group."""
    return pod(name, labels={POD_GROUP_LABEL: group}, **options)


def coscheduled_key(name: str = "g") -> GroupKey:
    """The key of such a group."""
    return GroupKey(GroupKind.COSCHEDULED, "default", name)


def key(name: str = "g") -> GroupKey:
    """The key of a PodGroup."""
    return GroupKey(GroupKind.POD_GROUP, "default", name)


def composite_key(name: str = "top") -> GroupKey:
    """The key of a CompositePodGroup."""
    return GroupKey(GroupKind.COMPOSITE, "default", name)


class GroupLab:
    """A cluster, its groups, and the group cycle."""

    def __init__(
        self,
        *objects: Node | Pod | PodGroup | CompositePodGroup,
        gates: FeatureGates = GROUPS,
    ) -> None:
        self.cluster = cluster_of(*(each for each in objects if isinstance(each, Node | Pod)))
        for each in objects:
            if isinstance(each, PodGroup):
                self.cluster.groups.objects.put(each)
            elif isinstance(each, CompositePodGroup):
                self.cluster.groups.composites.put(each)
        self.evictor = RecordingEvictor()
        self.framework = framework_of(self.cluster, gates=gates, evictor=self.evictor)
        self.forest = GroupForest(self.cluster.groups, composite=gates.enabled("CompositePodGroup"))
        self.cycle = GroupCycle(
            self.cluster,
            SchedulingCycle(self.cluster, seed=0),
            with_placements=gates.enabled("TopologyAwareWorkloadScheduling"),
            with_composites=gates.enabled("CompositePodGroup"),
        )
        #: what plugins remember about the last attempt
        self.state = CycleState()

    def pending(self, *pods: Pod) -> list[PodInfo]:
        """Compile pods that want a node, and make them known as members."""
        infos = [self.cluster.compiler.pending(each) for each in pods]
        for info in infos:
            self.cluster.groups.put_pending(info)
        return infos

    def info(self, root: GroupKey, pods: Sequence[PodInfo]) -> GroupInfo:
        """Return what plugins see of a group with these members."""
        group = self.forest.get(root)
        assert group is not None
        children = tuple(self.info(child, pods) for child in self.forest.children(root))
        own = tuple(each for each in pods if self.cluster.groups.of(each.pod) == root)
        below = tuple(each for child in children for each in child.pods)
        return GroupInfo(root, group, own + below, children)

    def run(self, *pods: Pod, root: GroupKey | None = None) -> GroupResults:
        """Try a group; the cluster stays as it is."""
        self.state = CycleState()
        root = root or key()
        results = self.cycle.run(self.framework, self.info(root, self.pending(*pods)), self.state)
        self.cluster.validate()
        return results

    def result(self, *pods: Pod) -> GroupResult:
        """Try the PodGroup "g"."""
        return self.run(*pods)[key()]

    def trial(self, group: GroupInfo) -> GroupTrialRun:
        """Return what plugins search for victims with."""
        return GroupTrialRun(self.cycle, self.cluster, self.framework, group)


def nodes_of(result: GroupResult) -> dict[str, str]:
    """Return the node that was found for each member that was tried, "" for none."""
    return {each.pod.uid: each.decision.node_name for each in result.members}


def messages_of(result: GroupResult) -> dict[str, str]:
    """Return why members that were tried have no node."""
    return {
        each.pod.uid: each.decision.status.message
        for each in result.members
        if not each.decision.node_name
    }


ZONE = names.LABEL_ZONE
