"""One attempt at a group, from the queue to the binding of its pods.

    check ──> GroupCycle ──> infeasible? PodGroupPostFilter ──> each member: bind, or report why not
                                                         └─> condition of each PodGroup · requeue

All of it is done before anything else is popped, and nothing of it waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubesched import logs
from kubesched.cluster.group_forest import GroupForest
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import GroupInfo
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Code, Status, error
from kubesched.queue.group_queue import GroupSchedulingQueue
from kubesched.queue.queued_group import AttemptEnd, QueuedGroup
from kubesched.queue.queued_pod import QueuedPod
from kubesched.scheduler.attempts import Attempts
from kubesched.scheduler.binding import PodToBind
from kubesched.scheduler.extenders import Extenders
from kubesched.scheduler.failure import FailureHandler
from kubesched.scheduler.group_answers import AnsweredMembers, CollectedAnswers, MissingAnswerError
from kubesched.scheduler.group_checks import build_info, disagreement
from kubesched.scheduler.group_cycle import GroupCycle
from kubesched.scheduler.group_reports import GroupReports
from kubesched.scheduler.group_results import (
    GroupResult,
    GroupResults,
    add_post_filter,
    all_outcomes,
    complete,
    outcomes,
    verdict,
)
from kubesched.scheduler.group_trial import GroupTrialRun
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.profiles import Profiles
from kubesched.scheduler.state import SchedulerState

_log = logs.get_logger(__name__)


class Attempted(NamedTuple):
    """What an attempt at a group came to."""

    framework: Framework
    results: GroupResults
    root: GroupResult
    #: what became of the group before others were preempted for it
    ended: Status
    took_s: float


class GroupScheduling:
    """Schedules groups that were taken from the queue."""

    def __init__(
        self,
        outside: Outside,
        state: SchedulerState,
        *,
        queue: GroupSchedulingQueue,
        forest: GroupForest,
        profiles: Profiles,
        cycle: GroupCycle,
        failures: FailureHandler,
        attempts: Attempts,
        reports: GroupReports,
        groups_have_policy: bool,
        skips: Callable[[QueuedPod], bool],
        bind: Callable[[PodToBind], bool],
    ) -> None:
        self._metrics = outside.metrics
        self._observer = outside.observer
        self._clock = outside.clock
        self._cluster = state.cluster
        self._queue = queue
        self._forest = forest
        self._profiles = profiles
        self._cycle = cycle
        self._failures = failures
        self._attempts = attempts
        self._reports = reports
        self._groups_have_policy = groups_have_policy
        #: returns whether a pod needs no node any more
        self._skips = skips
        #: assumes a pod on its node and starts its binding; False if that was refused
        self._bind = bind

    def schedule(self, group: QueuedGroup) -> None:
        """Try a group."""
        started = self._clock.monotonic()
        root = self._prepared(group)
        if root is not None:
            self._finish(group, self._try(root, self._cycle, started), started)

    async def schedule_asking(self, group: QueuedGroup, extenders: Extenders) -> None:
        """Try a group as far as answers of extenders are there, ask for more, and try again."""
        started = self._clock.monotonic()
        root = self._prepared(group)
        if root is None:
            return
        answers, members = CollectedAnswers(extenders), self._cycle.members
        decide = AnsweredMembers(members, self._cluster, answers).decide
        cycle, draws = self._cycle.deciding_by(decide), members.draws()
        while True:
            try:
                tried = self._try(root, cycle, started)
            except MissingAnswerError as missing:
                members.draw_again(draws)
                await answers.collect(missing)
            else:
                break
        self._finish(group, tried, started)

    def _prepared(self, group: QueuedGroup) -> GroupInfo | None:
        """Return the members to try of a group; None if there are none, which is reported here."""
        root = build_info(self._forest, group)
        if root is None:
            text = f"pod group object not found for pod group {group.group}"
            self._fail_all(group, text, None)
            return None
        problem = self._problem(root)
        if problem:
            self._fail_all(group, problem, root)
            return None
        skipped = {pod.info.uid for pod in group.pods() if self._skips(pod)}
        for uid in skipped:
            self._queue.done(uid)
        if len(skipped) == group.size:
            self.end(group, AttemptEnd.SUCCEEDED)
            return None
        if skipped:
            root = build_info(self._forest, group, leaving_out=skipped) or root
        return root

    def end(self, group: QueuedGroup, how: AttemptEnd) -> None:
        """Let the members that have no node wait for the next attempt."""
        self._queue.end_attempt(group, how)

    def _problem(self, root: GroupInfo) -> str:
        placed = [pod.pod for pod in self._forest.placed(root.key)]
        problem = disagreement(root, placed, groups_have_policy=self._groups_have_policy)
        scheduler_name = root.pods[0].pod.spec.scheduler_name
        if not problem and scheduler_name not in self._profiles.frameworks:
            problem = f'profile not found for scheduler name "{scheduler_name}"'
        return problem

    def _try(self, root: GroupInfo, cycle: GroupCycle, started: float) -> Attempted:
        """Find nodes for a group, or victims; its only effect is their eviction."""
        _log.v(
            3,
            "Attempting to schedule pod group",
            podGroupType=root.key.kind,
            podGroup=root.key.full_name,
        )
        framework = self._profiles.frameworks[root.pods[0].pod.spec.scheduler_name]
        state = CycleState()
        self._observer.deciding()
        try:
            results = complete(root, cycle.run(framework, root, state))
        except BaseException:
            self._observer.abandoned()
            raise
        ended, took_s = results[root.key].status, self._clock.monotonic() - started
        if ended.code is Code.UNSCHEDULABLE:
            trial = GroupTrialRun(cycle, self._cluster, framework, root)
            add_post_filter(results, framework.groups.post_filter(state, root, trial))
        return Attempted(framework, results, results[root.key], ended, took_s)

    def _finish(self, group: QueuedGroup, tried: Attempted, started: float) -> None:
        self._metrics.podgroup_scheduling_algorithm_duration.observe(tried.took_s)
        told = ((group.member(each.pod.uid), each) for each in all_outcomes(tried.results))
        members = [(pod, each) for pod, each in told if pod is not None]
        self._observer.group_decided(tried.framework.scheduler_name, tried.root.info, members)
        self._submit(tried.framework, group, tried.results)
        self._count(tried.framework, tried.root, started)
        self.end(group, _end(tried.ended))

    # --- what follows -----------------------------------------------------------------------

    def _submit(self, framework: Framework, group: QueuedGroup, results: GroupResults) -> None:
        for key, result in results.items():
            if result.info.is_composite:
                continue
            bound = sum(self._submit_members(framework, group, result))
            self._reports.submit(key, result.info.group.metadata.uid, verdict(result.status))
            self._tell(result, bound)

    def _submit_members(
        self, framework: Framework, group: QueuedGroup, result: GroupResult
    ) -> list[bool]:
        """Bind members, or report why they have no node; return which of them are bound."""
        bound = []
        for outcome in outcomes(result):
            pod = group.member(outcome.pod.uid)
            if pod is None:
                continue
            self._attempts.decided(pod)
            if outcome.binds:
                # From here on the pod is one by itself.
                outcome.decision.state.group = outcome.decision.state.placement = None
                bound.append(self._bind(PodToBind(framework, pod, outcome.decision)))
                continue
            self._failures.handle(
                framework,
                pod,
                outcome.status,
                diagnosis=outcome.diagnosis,
                nominated_node=outcome.nominated_node,
            )
            bound.append(False)
        return bound

    def _fail_all(self, group: QueuedGroup, problem: str, root: GroupInfo | None) -> None:
        """Report to all members why their group cannot even be tried."""
        status = error(problem)
        for pod in group.pods():
            framework = self._profiles.get(pod.info.pod)
            if framework is None:
                self._queue.done(pod.info.uid)
            else:
                self._failures.handle(framework, pod, status, nominated_node="")
        for leaf in self._forest.leaves(group.group) if root is not None else ():
            known = self._forest.get(leaf)
            if known is not None:
                self._reports.submit(leaf, known.metadata.uid, verdict(status))
        self.end(group, AttemptEnd.FAILED)

    def _tell(self, result: GroupResult, bound: int) -> None:
        name, others = result.info.key.full_name, len(result.members) - bound
        message = result.status.message
        if result.status.ok:
            text = "Successfully scheduled a pod group"
            _log.v(2, text, podGroup=name, scheduledPods=bound, unschedulablePods=others)
        elif result.status.rejected:
            text = "Unable to schedule a pod group"
            if result.awaits_victims:
                text = "Pod group is waiting for preemption"
            _log.v(2, text, podGroup=name, unschedulablePods=others, err=message)
        else:
            _log.error("Error scheduling pod group", message, podGroup=name, errorPods=others)

    def _count(self, framework: Framework, root: GroupResult, started: float) -> None:
        if root.status.ok:
            result = "scheduled"
        elif not root.status.rejected:
            result = "error"
        else:
            result = "waiting_on_preemption" if root.awaits_victims else "unschedulable"
        labels = result, framework.scheduler_name
        seconds = self._clock.monotonic() - started
        self._metrics.podgroup_schedule_attempts.labels(*labels).inc()
        self._metrics.podgroup_scheduling_attempt_duration.labels(*labels).observe(seconds)


def _end(status: Status) -> AttemptEnd:
    if status.ok:
        return AttemptEnd.SUCCEEDED
    return AttemptEnd.REJECTED if status.rejected else AttemptEnd.FAILED
