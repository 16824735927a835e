"""What is noticed while a simulation runs: who waits how long and why, and how full nodes are.

    Stage, Audience ──> Observations ──> report

Readings are taken at regular times. Should there be too many, every second one is dropped and the
next ones are taken half as often, so that a long simulation has as many as a short one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.clock import Clock
from kubesched.simulate.report import Preemption, Reading, Reason, Waiting, Waits

#: More readings than that nobody looks at.
MAX_READINGS = 240
_COUNTED = re.compile(r"^\d+ (?P<reason>.+)$", re.DOTALL)
_BEFORE = "nodes are available: "
_BEHIND = ". "


class _Refusal(Struct):
    """The last time that a pod was turned away."""

    message: str = ""
    attempts: int = 0


class Observations:
    """Counts, waits, reasons, preemptions and readings of one simulation."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_s = clock.time()
        self.arrivals = 0
        self.placements = 0
        self.ends = 0
        self.displacements = 0
        self.preemptions: list[Preemption] = []
        self.readings: list[Reading] = []
        #: uid of a pod that waits → since when
        self._since_s: dict[str, float] = {}
        #: uid of a pod that waits → why
        self._refusals: dict[str, _Refusal] = {}
        #: seconds that pods waited which were placed then
        self._waits_s: list[float] = []
        #: reason → uids of pods that were turned away because of it
        self._refused_for: dict[str, set[str]] = {}
        #: reason → refusals
        self._refusal_counts: Counter[str] = Counter()

    @property
    def now_s(self) -> float:
        """Seconds since the simulation began."""
        return self._clock.time() - self._start_s

    @property
    def waiting_count(self) -> int:
        """Pods that want a node."""
        return len(self._since_s)

    # --- pods -------------------------------------------------------------------------------

    def arrived(self, pod: Pod) -> None:
        """A pod came, or came again."""
        self.arrivals += 1
        self._since_s[pod.metadata.uid] = self._clock.time()

    def placed(self, pod: Pod) -> None:
        """A pod runs."""
        self.placements += 1
        since_s = self._since_s.pop(pod.metadata.uid, None)
        self._refusals.pop(pod.metadata.uid, None)
        if since_s is not None:
            self._waits_s.append(self._clock.time() - since_s)

    def ended(self, pod: Pod) -> None:  # noqa: ARG002 (all ends are alike)
        """A pod is done."""
        self.ends += 1

    def displaced(self, pod: Pod) -> None:
        """A pod has to come again: it was preempted, or its node is gone."""
        self.displacements += 1
        # The one that comes is not one more.
        self.arrivals -= 1
        self._since_s.pop(pod.metadata.uid, None)
        self._refusals.pop(pod.metadata.uid, None)

    def refused(self, pod: Pod, message: str) -> None:
        """A pod was turned away."""
        refusal = self._refusals.setdefault(pod.metadata.uid, _Refusal())
        refusal.message, refusal.attempts = message, refusal.attempts + 1
        for reason in reasons_in(message):
            self._refused_for.setdefault(reason, set()).add(pod.metadata.uid)
            self._refusal_counts[reason] += 1

    def preempted(self, victim: Pod, preemptor: str) -> None:
        """A pod has to make room for another, or for a group."""
        at_s = round(self.now_s, 3)
        node = victim.spec.node_name
        last = self.preemptions[-1] if self.preemptions else None
        if last and (last.at_s, last.preemptor, last.node) == (at_s, preemptor, node):
            victims = (*last.victims, _name(victim))
            self.preemptions[-1] = Preemption(at_s, preemptor, node, victims)
        else:
            self.preemptions.append(Preemption(at_s, preemptor, node, (_name(victim),)))

    # --- readings ---------------------------------------------------------------------------

    def read(self, reading: Reading) -> bool:
        """Take a reading in; return whether they are to be taken half as often from now on."""
        self.readings.append(reading)
        if len(self.readings) < MAX_READINGS:
            return False
        # The first one, of the beginning, stays.
        del self.readings[1::2]
        return True

    # --- in the end -------------------------------------------------------------------------

    def waits(self) -> Waits:
        """Return how long the pods waited that were placed."""
        return Waits.of(self._waits_s)

    def reasons(self) -> tuple[Reason, ...]:
        """Return why pods were turned away, the reason of most pods first."""
        found = (
            Reason(reason, pods=len(pods), refusals=self._refusal_counts[reason])
            for reason, pods in self._refused_for.items()
        )
        return tuple(sorted(found, key=lambda each: (-each.pods, -each.refusals, each.reason)))

    def waiting(self, pods: Iterable[Pod]) -> tuple[Waiting, ...]:
        """Return which of some pods wait, and why, those that wait the longest first."""
        found = []
        for pod in pods:
            since_s = self._since_s.get(pod.metadata.uid)
            if since_s is None:
                continue
            refusal = self._refusals.get(pod.metadata.uid, _Refusal())
            found.append(
                Waiting(
                    _name(pod),
                    waited_s=round(self._clock.time() - since_s, 3),
                    attempts=refusal.attempts,
                    message=refusal.message,
                )
            )
        return tuple(sorted(found, key=lambda each: (-each.waited_s, each.pod)))


def reasons_in(message: str) -> list[str]:
    """Return the reasons of which a message tells, without the numbers of nodes."""
    _, found, reasons = message.partition(_BEFORE)
    if not found:
        return [message]
    parts: list[str] = []
    for part in reasons.partition(_BEHIND)[0].rstrip(".").split(", "):
        counted = _COUNTED.match(part)
        if counted:
            parts.append(counted["reason"])
        elif parts:
            # A comma within a reason.
            parts[-1] += f", {part}"
        else:
            parts.append(part)
    return parts


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
