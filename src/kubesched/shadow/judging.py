"""Hears of pods before they are applied, decides for those that the other scheduler decided on.

    news of a pod ──> JudgingHandler ──┬─ got its node, or a message: judged on the state before it
                                       └─> the scheduler's handler: applied, judged or not

The state is that of the news before, in the order of the watch: about what the other scheduler saw.
It decides on pods one after the other but binds them at the same time, so that in a burst bindings
may come in another order than decisions: differences are looked at again for that (`reordering`),
and are reported a moment later.
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
from kubesched.errors import ObjectError
from kubesched.shadow.comparing import Comparison, compare_binding, compare_refusal
from kubesched.shadow.deciding import decide
from kubesched.shadow.reordering import BURST_S, Reordering
from kubesched.shadow.report import Finding, Outcome
from kubesched.shadow.watching import WatchedCluster

_log = logging.getLogger(__name__)

#: From here on it is said that a decision was judged late.
LATE_S: Final = 1.0
#: Whoever is so far behind only applies what comes, to catch up.
TOO_LATE_S: Final = 30.0

NOT_LOOKING: Final = "decided while we did not look"
TOO_LATE: Final = "we were too far behind"
NO_PROFILE: Final = "no profile for the pod's scheduler"
NO_NODE: Final = "the node is not known yet"
UNREADABLE: Final = "the pod cannot be read"
BUG: Final = "our decision failed unexpectedly"

#: The reason in the condition of a pod that was turned away.
UNSCHEDULABLE: Final = "Unschedulable"


class Decided(Struct, frozen=True):
    """What the other scheduler decided."""

    kind: str
    #: as it was before that
    pod: Pod
    theirs: Outcome
    #: how many bindings came just before
    burst: int = 0


class JudgingHandler:
    """Judges decisions, and passes everything on."""

    def __init__(
        self,
        handler: Handler[Pod],
        watched: Callable[[], WatchedCluster],
        *,
        clock: Clock,
        scheduler_names: Collection[str] = (),
        on_finding: Callable[[Finding], None],
        on_not_judged: Callable[[str], None],
    ) -> None:
        self._handler = handler
        #: there when the first news come
        self._watched = watched
        self._clock = clock
        #: whose pods are judged; nobody means everybody's
        self._scheduler_names = scheduler_names
        self._on_finding = on_finding
        self._on_not_judged = on_not_judged
        self._order: Reordering | None = None

    # --- news -------------------------------------------------------------------------------

    def on_add(self, obj: Pod, initial: bool) -> None:
        """Apply a pod that came; one that has a node already was not seen without it."""
        self._handler.on_add(obj, initial)

    def on_update(self, old: Pod, new: Pod) -> None:
        """Judge a pod that got its node or a message; apply it in any case."""
        if not old.spec.node_name and self._concerns_us(new):
            try:
                self._judge(old, new)
            except Exception:  # noqa: BLE001 (the state must go on, whatever a judgement runs into)
                _log.exception("judging %s failed", _full_name(new))
                self._on_not_judged(BUG)
        self._handler.on_update(old, new)
        if new.spec.node_name and not old.spec.node_name:
            arrived = self._watched().backlog.current.arrived
            self.order.bound(new.metadata.uid, new.spec.node_name, arrived)

    def on_delete(self, obj: Pod) -> None:
        """Apply a pod that went."""
        self._handler.on_delete(obj)

    def _concerns_us(self, pod: Pod) -> bool:
        return not self._scheduler_names or pod.spec.scheduler_name in self._scheduler_names

    # --- judging ----------------------------------------------------------------------------

    @property
    def order(self) -> Reordering:
        """What knows of the order in which bindings came."""
        if self._order is None:
            self._order = Reordering(self._watched().cluster, self._on_finding)
        return self._order

    def flush(self) -> None:
        """Report what was held back for long enough; to be called from time to time."""
        if not len(self._watched().backlog):
            self.order.flush(self._clock.monotonic())

    def _judge(self, old: Pod, new: Pod) -> None:
        decided = self._decided(old, new)
        if decided is None:
            return
        late_s = self._clock.monotonic() - self._watched().backlog.current.arrived
        compared = self._first_look(decided, late_s)
        if isinstance(compared, str):
            self._on_not_judged(compared)
            return
        finding = self._finding(decided, compared, late_s)
        # Whoever is late has no time for a second look.
        if compared.verdict.agrees or late_s > BURST_S:
            self._on_finding(finding)
        else:
            self._second_look(decided, finding)

    def _first_look(self, decided: Decided, late_s: float) -> Comparison | str:
        if not self._watched().backlog.current.seen:
            return NOT_LOOKING
        return TOO_LATE if late_s > TOO_LATE_S else self._compared(decided)

    def _second_look(self, decided: Decided, finding: Finding) -> None:
        """Find out whether a difference is one of order alone."""

        def agrees() -> bool:
            again = self._compared(decided)
            return not isinstance(again, str) and again.verdict.agrees

        self.order.report(finding, agrees, self._watched().backlog.current.arrived)

    def _decided(self, old: Pod, new: Pod) -> Decided | None:
        """Return what the other scheduler decided, None if it did not."""
        condition = _condition(new)
        if new.spec.node_name:
            return Decided(
                "Binding",
                old,
                Outcome(nodes=(new.spec.node_name,)),
                burst=self.order.seen_before(self._watched().backlog.current.arrived),
            )
        if condition is None or not _says_something_new(_condition(old), condition):
            return None
        nominated = new.status.nominated_node_name
        return Decided(
            "Unschedulable", old, Outcome(message=condition.message, nominated_node=nominated)
        )

    def _compared(self, decided: Decided) -> Comparison | str:
        """Return how our decision on the state as it is compares, or why there is none."""
        watched, pod, theirs = self._watched(), decided.pod, decided.theirs
        framework = watched.framework_for(pod.spec.scheduler_name)
        if framework is None:
            return NO_PROFILE
        table = watched.cluster.table
        row = table.row_of(theirs.nodes[0]) if theirs.nodes else None
        if theirs.nodes and row is None:
            return NO_NODE
        try:
            info = watched.cluster.compiler.pending(pod)
        except ObjectError:
            return UNREADABLE
        ours = decide(watched.engine, framework, info, preempt=row is None)
        if row is None:
            return compare_refusal(ours, theirs.message, theirs.nominated_node, table=table)
        return compare_binding(ours, info, row, table=table, evaluator=framework.evaluator)

    def _finding(self, decided: Decided, compared: Comparison, late_s: float) -> Finding:
        now, pod = self._clock.time(), decided.pod
        return Finding(
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
        )


def _condition(pod: Pod) -> PodCondition | None:
    """Return what a scheduler has last said of a pod."""
    return next((each for each in pod.status.conditions if each.type == names.POD_SCHEDULED), None)


def _says_something_new(old: PodCondition | None, new: PodCondition) -> bool:
    if new.status != "False" or new.reason != UNSCHEDULABLE:
        return False
    return old is None or (old.reason, old.message) != (new.reason, new.message)


def _full_name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
