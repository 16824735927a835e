"""The last decisions, read off the pods: who got which node, how good it is, or why none.

    pods' informer ──on_update──> DecisionFeed ──> the page's feed
                                      └── Grader: the scheduling cycle, or an evaluation of its own

Whichever scheduler decides, a placement shows as a node, and a rejection as a condition, so this
works for the scheduler of this process and for any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime
from itertools import islice
from typing import Final

from kubesched.api.core import Pod
from kubesched.clock import Clock
from kubesched.framework.grading import PlacementGrade
from kubesched.web.conditions import scheduled_condition
from kubesched.web.report import DecisionsTold, DecisionTold
from kubesched.web.times import rfc3339

KEPT: Final = 1000


#: Returns how good a node is for a pod that was pending until now, if that is known.
Grader = Callable[[Pod, str], PlacementGrade | None]


class DecisionFeed:
    """A pod handler that notes placements and rejections."""

    def __init__(self, clock: Clock, grade: Grader) -> None:
        self._clock = clock
        self._grade = grade
        self._kept: deque[DecisionTold] = deque(maxlen=KEPT)
        self.total = 0

    def last(self, limit: int) -> DecisionsTold:
        """Return the last decisions, newest first."""
        return DecisionsTold(tuple(islice(reversed(self._kept), limit)), self.total)

    def on_add(self, obj: Pod, initial: bool) -> None:
        """Handle a new pod: one that has a node was placed by its author."""

    def on_update(self, old: Pod, new: Pod) -> None:
        """Handle a changed pod."""
        if new.spec.node_name:
            if not old.spec.node_name:
                node = new.spec.node_name
                self._note(new, node=node, grade=self._grade(old, node))
            return
        said, before = scheduled_condition(new), scheduled_condition(old)
        if said is None or said.status != "False" or not said.message:
            return
        if before is None or before.message != said.message:
            self._note(new, message=said.message)

    def on_delete(self, obj: Pod) -> None:
        """Handle a deleted pod, which is no decision."""

    def _note(
        self, pod: Pod, *, node: str = "", message: str = "", grade: PlacementGrade | None = None
    ) -> None:
        now = self._clock.time()
        self.total += 1
        self._kept.append(
            DecisionTold(
                number=self.total,
                time=rfc3339(now),
                namespace=pod.metadata.namespace,
                name=pod.metadata.name,
                node=node,
                message=message,
                grade=grade,
                waited_s=_seconds_since(pod.metadata.creation_timestamp, now),
            )
        )


def _seconds_since(timestamp: str | None, now: float) -> float | None:
    try:
        created = datetime.fromisoformat(timestamp or "").timestamp()
    except ValueError:
        return None
    return round(max(now - created, 0.0), 1)
