"""Cases of pod groups, which go through the queue and the group cycle (FORMAT-podgroups.md).

The queue, the group cycle and preemption are the scheduler's own. What stands in here is the world
around them: pods are bound and victims gone at once, and ties are settled by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.clock import VirtualClock
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_groups import GroupKey
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.features import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.feasible_nodes import Scored
from kubesched.framework.group import GroupInfo, Placement
from kubesched.framework.group_runtime import PlacementScores
from kubesched.framework.null_writers import NullEvictor
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Status
from kubesched.framework.waiting import PreBindingPods, WaitingPods
from kubesched.metrics.recorder import Metrics
from kubesched.observer import SchedulerObserver
from kubesched.plugins.default_preemption import DefaultPreemption
from kubesched.plugins.in_tree import IN_TREE
from kubesched.queue import events
from kubesched.queue.backoff import Backoff
from kubesched.queue.group_queue import GroupSchedulingQueue
from kubesched.queue.hints import Change
from kubesched.queue.queued_group import QueuedGroup
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod
from kubesched.scheduler.attempts import Attempts
from kubesched.scheduler.binding import PodToBind
from kubesched.scheduler.cycle import Decision, SchedulingCycle
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.group_cycle import GroupCycle
from kubesched.scheduler.group_reports import new_condition
from kubesched.scheduler.group_results import GroupResult, GroupResults, GroupVerdict
from kubesched.scheduler.group_scheduling import GroupScheduling
from kubesched.scheduler.state import SchedulerState

from .answers import CaseCluster, as_status
from .comparison import Difference
from .vectors import Vector

Json = Any


def group_differences(vector: Vector) -> list[Difference]:
    """Compare what we come to, attempt by attempt, up to the first that differs."""
    want, have = vector.expect, answer_queue(vector.case)
    for aspect in ("nodeOrder", "gated", "placed"):
        want.setdefault(aspect, {})
    if want["nodeOrder"] != have["nodeOrder"]:
        return [Difference("nodeOrder", "", want["nodeOrder"], have["nodeOrder"])]
    both = zip_longest(want["attempts"], have["attempts"])
    for index, (expected, actual) in enumerate(both):
        if expected != actual:
            return [Difference("attempts", str(index), expected, actual)]
    return [
        Difference(aspect, "", want[aspect], have[aspect])
        for aspect in ("gated", "placed")
        if want[aspect] != have[aspect]
    ]


def answer_queue(case: dict[str, Json]) -> dict[str, Json]:
    """Try everything in the queue until nothing is left that may get a node."""
    here = GroupCase(case)
    attempts = here.run()
    return {
        "id": case["id"],
        "nodeOrder": here.case.names(here.cluster.table.order.rows()),
        "attempts": attempts,
        "gated": here.gated(),
        "placed": here.placed(),
    }


class LowestNamePreemption(DefaultPreemption):
    """Of equally good nodes it takes the one with the lowest name."""

    def pick_row(self, rows: Sequence[int]) -> int:
        return min(rows, key=self._cluster.table.name_at)

    def _rotated(self, rows: IndexArray) -> IndexArray:
        return rows


class LowestNameCycle(SchedulingCycle):
    """Of equally good nodes it takes the one with the lowest name."""

    def __init__(self, case: CaseCluster) -> None:
        super().__init__(case.cluster)
        self._table = case.cluster.table
        self._ties = 1
        #: id of a state → how many nodes were equally good, and the state, so that it stays
        self.ties: dict[int, tuple[int, CycleState]] = {}

    def pick(self, scored: Scored) -> int:
        totals, rows = scored.totals(), scored.rows()
        best = rows[totals == totals.max()].tolist()
        self._ties = len(best)
        return min(best, key=self._table.name_at)

    def chosen(self, state: CycleState, row: int, *, evaluated: int, feasible: int) -> Decision:
        self.ties[id(state)] = self._ties if feasible > 1 else 1, state
        return super().chosen(state, row, evaluated=evaluated, feasible=feasible)


class LowestNameGroupCycle(GroupCycle):
    """Keeps what came out; of equally good placements it takes the one with the lowest name."""

    first: GroupResults | None = None

    def run(self, framework: Framework, root: GroupInfo, state: CycleState) -> GroupResults:
        results = super().run(framework, root, state)
        self.first = self.first or results
        return results

    def pick_placement(self, scores: Sequence[PlacementScores]) -> Placement:
        most = max(each.total for each in scores)
        best = (each.placement for each in scores if each.total == most)
        return min(best, key=lambda placement: placement.name)


class CaseEvictor(NullEvictor):
    """Takes note of the victims."""

    def __init__(self) -> None:
        self.victims: tuple[PodInfo, ...] = ()

    def evict(self, preemptor: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        self.victims = tuple(victims)

    def evict_for_group(self, group: GroupInfo, victims: Sequence[PodInfo]) -> None:
        self.victims = tuple(victims)


class Around:
    """Everything around the scheduler: time, what it is told, and what it tells."""

    def __init__(self, here: GroupCase) -> None:
        self._here = here
        self.clock = VirtualClock(1000.0)
        self.metrics = Metrics(here.gates)
        self.recorders = self
        self.observer = SchedulerObserver()

    # What is written about pods and groups.

    def warning(self, pod: Pod, **event: str) -> None:
        pass

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        return self._here.objects.get((namespace, name))

    # Nominations, without the events that they cause.

    def nominate(self, pod: PodInfo, node_name: str) -> None:
        self._here.cluster.nominator.nominate(pod, node_name)

    def withdraw(self, uid: str, *, placed_on: str = "") -> None:
        self._here.cluster.nominator.clear(uid)

    # Profiles.

    @property
    def frameworks(self) -> dict[str, Framework]:
        return {self._here.framework.scheduler_name: self._here.framework}

    def get(self, pod: Pod) -> Framework | None:
        return self.frameworks.get(pod.spec.scheduler_name, self._here.framework)


class PodReports:
    """What pods are told."""

    def __init__(self, here: GroupCase) -> None:
        self._here = here

    def submit(self, pod: Pod, status: Status, nominated_node: str | None) -> None:
        self._here.reported(pod, status, nominated_node)


class ConditionReports:
    """What groups are told."""

    def __init__(self, here: GroupCase) -> None:
        self._here = here

    def submit(self, key: GroupKey, uid: str, verdict: GroupVerdict) -> None:
        self._here.judged(key, verdict)


class GroupCase:
    """One case: the queue and the scheduler, and what they did."""

    def __init__(self, case: dict[str, Json]) -> None:
        self.gates = gates = FeatureGates.of(case["featureGates"])
        self.evictor = CaseEvictor()
        others = [each for each in IN_TREE.values() if each.name != DefaultPreemption.name]
        registry = type(IN_TREE)([*others, LowestNamePreemption])
        self.case = CaseCluster(case, registry=registry, evictor=self.evictor)
        self.cluster, self.framework = self.case.cluster, self.case.framework
        around: Any = Around(self)
        self.clock: VirtualClock = around.clock
        self.forest = GroupForest(self.cluster.groups)
        self.queue = GroupSchedulingQueue(
            self.forest,
            clock=self.clock,
            sort_key=self.framework.plugins.queue_sort[0].sort_key,
            gate=lambda pod: self.framework.gate(pod.info, pod.gated_by).plugin,
            registrations={self.framework.scheduler_name: self.framework.plugins.registrations()},
            backoff=Backoff(),
        )
        self.cycle = LowestNameCycle(self.case)
        self.group_cycle = LowestNameGroupCycle(
            self.cluster,
            self.cycle,
            with_placements=gates.enabled("TopologyAwareWorkloadScheduling"),
        )
        state = SchedulerState(self.cluster, self.queue, around, WaitingPods(), PreBindingPods())
        reports: Any = PodReports(self)
        conditions: Any = ConditionReports(self)
        attempts = Attempts(around.metrics, self.clock)
        self.failures = FailureHandler(around, state, reports=reports, attempts=attempts)
        self.scheduling = GroupScheduling(
            around,
            state,
            queue=self.queue,
            forest=self.forest,
            profiles=around,
            cycle=self.group_cycle,
            failures=self.failures,
            attempts=attempts,
            reports=conditions,
            groups_have_policy=gates.enabled("PodGroupPreemptionPolicy"),
            skips=lambda pod: False,
            bind=self._bind,
        )
        self._watch_post_filters()
        #: namespace and name → pod, as the API server would show it
        self.objects: dict[tuple[str, str], Pod] = {}
        self._index: dict[str, int] = {}
        #: uids of pods that were tried
        self._tried: set[str] = set()
        self.attempt: dict[str, Json] = {}
        self._post: tuple[Status, dict[str, str]] | None = None
        self._bound: list[PodToBind] = []
        for index, manifest in enumerate(case["pending"]):
            pod = msgspec.convert(manifest, Pod)
            self._index[pod.metadata.uid] = index
            self._show(pod)
            self.clock.advance(0.001)
            info = self.cluster.compiler.pending(pod)
            self.cluster.groups.put_pending(info)
            self.queue.add(info)
            if pod.status.nominated_node_name:
                self.cluster.nominator.nominate(info, pod.status.nominated_node_name)
            self.queue.move(Change(events.UNSCHEDULED_POD_ADD, new=pod))

    def _show(self, pod: Pod) -> None:
        self.objects[pod.metadata.namespace, pod.metadata.name] = pod

    def _watch_post_filters(self) -> None:
        points: Any = self.framework.groups
        framework: Any = self.framework
        of_group, of_pod = points.post_filter, framework.post_filter

        def group(*given: Any) -> Any:
            result = of_group(*given)
            self._post = result.status, dict(result.nominations)
            return result

        def pod(*given: Any) -> Any:
            result = of_pod(*given)
            self._post = result.status, {}
            return result

        points.post_filter = group
        framework.post_filter = pod

    # --- attempts ---------------------------------------------------------------------------

    def run(self) -> list[Json]:
        """Try what is in the queue, then what made room for itself."""
        attempts: list[Json] = []
        again: list[str] = []
        while True:
            entity = self.queue.pop_entity()
            if entity is None:
                if not again:
                    return attempts
                self.queue.activate([again.pop(0)])
                entity = self.queue.pop_entity()
                if entity is None:
                    continue
            attempts.append(self._attempt(entity))
            if self.evictor.victims:
                self._evict()
                again.append(entity.pods()[0].info.uid)
            self.queue.validate()
            self.cluster.validate()

    def _attempt(self, entity: QueuedEntity) -> Json:
        self._begin()
        self.clock.advance(0.001)
        pods = [pod.info for pod in entity.pods()]
        self._tried.update(pod.uid for pod in pods)
        self.attempt = {"pods": {pod.full_name: {"pod": pod.full_name} for pod in pods}}
        if isinstance(entity, QueuedGroup):
            self.attempt |= {"kind": "PodGroup", "name": entity.group.full_name}
            self.scheduling.schedule(entity)
            self._tell_placements()
        elif isinstance(entity, QueuedPod):
            self.attempt |= {"kind": "Pod", "name": pods[0].full_name}
            self._schedule_one(entity)
        for placed in self._bound:
            self._settle(placed)
        if self._post is not None:
            self._tell_post_filter(is_group=isinstance(entity, QueuedGroup))
        return {**self.attempt, "pods": list(self.attempt["pods"].values())}

    def _begin(self) -> None:
        self._post, self._bound, self.group_cycle.first = None, [], None

    def _schedule_one(self, pod: QueuedPod) -> None:
        decision = self.cycle.schedule(self.framework, pod.info)
        if decision.node_name:
            self._bind(PodToBind(self.framework, pod, decision))
            return
        self.failures.handle(
            self.framework,
            pod,
            decision.status,
            diagnosis=decision.diagnosis,
            nominated_node=decision.nominated_node,
        )

    def _bind(self, placed: PodToBind) -> bool:
        info, decision = placed.pod.info, placed.decision
        self.cluster.assume(info, decision.node_name)
        self.cluster.nominator.clear(info.uid)
        reserved = self.framework.reserve(decision.state, info, decision.node_name)
        assert reserved.ok, reserved.message
        self.framework.permit(decision.state, info, decision.node_name)
        shown: dict[str, Json] = {"pod": info.full_name, "node": decision.node_name}
        ties, _ = self.cycle.ties[id(decision.state)]
        if ties > 1:
            shown["ties"] = ties
        self.attempt["pods"][info.full_name] = shown
        self._bound.append(placed)
        self.queue.done(info.uid)
        return True

    def _settle(self, placed: PodToBind) -> None:
        """Let a pod be bound, as the API server and the kubelet would show it."""
        index, pod = self._index[placed.pod.info.uid], placed.pod.info.pod
        bound = replace(
            pod,
            spec=replace(pod.spec, node_name=placed.decision.node_name),
            status=replace(
                pod.status,
                phase="Running",
                start_time=f"2025-06-01T00:{index // 60:02}:{index % 60:02}Z",
            ),
        )
        self._show(bound)
        self.cluster.groups.remove_pending(bound)
        self.cluster.put_pod(bound)

    def _evict(self) -> None:
        for victim in self.evictor.victims:
            self.cluster.remove_pod(victim.uid)
            self.objects.pop((victim.labels.namespace, victim.pod.metadata.name), None)
        self.evictor.victims = ()

    # --- what is told -----------------------------------------------------------------------

    def reported(self, pod: Pod, status: Status, nominated_node: str | None) -> None:
        """A pod has no node."""
        self.clock.advance(0.001)
        full_name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        reason = "Unschedulable" if status.rejected else "SchedulerError"
        shown = {"pod": full_name, "node": None, "reason": reason, "message": status.message}
        before = pod.status.nominated_node_name
        if nominated_node is not None and (nominated_node or before):
            shown["nominatedNode"] = nominated_node
        self.attempt["pods"][full_name] = shown
        if nominated_node is not None and nominated_node != before:
            changed = replace(pod, status=replace(pod.status, nominated_node_name=nominated_node))
            self._show(changed)
            info = self.cluster.compiler.pending(changed)
            self.cluster.groups.put_pending(info)
            self.queue.update(pod, info)

    def judged(self, key: GroupKey, verdict: GroupVerdict) -> None:
        """A group has a condition."""
        group = self.cluster.groups.objects.get(key.namespace, key.name)
        assert group is not None
        condition = new_condition(group, verdict, 0.0)
        if condition is None:
            return
        status = replace(group.status, conditions=(condition,))
        self.cluster.groups.objects.put(replace(group, status=status))
        self.attempt["condition"] = {
            "status": verdict.status,
            "reason": verdict.reason,
            "message": verdict.message,
        }

    def _tell_placements(self) -> None:
        if self.group_cycle.first is None:
            return
        (result,) = self.group_cycle.first.values()
        if not self.group_cycle._with_placements or result.info.topology_key is None:
            return
        scores = {each.placement.name: each for each in result.scores}
        shown = []
        for each in result.tried:
            rows = self.cluster.table.order.rows()
            nodes = self.case.names(rows[each.placement.rows[rows]])
            # A placement counts only if it took a pod, and not if enough of them were there before.
            feasible = each.feasible and result.has_scheduled
            told = {"name": each.placement.name, "nodes": nodes, "feasible": feasible}
            if each.placement.name in scores:
                score = scores[each.placement.name]
                told |= {"scores": dict(score.scores), "total": score.total}
            shown.append(told)
        if shown:
            self.attempt["placements"] = shown
        if result.placement is not None and result.has_scheduled:
            self.attempt["placement"] = result.placement.name
        self._tell_ties(result)

    def _tell_ties(self, result: GroupResult) -> None:
        most = max((each.total for each in result.scores), default=0)
        best = [each.placement.name for each in result.scores if each.total == most]
        if len(best) > 1:
            self.attempt["placementTies"] = sorted(best)

    def _tell_post_filter(self, *, is_group: bool) -> None:
        assert self._post is not None
        status, nominations = self._post
        told: dict[str, Json] = {"code": status.code.label, "message": status.message}
        if self.evictor.victims:
            told["victims"] = sorted(each.full_name for each in self.evictor.victims)
        if is_group and nominations:
            names = {pod.metadata.uid: pod for pod in self.objects.values()}
            told["nominated"] = {
                f"{names[uid].metadata.namespace}/{names[uid].metadata.name}": node
                for uid, node in nominations.items()
            }
        self.attempt["preemption"] = told

    def gated(self) -> dict[str, Json]:
        """Return the pods that were never tried, with what each of them waits for."""
        waiting = (pod.info for pod in self.queue.pods() if pod.info.uid not in self._tried)
        told = {}
        for info in waiting:
            gates = self.framework.plugins.pre_enqueue
            asked = {each.name: each.pre_enqueue(info) for each in gates}
            told[info.full_name] = {
                name: as_status(status) for name, status in asked.items() if not status.ok
            }
        return told

    def placed(self) -> dict[str, str]:
        """Return the nodes of the pods of the case."""
        pods = self.objects.items()
        return {
            f"{ns}/{name}": pod.spec.node_name for (ns, name), pod in pods if pod.spec.node_name
        }
