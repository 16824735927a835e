"""DefaultPreemption: makes room for a pod by evicting less important ones.

Called for a pod that fits nowhere. Of the nodes where evicting pods of lower priority would help,
the one is taken where that hurts least; the pod is nominated to it and tried again when they are
gone.
"""

from __future__ import annotations

import random
from collections.abc import Container, Mapping

import numpy as np

from kubesched.api.core import Pod
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.config.args import DefaultPreemptionArgs
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PostFilter, PostFilterResult, PreEnqueue
from kubesched.framework.registry import EvaluatorReference, Evictor, PluginContext
from kubesched.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from kubesched.metrics.recorder import Metrics
from kubesched.plugins.verdicts import Found, choose
from kubesched.plugins.victims import VictimSearch
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations

NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")
STILL_EVICTING = unresolvable("waiting for the preemption for this pod to be finished")
NEVER = "not eligible due to preemptionPolicy=Never."
NONE_LEFT = "no candidate node for preemption"
ALREADY_EVICTING = "not eligible due to a terminating pod on the nominated node."


#: Under this key of the cycle state are the candidates that extenders left.
NARROWED = "DefaultPreemption/narrowed"


class DefaultPreemption(PreEnqueue, PostFilter):
    """Finds victims, and has them evicted."""

    name = "DefaultPreemption"

    def __init__(
        self,
        args: DefaultPreemptionArgs,
        cluster: Cluster,
        *,
        evictor: Evictor,
        evaluator: EvaluatorReference,
        metrics: Metrics,
    ) -> None:
        self._args = args
        self._cluster = cluster
        self._evictor = evictor
        self._evaluator = evaluator
        self._attempts = metrics.preemption_attempts
        self._search = VictimSearch(cluster)
        #: where the search starts, so that not always the same nodes are asked
        self._rng = random.Random(0)  # noqa: S311 (spreads evictions, hides nothing)

    @classmethod
    def create(cls, context: PluginContext) -> DefaultPreemption:
        """Make the plugin."""
        return cls(
            context.profile.args(cls.name, DefaultPreemptionArgs),
            context.cluster,
            evictor=context.evictor,
            evaluator=context.evaluator,
            metrics=context.metrics,
        )

    def events_to_register(self) -> Registrations:
        """A victim that is gone: the pod it made room for may then be let in again."""
        gone = ClusterEvent(Resource.POD, Action.DELETE)
        return [Registration(gone, signature_hint=_leave_it_to_others)]

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Keep a pod out while its victims are being evicted."""
        return STILL_EVICTING if self._evictor.is_evicting_for(pod.uid) else SUCCESS

    def kept_out(self) -> Container[str]:
        """Return the pods whose victims are being evicted."""
        return self._evictor.preemptors()

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """Find victims and have them evicted, or say why that would not help."""
        self._attempts.inc()
        refusal = self.why_not_eligible(pod, diagnosis)
        if refusal:
            return PostFilterResult(_prefixed(unschedulable(refusal)))
        narrowed = state.get(NARROWED)
        if isinstance(narrowed, list):
            if not narrowed:
                return PostFilterResult(_prefixed(unschedulable(NONE_LEFT)))
            best = choose(narrowed)
            chosen = best[self._rng.randrange(len(best))]
        else:
            found = self.find(state, pod, diagnosis)
            if not found:
                return self._not_helpful(found)
            rows = found.best_rows()
            chosen = found.candidate(int(rows[self._rng.randrange(len(rows))]))
        node_name = self._cluster.table.name_at(chosen.row)
        self._evictor.evict(pod, node_name, chosen.victims)
        return PostFilterResult(
            found_placement(node_name, len(chosen.victims)), nominated_node=node_name
        )

    def _not_helpful(self, found: Found) -> PostFilterResult:
        refusals = found.refusals
        failures = [each for each in refusals.values() if each.code is Code.ERROR]
        if failures:
            return PostFilterResult(_prefixed(failures[0]))
        message = _why_not(self._cluster, refusals)
        return PostFilterResult(_prefixed(unschedulable(message)), nominated_node="")

    def find(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> Found:
        """Return the nodes where evicting pods would help, as many as there need be."""
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
        """Return why a pod may not preempt others, "" if it may."""
        if pod.pod.spec.preemption_policy == "Never":
            return NEVER
        nominated = pod.pod.status.nominated_node_name
        row = self._cluster.table.row_of(nominated) if nominated else None
        if row is None:
            return ""
        if diagnosis.status_of(row).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        for other in self._cluster.table.pods[row].values():
            if other.priority < pod.priority and other.is_being_preempted:
                return ALREADY_EVICTING
        return ""


def _leave_it_to_others(signature: PodSignature, change: Change[Pod]) -> bool:  # noqa: ARG001 (never helps)
    """Say no: it is the filters that turned the pod away which know whether the room suffices."""
    return False


def _why_not(cluster: Cluster, refusals: Mapping[int, Status]) -> str:
    """Count the reasons why evicting pods would not help, over all nodes."""
    statuses = list(dict.fromkeys(refusals.values()))
    numbers = np.zeros(cluster.table.size, dtype=np.int32)
    for row, status in refusals.items():
        numbers[row] = statuses.index(status) + 1
    return Diagnosis(
        cluster.table, numbers=numbers, statuses=[SUCCESS, *statuses], absent=NOT_HELPFUL
    ).message()


def found_placement(node_name: str, victims: int) -> Status:
    """Return what is said when evicting so many pods makes room on a node."""
    text = f"found a potential placement for pod on node {node_name}, preempting {victims} victims"
    return _prefixed(Status(Code.SUCCESS, (text,)))


def _prefixed(status: Status) -> Status:
    return Status(status.code, (f"preemption: {status.message}",))
