"""The scheduling cycle with extenders: HTTP services that filter, score, bind and preempt.

This is the only cycle that waits. After a response it continues with the state from before the
request, as kube-scheduler does with its snapshot; a node that was deleted meanwhile is not chosen.
"""

from __future__ import annotations

import numpy as np

from kubesched import logs
from kubesched.api.core import Pod
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.extenders import EXTENDER
from kubesched.errors import ClientError
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.feasible_nodes import FeasibleNodes
from kubesched.framework.pre_filtering import Restriction
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Status, error, unschedulable
from kubesched.plugins.default_preemption import NARROWED, DefaultPreemption
from kubesched.plugins.lower_pods import importance
from kubesched.plugins.verdicts import Candidate
from kubesched.scheduler.cycle import Decision, SchedulingCycle
from kubesched.scheduler.extenders import Extenders, Victims

_log = logs.get_logger(__name__)


class ExtendedCycle:
    """Chooses nodes for pods with plugins and extenders."""

    def __init__(self, cycle: SchedulingCycle, cluster: Cluster, extenders: Extenders) -> None:
        self._cycle = cycle
        self._table = cluster.table
        self._extenders = extenders

    async def schedule(
        self, framework: Framework, pod: PodInfo, *, may_pause: bool = False
    ) -> Decision:
        """Choose a node for a pod, or return why none is feasible.

        Raises AttemptPausedError, if it may, when a plugin needs long: then call it again.
        """
        state = CycleState()
        state.may_pause = may_pause
        try:
            chosen = await self._choose(framework, state, pod)
            if isinstance(chosen, Diagnosis):
                return await self._post_filter(framework, state, pod, chosen)
        except AttemptError as failed:
            return Decision(failed.status, state, nominated_node="")
        except ClientError as failed:
            return Decision(error(str(failed)), state, nominated_node="")
        self._cycle.note(framework, pod, chosen)
        return chosen

    async def schedule_member(
        self, framework: Framework, state: CycleState, pod: PodInfo
    ) -> Decision:
        """Choose a node for a member of a group, within the placement of its state.

        PostFilter does not run: only the group as a whole may preempt.
        """
        try:
            chosen = await self._choose(framework, state, pod)
        except AttemptError as failed:
            return Decision(failed.status, state, nominated_node="")
        except ClientError as failed:
            return Decision(error(str(failed)), state, nominated_node="")
        if isinstance(chosen, Diagnosis):
            return Decision(unschedulable(chosen.message()), state, diagnosis=chosen)
        return chosen

    async def _choose(
        self, framework: Framework, state: CycleState, pod: PodInfo
    ) -> Decision | Diagnosis:
        if len(self._table) == 0:
            return self._cycle.without_nodes(state)
        # One feasible node is enough only if no extender filters or scores after the plugins.
        all_matter = self._extenders.has_filters or self._extenders.has_prioritizers
        found = framework.evaluator.filter(state, pod)
        if isinstance(found, FeasibleNodes) and found.is_nominated:
            if await self._suits(pod, found):
                row = found.nodes.row_numbers().item()
                return self._cycle.chosen(state, row, evaluated=1, feasible=1)
            found = framework.evaluator.beyond_nominated(state, pod, found)
        if isinstance(found, Diagnosis):
            return found
        restriction = found.restriction
        found, evaluated = self._cycle.sample(
            framework, found, all_matter=all_matter, within=state.placement
        )
        names = [self._table.name_at(row) for row in found.rows().tolist()]
        verdict = await self._extenders.filter(pod.pod, names)
        left = self._rows(verdict.feasible)
        if not len(left):
            return self._diagnose(framework, state, pod, verdict.rejected, restriction)
        if len(left) == 1:
            row = left.item()
        else:
            row = await self._best(framework, state, pod, found.narrowed(left))
        return self._cycle.chosen(state, row, evaluated=evaluated, feasible=len(left))

    async def _suits(self, pod: PodInfo, nominated: FeasibleNodes) -> bool:
        """Return whether extenders accept the nominated node; if one fails, others are tried."""
        name = self._table.name_at(nominated.nodes.row_numbers().item())
        try:
            verdict = await self._extenders.filter(pod.pod, [name])
        except ClientError as failed:
            text = "Evaluation failed on nominated node"
            _log.error(text, failed, pod=pod.full_name, node=name)
            return False
        return len(self._rows(verdict.feasible)) > 0

    async def _post_filter(
        self, framework: Framework, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> Decision:
        """Have extenders filter the candidates before PostFilter preempts."""
        # Another attempt would ask the extenders again.
        state.may_pause = False
        plugin = framework.plugins.instances.get(DefaultPreemption.name)
        if (
            self._extenders.has_preemptors
            and isinstance(plugin, DefaultPreemption)
            and plugin in framework.plugins.post_filter
            and not plugin.why_not_eligible(pod, diagnosis)
        ):
            candidates = plugin.find(state, pod, diagnosis).candidates
            if candidates:
                state.write(NARROWED, await self._narrow_or_fail(pod, candidates))
        return self._cycle.post_filter(framework, state, pod, diagnosis)

    async def _narrow_or_fail(
        self, pod: PodInfo, candidates: list[Candidate]
    ) -> list[Candidate] | Status:
        """Return the candidates that extenders leave; an error ends preemption, not the attempt."""
        try:
            return await self._narrow(pod, candidates)
        except ClientError as failed:
            return error(str(failed))

    async def _narrow(self, pod: PodInfo, candidates: list[Candidate]) -> list[Candidate]:
        offered = {
            self._table.name_at(each.row): Victims(
                [victim.pod for victim in each.victims], each.violations
            )
            for each in candidates
        }
        left = await self._extenders.preempt(pod.pod, offered, pods_on=self._pods_on)
        narrowed = []
        for name, victims in left.items():
            row = self._table.row_of(name)
            if row is not None:
                on_row = self._table.pods[row]
                chosen = [on_row.get(each.metadata.uid) for each in victims.pods]
                # The pods on the node changed during the request: evaluate its victims again.
                there = [each for each in chosen if each is not None]
                if len(there) == len(chosen):
                    victims_in_order = tuple(sorted(there, key=importance))
                    narrowed.append(Candidate(row, victims_in_order, victims.num_pdb_violations))
        return narrowed

    def _pods_on(self, node_name: str) -> list[Pod] | None:
        row = self._table.row_of(node_name)
        return None if row is None else [each.pod for each in self._table.pods[row].values()]

    async def _best(
        self, framework: Framework, state: CycleState, pod: PodInfo, found: FeasibleNodes
    ) -> int:
        scored = framework.evaluator.score(state, pod, found)
        rows, total = found.nodes.row_numbers(), scored.totals()
        names = [self._table.name_at(row) for row in rows.tolist()]
        extra = await self._extenders.prioritize(pod.pod, names)
        total = total + np.array([extra.get(name, 0) for name in names], dtype=np.int64)
        still_there = np.isin(rows, self._rows(names))
        if not still_there.any():
            raise AttemptError(error("all feasible nodes were deleted while extenders responded"))
        rows, total = rows[still_there], total[still_there]
        return self._cycle.pick_of(rows, total)

    def _rows(self, names: list[str]) -> IndexArray:
        found = (self._table.row_of(name) for name in names)
        return np.array([row for row in found if row is not None], dtype=np.intp)

    def _diagnose(
        self,
        framework: Framework,
        state: CycleState,
        pod: PodInfo,
        rejected: dict[str, Status],
        restriction: Restriction,
    ) -> Diagnosis:
        refused = {
            row: status.by(EXTENDER)
            for name, status in rejected.items()
            if (row := self._table.row_of(name)) is not None
        }
        diagnosis = framework.evaluator.diagnose(state, pod, refused, restriction)
        diagnosis.placement = state.placement
        diagnosis.unschedulable_plugins.add(EXTENDER)
        return diagnosis
