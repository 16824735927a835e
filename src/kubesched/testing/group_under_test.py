"""Groups of pods in tests: gangs, their placement as a whole, and expectations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.api.meta import ObjectMeta
from kubesched.api.scheduling import (
    BasicPolicy,
    DisruptionMode,
    EmptyMode,
    GangPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    SchedulingConstraints,
    TopologyConstraint,
)
from kubesched.cluster.pod_groups import GroupKey, key_of_group
from kubesched.testing.objects import PodProperties

if TYPE_CHECKING:
    from kubesched.testing.workbench import Workbench


def make_pod_group(
    name: str,
    *,
    min_count: int | None = None,
    topology: str = "",
    priority: int = 0,
    disrupted_together: bool = False,
    namespace: str = "default",
) -> PodGroup:
    """Make a gang that needs `min_count` pods; a basic group without it.

    All nodes have the same value of the label `topology`, if it is given.
    """
    gang = None if min_count is None else GangPolicy(min_count=min_count)
    basic = BasicPolicy() if min_count is None else None
    constraints = SchedulingConstraints(topology=(TopologyConstraint(key=topology),))
    return PodGroup(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"{namespace}/{name}"),
        spec=PodGroupSpec(
            scheduling_policy=PodGroupSchedulingPolicy(basic=basic, gang=gang),
            scheduling_constraints=constraints if topology else None,
            disruption_mode=DisruptionMode(all=EmptyMode()) if disrupted_together else None,
            priority=priority,
        ),
    )


class GroupOutcome(Struct, frozen=True, kw_only=True):
    """The result of scheduling a group."""

    group: str
    #: pod → its node; empty if too few fit
    nodes: Mapping[str, str] = {}
    #: how many members there are, with and without a node
    members: int = 0
    #: why too few fit, as in the group's condition
    message: str = ""
    #: why it is not even tried
    gate: str = ""
    #: the pods that would be evicted for it
    victims: tuple[str, ...] = ()
    #: pod → why it has no node
    pending: Mapping[str, str] = {}

    @property
    def per_node(self) -> Counter[str]:
        """The number of pods on each node."""
        return Counter(self.nodes.values())

    def __str__(self) -> str:
        if self.nodes:
            placed = ", ".join(f"{node} {count}" for node, count in self.per_node.items())
            return f"group {self.group}: {len(self.nodes)} of {self.members} pods land: {placed}"
        return f"group {self.group} stays pending: {self.gate or self.message}"


class GroupUnderTest:
    """A group with expectations; scheduled as a whole when first checked."""

    def __init__(self, workbench: Workbench, group: PodGroup) -> None:
        self._workbench = workbench
        self.object = group
        self._members: list[Pod] = []
        self._outcome: GroupOutcome | None = None

    @property
    def key(self) -> GroupKey:
        """Its kind, namespace and name."""
        return key_of_group(self.object)

    @property
    def members(self) -> list[Pod]:
        """The members that were added, without those on nodes."""
        return self._members

    def pod(self, name: str = "", **properties: Unpack[PodProperties]) -> Pod:
        """Add a member, or place one on its `node`."""
        meta = self.object.metadata
        properties["group"], properties["namespace"] = meta.name, meta.namespace
        properties.setdefault("priority", self.object.spec.priority or 0)
        made = self._workbench.pod(name, **properties).object
        if not made.spec.node_name:
            self._members.append(made)
        return made

    def pods(self, count: int, **properties: Unpack[PodProperties]) -> GroupUnderTest:
        """Add several members that differ only in name."""
        for _ in range(count):
            self.pod(**properties)
        return self

    @property
    def outcome(self) -> GroupOutcome:
        """The result of scheduling it; members that get a node are on it from now on."""
        if self._outcome is None:
            self._outcome = self._workbench.decide_group(self)
        return self._outcome

    def lands(self) -> GroupOutcome:
        """Expect that all members get a node."""
        __tracebackhide__ = True
        outcome = self.outcome
        if len(outcome.nodes) < outcome.members:
            raise AssertionError(f"expected that all {outcome.members} pods land\n{outcome}")
        return outcome

    def lands_on(self, *nodes: str) -> GroupOutcome:
        """Expect that all members get one of these nodes, and each node some of them."""
        __tracebackhide__ = True
        outcome = self.lands()
        if set(outcome.nodes.values()) != set(nodes):
            raise AssertionError(f"expected {', '.join(nodes)}\n{outcome}")
        return outcome

    def lands_in(self, domain: str) -> GroupOutcome:
        """Expect that all members get nodes with this value of the group's topology label."""
        __tracebackhide__ = True
        outcome = self.lands()
        found = self._workbench.domains(self.object, outcome.nodes.values())
        if found != {domain}:
            raise AssertionError(f"expected {domain}, got {', '.join(sorted(found))}\n{outcome}")
        return outcome

    def stays_pending_because(self, reason: str) -> GroupOutcome:
        """Expect that none of its members get a node, and that this is said of it or of one."""
        __tracebackhide__ = True
        outcome = self.outcome
        said = [outcome.gate, outcome.message, *outcome.pending.values()]
        if outcome.nodes or not any(reason in each for each in said):
            raise AssertionError(f"expected that it stays pending because {reason!r}\n{outcome}")
        return outcome
