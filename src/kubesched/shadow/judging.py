"""Judges the other scheduler's decisions, before its pods are applied to the state.

    event of a pod ──> JudgingHandler ──┬─ bound, or has a message: judged on the state before it
                                        └─> the scheduler's handler: applied, judged or not

The state is that of the previous event, in the order of the watch: about what the other scheduler
saw. A scheduler decides on pods in sequence but binds them concurrently, so in a burst bindings may
arrive in another order than decisions: differences are evaluated again for that (`reordering`), and
reported a moment later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from kubesched.api import names
from kubesched.api.core import Pod, PodCondition
from kubesched.client.informer import Handler
from kubesched.clock import Clock
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ObjectError
from kubesched.framework.runtime import Framework
from kubesched.shadow.comparing import DecisionComparison, compare_binding, compare_refusal
from kubesched.shadow.deciding import decide
from kubesched.shadow.groups import GroupJudge
from kubesched.shadow.reordering import BURST_S, Reordering
from kubesched.shadow.report import SchedulerChoice, ShadowFinding
from kubesched.shadow.watching import WatchedCluster

_log = logging.getLogger(__name__)

#: From this lag on, a finding is marked as late.
LATE_S: Final = 1.0
#: From this lag on, events are only applied, to catch up.
TOO_LATE_S: Final = 30.0

NOT_LOOKING: Final = "decided while we did not look"
TOO_LATE: Final = "we were too far behind"
NO_PROFILE: Final = "no profile for the pod's scheduler"
NO_NODE: Final = "the node is not known yet"
UNREADABLE: Final = "the pod cannot be read"
BUG: Final = "our decision failed unexpectedly"

#: The reason in the condition of an unschedulable pod.
UNSCHEDULABLE: Final = "Unschedulable"


class TheirDecision(Struct, frozen=True):
    """A decision of the other scheduler."""

    kind: str
    #: the pod before the decision
    pod: Pod
    theirs: SchedulerChoice
    #: number of bindings just before
    burst: int = 0


class JudgingHandler:
    """Judges decisions, and passes all events on."""

    def __init__(
        self,
        handler: Handler[Pod],
        watched: Callable[[], WatchedCluster],
        *,
        clock: Clock,
        scheduler_names: Collection[str] = (),
        on_finding: Callable[[ShadowFinding], None],
        on_not_judged: Callable[[str], None],
    ) -> None:
        self._handler = handler
        #: set before the first event
        self._watched = watched
        self._clock = clock
        #: schedulers whose pods are judged; empty means all
        self._scheduler_names = scheduler_names
        self._on_finding = on_finding
        self._on_not_judged = on_not_judged
        self._order: Reordering | None = None
        self._group_judge: GroupJudge | None = None

    # --- events -----------------------------------------------------------------------------

    def on_add(self, obj: Pod, initial: bool) -> None:
        """Apply a new pod; one that already has a node is not judged."""
        self._handler.on_add(obj, initial)

    def on_update(self, old: Pod, new: Pod) -> None:
        """Judge a pod that was bound or rejected; apply it in any case."""
        if not old.spec.node_name and self._concerns_us(new):
            try:
                self._judge(old, new)
            except Exception:  # noqa: BLE001 (the state must be updated even if judging fails)
                _log.exception("judging %s failed", _full_name(new))
                self._on_not_judged(BUG)
        self._handler.on_update(old, new)
        if new.spec.node_name and not old.spec.node_name:
            arrived = self._watched().backlog.current.arrived
            self.order.bound(new.metadata.uid, new.spec.node_name, arrived)

    def on_delete(self, obj: Pod) -> None:
        """Apply a deleted pod."""
        self._handler.on_delete(obj)

    def _concerns_us(self, pod: Pod) -> bool:
        return not self._scheduler_names or pod.spec.scheduler_name in self._scheduler_names

    # --- judging ----------------------------------------------------------------------------

    @property
    def order(self) -> Reordering:
        """The order of recent bindings."""
        if self._order is None:
            self._order = Reordering(self._watched().cluster, self._on_finding)
        return self._order

    def flush(self) -> None:
        """Report findings that were held back for long enough; called periodically."""
        if not len(self._watched().backlog):
            self.order.flush(self._clock.monotonic())

    def _judge(self, old: Pod, new: Pod) -> None:
        decided = self._decided(old, new)
        if decided is None:
            return
        groups = self._groups_of(old)
        if groups is not None and decided.theirs.nodes and groups.is_judged(old):
            return
        late_s = self._clock.monotonic() - self._watched().backlog.current.arrived
        compared = self._first_look(decided, late_s)
        if isinstance(compared, str):
            self._on_not_judged(compared)
            return
        finding = self._finding(decided, compared, late_s)
        # If we lag behind, there is no time for a second evaluation; a group has no order.
        if compared.verdict.agrees or late_s > BURST_S or finding.group:
            self._on_finding(finding)
        else:
            self._second_look(decided, finding)

    def _first_look(self, decided: TheirDecision, late_s: float) -> DecisionComparison | str:
        if not self._watched().backlog.current.seen:
            return NOT_LOOKING
        return TOO_LATE if late_s > TOO_LATE_S else self._compared(decided)

    def _second_look(self, decided: TheirDecision, finding: ShadowFinding) -> None:
        """Find out whether a difference is due to the order of bindings."""

        def agrees() -> bool:
            again = self._compared(decided)
            return not isinstance(again, str) and again.verdict.agrees

        self.order.report(finding, agrees, self._watched().backlog.current.arrived)

    def _decided(self, old: Pod, new: Pod) -> TheirDecision | None:
        """Return the other scheduler's decision, None if there is none in this event."""
        condition = _condition(new)
        if new.spec.node_name:
            return TheirDecision(
                "Binding",
                old,
                SchedulerChoice(nodes=(new.spec.node_name,)),
                burst=self.order.seen_before(self._watched().backlog.current.arrived),
            )
        if condition is None or not _says_something_new(_condition(old), condition):
            return None
        nominated = new.status.nominated_node_name
        return TheirDecision(
            "Unschedulable",
            old,
            SchedulerChoice(message=condition.message, nominated_node=nominated),
        )

    def _compared(self, decided: TheirDecision) -> DecisionComparison | str:
        """Return the comparison with our decision on the current state, or why there is none."""
        watched, pod, theirs = self._watched(), decided.pod, decided.theirs
        framework = watched.framework_for(pod.spec.scheduler_name)
        if framework is None:
            return NO_PROFILE
        groups = self._groups_of(pod)
        if groups is not None:
            return groups.compare(pod, theirs)
        table = watched.cluster.table
        row = table.row_of(theirs.nodes[0]) if theirs.nodes else None
        if theirs.nodes and row is None:
            return NO_NODE
        try:
            info = watched.cluster.compiler.pending(pod)
        except ObjectError:
            return UNREADABLE
        return self._compare(framework, info, row, theirs)

    def _compare(
        self, framework: Framework, info: PodInfo, row: int | None, theirs: SchedulerChoice
    ) -> DecisionComparison:
        """Decide about a pod, and compare; with a rejection, if there is no row."""
        watched, pod = self._watched(), info.pod
        table = watched.cluster.table
        if row is None:
            ours = decide(watched.engine, framework, info, preempt=True)
            return compare_refusal(ours, theirs.message, theirs.nominated_node, table=table)
        with watched.cluster.transaction() as tx:
            # The other scheduler has written the devices of the pod before its binding.
            tx.release(pod)
            ours = decide(watched.engine, framework, info, preempt=False)
            return compare_binding(ours, info, row, table=table, evaluator=framework.evaluator)

    def _group_name(self, pod: Pod) -> str:
        key = self._watched().cluster.groups.of(pod)
        return key.full_name if key is not None and self._groups_of(pod) is not None else ""

    def _groups_of(self, pod: Pod) -> GroupJudge | None:
        """Return what judges the group of a pod; None if it is judged by itself."""
        engine = self._watched().engine
        if engine.groups is None or engine.cluster.groups.of(pod) is None:
            return None
        if self._group_judge is None:
            self._group_judge = GroupJudge(self._watched(), engine.groups)
        return self._group_judge

    def _finding(
        self, decided: TheirDecision, compared: DecisionComparison, late_s: float
    ) -> ShadowFinding:
        now, pod = self._clock.time(), decided.pod
        return ShadowFinding(
            kind=decided.kind,
            time=datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds"),
            pod=_full_name(pod),
            uid=pod.metadata.uid,
            scheduler_name=pod.spec.scheduler_name,
            theirs=decided.theirs,
            ours=compared.ours,
            verdict=compared.verdict,
            why=compared.why,
            score=compared.score,
            refused_by=compared.refused_by,
            late_seconds=round(late_s, 1) if late_s > LATE_S else 0.0,
            burst=decided.burst,
            group=self._group_name(pod),
        )


def _condition(pod: Pod) -> PodCondition | None:
    """Return the last scheduling condition of a pod."""
    return next((each for each in pod.status.conditions if each.type == names.POD_SCHEDULED), None)


def _says_something_new(old: PodCondition | None, new: PodCondition) -> bool:
    if new.status != "False" or new.reason != UNSCHEDULABLE:
        return False
    return old is None or (old.reason, old.message) != (new.reason, new.message)


def _full_name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
