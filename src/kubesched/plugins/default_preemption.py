"""DefaultPreemption: evicts pods of lower priority for a pod without a feasible node.

Of the nodes where evicting victims makes the pod feasible, the one with the least cost is chosen;
the pod is nominated to it and retried when the victims are gone. For a group of pods, victims are
searched on all nodes at once (`group_preemption`).
"""

from __future__ import annotations

import random
from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np

from kubesched.api.core import Pod
from kubesched.clock import Clock
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.config.args import DefaultPreemptionArgs
from kubesched.config.features import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.group import GroupInfo, GroupTrial, PodGroupPostFilterResult
from kubesched.framework.plugin import (
    PodGroupPostFilter,
    PostFilter,
    PostFilterResult,
    PreEnqueue,
)
from kubesched.framework.registry import EvaluatorReference, Evictor, PluginContext
from kubesched.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from kubesched.metrics.recorder import Metrics
from kubesched.plugins.group_preemption import GroupVictimSearch
from kubesched.plugins.verdicts import Candidate, Found, choose
from kubesched.plugins.victim_units import VictimUnits
from kubesched.plugins.victims import VictimSearch
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations

NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")
STILL_EVICTING = unresolvable("waiting for the preemption for this pod to be finished")
STILL_EVICTING_FOR_GROUP = unresolvable(
    "waiting for the preemption for this pod group to be finished"
)
UNDER_WAY = "ongoing preemption on nominated nodes"
NEVER = "not eligible due to preemptionPolicy=Never."
NONE_LEFT = "no candidate node for preemption"
ALREADY_EVICTING = "not eligible due to a terminating pod on the nominated node."


#: Key in the cycle state of the candidates that extenders left, or of the error of one.
NARROWED = "DefaultPreemption/narrowed"


