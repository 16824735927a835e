"""Deciding about groups as the scheduler would: nothing is bound, and nothing is evicted.

group ──> members without a node ──> GroupCycle, PodGroupPostFilter ──> GroupDecision
                            └──> survey: every placement, every member, whether or not enough fit
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_groups import GroupKey
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.transaction import Transaction
from kubesched.config.features import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import Assignment, GroupInfo, Placement
from kubesched.framework.runtime import Framework
from kubesched.framework.status import SUCCESS, Code, Status, error
from kubesched.scheduler.cycle import Decision
from kubesched.scheduler.group_checks import disagreement, info_of
from kubesched.scheduler.group_cycle import GroupCycle, place_member, withdraw
from kubesched.scheduler.group_results import (
    GroupResult,
    GroupResults,
    MemberResult,
    add_post_filter,
    all_outcomes,
    complete,
)
from kubesched.scheduler.group_trial import GroupTrialRun

if TYPE_CHECKING:
    from kubesched.scheduler.dry_run import DryRun


class GroupDecision(Struct, frozen=True, eq=False):
    """What would become of a group."""

    framework: Framework
    root: GroupInfo
    #: of the root: whether enough of it fit, or why not
    status: Status
    #: why a plugin keeps members out of the queue, Success if none does
    gate: Status = SUCCESS
    #: by group of the tree; none for a group that is not tried
    results: GroupResults = {}
    #: the pods to be evicted for it
    victims: tuple[PodInfo, ...] = ()

    @property
    def assigned(self) -> list[Assignment]:
        """The members that get a node; none if too few do."""
        if not self.status.ok:
            return []
        fitting = (each for each in self.results.values() if each.status.ok)
        return [assigned for each in fitting for assigned in each.assigned()]

    def message_of(self, pod: PodInfo) -> str:
        """Return why a member gets no node, as in its condition."""
        found = (each for each in all_outcomes(self.results) if each.pod.uid == pod.uid)
        told = next(found, None)
        return self.status.message if told is None else told.status.message

    def result_of(self, key: GroupKey) -> GroupResult | None:
        """Return what became of one group of the tree."""
        return self.results.get(key)


class SurveyedPlacement(Struct, frozen=True, eq=False):
    """A placement with what would become of every member on it."""

    placement: Placement
    members: Sequence[MemberResult]

    @property
    def fitting(self) -> int:
        """How many members fit together."""
        return sum(bool(each.decision.node_name) for each in self.members)


class GroupDryRun:
    """Decides about groups of a cluster."""

    def __init__(self, engine: DryRun, gates: FeatureGates) -> None:
        self._engine = engine
        self._gates = gates
        composite = gates.enabled("CompositePodGroup")
        self.forest = GroupForest(engine.cluster.groups, composite=composite)

    @property
    def _cycle(self) -> GroupCycle:
        gates, engine = self._gates, self._engine
        return GroupCycle(
            engine.cluster,
            engine.cycle,
            with_placements=gates.enabled("TopologyAwareWorkloadScheduling"),
            with_composites=gates.enabled("CompositePodGroup"),
        )

    def info(self, key: GroupKey, pods: Iterable[PodInfo] | None = None) -> GroupInfo | None:
        """Return a group with some members; by default those without a node, the oldest first.

        None if an object of its tree is not there.
        """
        if pods is None:
            leaves = self.forest.leaves(key)
            members = (
                pod for leaf in leaves for pod in self.forest.groups.members(leaf).unplaced()
            )
            pods = sorted(members, key=_age)
        return info_of(self.forest, key, pods)

    def decide(self, root: GroupInfo, *, preempts: bool = True) -> GroupDecision:
        """Return what would become of a group with the given members, of which there are some.

        Unless it `preempts`, PodGroupPostFilter does not run.
        """
        framework = self._engine.framework_of(root.pods[0].pod.spec.scheduler_name)
        placed = [pod.pod for pod in self.forest.placed(root.key)]
        has_policy = self._gates.enabled("PodGroupPreemptionPolicy")
        problem = disagreement(root, placed, groups_have_policy=has_policy)
        if problem:
            return GroupDecision(framework, root, error(problem))
        gates = (framework.gate(pod) for pod in root.pods)
        gate = next((each for each in gates if not each.ok), SUCCESS)
        if not gate.ok:
            return GroupDecision(framework, root, gate, gate)
        return self.attempt(framework, root, preempts=preempts)

    def attempt(
        self, framework: Framework, root: GroupInfo, *, preempts: bool = True
    ) -> GroupDecision:
        """Return what would become of a group that was taken from the queue."""
        state, cycle = CycleState(), self._cycle
        self._engine.evictor.taken()
        results = complete(root, cycle.run(framework, root, state))
        if preempts and results[root.key].status.code is Code.UNSCHEDULABLE:
            trial = GroupTrialRun(cycle, self._engine.cluster, framework, root)
            add_post_filter(results, framework.groups.post_filter(state, root, trial))
        status, victims = results[root.key].status, self._engine.victims()
        return GroupDecision(framework, root, status, results=results, victims=victims)

    def fits(self, framework: Framework, root: GroupInfo) -> list[Assignment]:
        """Return the nodes of members on the cluster as it is; none if too few fit."""
        results = complete(root, self._cycle.run(framework, root, CycleState()))
        return GroupDecision(framework, root, results[root.key].status, results=results).assigned

    def place(self, decision: GroupDecision, tx: Transaction) -> None:
        """Count the members that get a node on it, and reserve what they need, for a while."""
        for each in decision.assigned:
            tx.withdraw(each.pod)
            place_member(decision.framework, each, tx)

    def trial(self, framework: Framework, root: GroupInfo) -> GroupTrialRun:
        """Return what plugins search for victims with."""
        return GroupTrialRun(self._cycle, self._engine.cluster, framework, root)

    def survey(self, framework: Framework, group: GroupInfo) -> list[SurveyedPlacement]:
        """Try every member of a PodGroup on every placement, although too few may fit."""
        cluster = self._engine.cluster
        everywhere = Placement("", cluster.table.valid[: cluster.table.size].copy())
        placements: Sequence[Placement] = [everywhere]
        state = CycleState()
        if self._gates.enabled("TopologyAwareWorkloadScheduling"):
            placements, status = framework.groups.generate(state, group, everywhere)
            if not status.ok:
                return []
        with cluster.transaction() as tx:
            withdraw(group, tx)
            return [self._surveyed(framework, group, each, tx) for each in placements]

    def _surveyed(
        self, framework: Framework, group: GroupInfo, placement: Placement, tx: Transaction
    ) -> SurveyedPlacement:
        is_all = placement.count == len(self._engine.cluster.table)
        members, group_state = [], CycleState()
        with tx.part() as part:
            for pod in group.pods:
                state = CycleState()
                state.placement, state.group = None if is_all else placement.rows, group_state
                decision = self._engine.cycle.schedule_member(framework, state, pod)
                if decision.node_name:
                    assigned = Assignment(pod, decision.node_name, state)
                    rejection = place_member(framework, assigned, part)
                    decision = decision if rejection is None else Decision(rejection, state)
                members.append(MemberResult(pod, decision))
        return SurveyedPlacement(placement, members)


def _age(pod: PodInfo) -> tuple[int, str, str]:
    meta = pod.pod.metadata
    return -pod.priority, meta.creation_timestamp or "", meta.name