class DefaultPreemption(PreEnqueue, PostFilter, PodGroupPostFilter):
    """Searches for victims, and has them evicted."""

    name = "DefaultPreemption"

    def __init__(
        self,
        args: DefaultPreemptionArgs,
        cluster: Cluster,
        *,
        evictor: Evictor,
        evaluator: EvaluatorReference,
        metrics: Metrics,
        clock: Clock,
        gates: FeatureGates | None = None,
    ) -> None:
        gates = gates or FeatureGates.of()
        #: whether there are groups
        self._with_groups = gates.enabled("GenericWorkload")
        composite = gates.enabled("CompositePodGroup")
        self._forest = forest = GroupForest(cluster.groups, composite=composite)
        self._group_search = GroupVictimSearch(
            cluster, forest, groups_have_policy=gates.enabled("PodGroupPreemptionPolicy")
        )
        self._metrics = metrics
        self._clock = clock
        self._args = args
        self._cluster = cluster
        self._evictor = evictor
        self._evaluator = evaluator
        self._attempts = metrics.preemption_attempts
        self._search = VictimSearch(cluster, VictimUnits(forest) if self._with_groups else None)
        #: draws the start of the search, so that evictions spread over nodes
        self._rng = random.Random(0)  # noqa: S311 (spreads evictions, needs no secrecy)

    @classmethod
    def create(cls, context: PluginContext) -> DefaultPreemption:
        """Create the plugin."""
        return cls(
            context.profile.args(cls.name, DefaultPreemptionArgs),
            context.cluster,
            evictor=context.evictor,
            evaluator=context.evaluator,
            metrics=context.metrics,
            clock=context.clock,
            gates=context.gates,
        )

    def events_to_register(self) -> Registrations:
        """A deleted victim: its preemptor may then leave the gate."""
        gone = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
        return [Registration(gone, signature_hint=_leave_it_to_others)]

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Gate a pod while evictions for it, or for its group, are in progress."""
        if self._cluster.groups.of(pod.pod) is not None:
            root = self._forest.root_of_pod(pod)
            group = None if root is None else self._forest.get(root)
            if group is None or not self._evictor.is_evicting_for(group.metadata.uid):
                return SUCCESS
            return STILL_EVICTING_FOR_GROUP
        return STILL_EVICTING if self._evictor.is_evicting_for(pod.uid) else SUCCESS

    def kept_out(self) -> Container[str]:
        """Return the pods whose victims are being evicted."""
        return self._evictor.preemptors()

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """Search for victims and have them evicted, or return why that would not help."""
        self._attempts.inc()
        started = self._clock.monotonic()
        chosen = self._evaluate(state, pod, diagnosis)
        if isinstance(chosen, PostFilterResult):
            self._evaluated("pod", chosen.status.code, started)
            return chosen
        self._evaluated("pod", Code.SUCCESS, started)
        node_name = self._cluster.table.name_at(chosen.row)
        self._evictor.evict(pod, node_name, chosen.victims)
        self._count_violations("pod", chosen.violations)
        return PostFilterResult(
            found_placement(node_name, len(chosen.victims)), nominated_node=node_name
        )

    def _evaluate(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> Candidate | PostFilterResult:
        """Return the best candidate, or why there is none."""
        refusal = self.why_not_eligible(pod, diagnosis)
        if refusal:
            return PostFilterResult(_prefixed(unschedulable(refusal)))
        narrowed = state.get(NARROWED)
        if isinstance(narrowed, Status):
            return PostFilterResult(_prefixed(narrowed))
        if isinstance(narrowed, list):
            if not narrowed:
                return PostFilterResult(_prefixed(unschedulable(NONE_LEFT)))
            best = {each.row: each for each in choose(narrowed)}
            return best[self.pick_row(list(best))]
        found = self.find(state, pod, diagnosis)
        if not found:
            return self._not_helpful(found)
        return found.candidate(self.pick_row(found.best_rows().tolist()))

    def _evaluated(self, preemptor: str, code: Code, started: float) -> None:
        duration = self._metrics.preemption_evaluation_duration.labels(preemptor, code.label)
        duration.observe(self._clock.monotonic() - started)

    def pick_row(self, rows: Sequence[int]) -> int:
        """Return the row of one of several candidates of equal cost."""
        return rows[self._rng.randrange(len(rows))]

    def pod_group_post_filter(
        self,
        state: CycleState,  # noqa: ARG002
        group: GroupInfo,
        trial: GroupTrial,
    ) -> PodGroupPostFilterResult:
        """Search for victims of a group and have them evicted, or return why none would help."""
        result = self._preempt_for(group, trial)
        self._metrics.workload_preemption_attempts.labels(result.status.code.label).inc()
        return result

    def _preempt_for(self, group: GroupInfo, trial: GroupTrial) -> PodGroupPostFilterResult:
        refusal = self._group_search.why_not_eligible(group)
        if not refusal.ok:
            return PodGroupPostFilterResult(_group_prefixed(refusal))
        if self._group_search.is_under_way(group):
            return PodGroupPostFilterResult(
                _group_prefixed(Status(Code.SUCCESS, (UNDER_WAY,))),
                {pod.uid: pod.pod.status.nominated_node_name for pod in group.pods},
            )
        started = self._clock.monotonic()
        found = self._group_search.search(group, trial)
        if isinstance(found, Status):
            self._evaluated("podgroup", found.code, started)
            return PodGroupPostFilterResult(_group_prefixed(found))
        self._evaluated("podgroup", Code.SUCCESS, started)
        self._evictor.evict_for_group(group, found.victims)
        self._metrics.workload_preemption_victims.observe(len(found.victims))
        # As in kube-scheduler, pods that preempt pods of groups do not count here.
        if found.disrupted_groups:
            disruptions = self._metrics.preemption_workload_disruptions.labels(group.key.kind)
            disruptions.observe(found.disrupted_groups)
        self._count_violations(group.key.kind, found.violations)
        text = f"found a placement for podgroup, preempting {len(found.victims)} victims"
        return PodGroupPostFilterResult(
            _group_prefixed(Status(Code.SUCCESS, (text,))), found.nominations
        )

    def _count_violations(self, preemptor: str, violations: int) -> None:
        if violations:
            self._metrics.preemption_pdb_violations.labels(preemptor).inc(violations)

    def _not_helpful(self, found: Found) -> PostFilterResult:
        refusals = found.refusals
        failures = [each.message for each in refusals.values() if each.code is Code.ERROR]
        if failures:
            return PostFilterResult(_prefixed(error(_aggregated(failures))))
        message = _why_not(self._cluster, refusals)
        return PostFilterResult(_prefixed(unschedulable(message)), nominated_node="")

    def find(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> Found:
        """Return the candidate nodes, as many as the arguments request."""
        rows = self._rotated(diagnosis.rows_with(Code.UNSCHEDULABLE))
        share = len(rows) * self._args.min_candidate_nodes_percentage // 100
        enough = min(max(share, self._args.min_candidate_nodes_absolute), len(rows))
        return self._search.search(self._evaluator.get(), state, pod, rows, enough=enough)

    def _rotated(self, rows: IndexArray) -> IndexArray:
        if not len(rows):
            return rows
        first = self._rng.randrange(len(rows))
        return np.concatenate((rows[first:], rows[:first]))

    def why_not_eligible(self, pod: PodInfo, diagnosis: Diagnosis) -> str:
        """Return why a pod is not eligible to preempt, "" if it is."""
        if pod.pod.spec.preemption_policy == "Never":
            return NEVER
        nominated = pod.pod.status.nominated_node_name
        row = self._cluster.table.row_of(nominated) if nominated else None
        if row is None:
            return ""
        if diagnosis.status_of(row).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        for other in self._cluster.table.pods[row].values():
            if self._priority_of(other) < pod.priority and other.is_being_preempted:
                return ALREADY_EVICTING
        return ""

    def _priority_of(self, pod: PodInfo) -> int:
        return self._forest.priority_of(pod) if self._with_groups else pod.priority


def _leave_it_to_others(signature: PodSignature, change: Change[Pod]) -> bool:  # noqa: ARG001 (never helps)
    """Return false: the hints of the filters that rejected the pod decide."""
    return False


def _why_not(cluster: Cluster, refusals: Mapping[int, Status]) -> str:
    """Return the message that counts the nodes by the reason why preemption does not help."""
    statuses = list(dict.fromkeys(refusals.values()))
    numbers = np.zeros(cluster.table.size, dtype=np.int32)
    for row, status in refusals.items():
        numbers[row] = statuses.index(status) + 1
    return Diagnosis(
        cluster.table, numbers=numbers, statuses=[SUCCESS, *statuses], absent=NOT_HELPFUL
    ).message()


def _aggregated(messages: Iterable[str]) -> str:
    """Return the text of several errors, each of which counts once."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def found_placement(node_name: str, victims: int) -> Status:
    """Return the message about a node where evicting so many pods helps."""
    text = f"found a potential placement for pod on node {node_name}, preempting {victims} victims"
    return _prefixed(Status(Code.SUCCESS, (text,)))


def _group_prefixed(status: Status) -> Status:
    if not status.message:
        return status
    return Status(status.code, (f"pod group preemption: {status.message}",))


def _prefixed(status: Status) -> Status:
    return Status(status.code, (f"preemption: {status.message}",))
