"""Statistics of a simulation: waiting times and reasons, and utilization.

    SimulatedCluster, SimulationRecorder ──> Observations ──> report

Samples are taken at regular intervals. If there are too many, every second one is dropped and the
interval doubled, so that a long simulation has as many as a short one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.clock import Clock
from kubesched.simulate.report import Preemption, RejectionReason, StillPending, UsageSample, Waits

#: Maximum number of samples.
MAX_READINGS = 240
_COUNTED = re.compile(r"^\d+ (?P<reason>.+)$", re.DOTALL)
_BEFORE = "nodes are available: "
_BEHIND = ". "


class _Refusal(Struct):
    """The last rejection of a pod."""

    message: str = ""
    attempts: int = 0


class Observations:
    """Counts, waits, reasons, preemptions and samples of one simulation."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_s = clock.time()
        self.arrivals = 0
        self.placements = 0
        self.ends = 0
        self.displacements = 0
        self.preemptions: list[Preemption] = []
        self.readings: list[UsageSample] = []
        #: uid of a pending pod → since when
        self._since_s: dict[str, float] = {}
        #: uid of a pending pod → why
        self._refusals: dict[str, _Refusal] = {}
        #: waiting times of placed pods, in seconds
        self._waits_s: list[float] = []
        #: reason → uids of pods that were rejected for it
        self._refused_for: dict[str, set[str]] = {}
        #: reason → rejections
        self._refusal_counts: Counter[str] = Counter()

    @property
    def now_s(self) -> float:
        """Seconds since the start of the simulation."""
        return self._clock.time() - self._start_s

    @property
    def waiting_count(self) -> int:
        """The number of pending pods."""
        return len(self._since_s)

    # --- pods -------------------------------------------------------------------------------

    def arrived(self, pod: Pod) -> None:
        """Count a pod that arrived, or was recreated."""
        self.arrivals += 1
        self._since_s[pod.metadata.uid] = self._clock.time()

    def placed(self, pod: Pod) -> None:
        """Count a placed pod."""
        self.placements += 1
        since_s = self._since_s.pop(pod.metadata.uid, None)
        self._refusals.pop(pod.metadata.uid, None)
        if since_s is not None:
            self._waits_s.append(self._clock.time() - since_s)

    def ended(self, pod: Pod) -> None:  # noqa: ARG002 (all ends are alike)
        """Count a pod that ended."""
        self.ends += 1

    def displaced(self, pod: Pod) -> None:
        """Count a pod that was preempted or lost its node, and will be recreated."""
        self.displacements += 1
        # Its replacement is not a new arrival.
        self.arrivals -= 1
        self._since_s.pop(pod.metadata.uid, None)
        self._refusals.pop(pod.metadata.uid, None)

    def refused(self, pod: Pod, message: str) -> None:
        """Count a rejection."""
        refusal = self._refusals.setdefault(pod.metadata.uid, _Refusal())
        refusal.message, refusal.attempts = message, refusal.attempts + 1
        for reason in reasons_in(message):
            self._refused_for.setdefault(reason, set()).add(pod.metadata.uid)
            self._refusal_counts[reason] += 1

    def preempted(self, victim: Pod, preemptor: str, violated: str = "") -> None:
        """A pod has to make room for another, or for a group; `violated` is a budget, or ""."""
        at_s = round(self.now_s, 3)
        node = victim.spec.node_name
        last = self.preemptions[-1] if self.preemptions else None
        name = _name(victim)
        budgets = {name: violated} if violated else {}
        if last and (last.at_s, last.preemptor, last.node) == (at_s, preemptor, node):
            victims, budgets = (*last.victims, name), {**last.violated, **budgets}
            self.preemptions[-1] = Preemption(at_s, preemptor, node, victims, budgets)
        else:
            self.preemptions.append(Preemption(at_s, preemptor, node, (name,), budgets))

    # --- samples ----------------------------------------------------------------------------

    def read(self, reading: UsageSample) -> bool:
        """Add a sample; return whether the interval is to be doubled."""
        self.readings.append(reading)
        if len(self.readings) < MAX_READINGS:
            return False
        # Keep the first one.
        del self.readings[1::2]
        return True

    # --- results ---------------------------------------------------------------------------

    def waits(self) -> Waits:
        """Return the waiting times of placed pods."""
        return Waits.of(self._waits_s)

    def reasons(self) -> tuple[RejectionReason, ...]:
        """Return the reasons of rejections, that of most pods first."""
        found = (
            RejectionReason(reason, pods=len(pods), refusals=self._refusal_counts[reason])
            for reason, pods in self._refused_for.items()
        )
        return tuple(sorted(found, key=lambda each: (-each.pods, -each.refusals, each.reason)))

    def waiting(self, pods: Iterable[Pod]) -> tuple[StillPending, ...]:
        """Return the pending ones of some pods with the reason, longest waiting first."""
        found = []
        for pod in pods:
            since_s = self._since_s.get(pod.metadata.uid)
            if since_s is None:
                continue
            refusal = self._refusals.get(pod.metadata.uid, _Refusal())
            found.append(
                StillPending(
                    _name(pod),
                    waited_s=round(self._clock.time() - since_s, 3),
                    attempts=refusal.attempts,
                    message=refusal.message,
                )
            )
        return tuple(sorted(found, key=lambda each: (-each.waited_s, each.pod)))


def reasons_in(message: str) -> list[str]:
    """Return the reasons in a message, without the numbers of nodes."""
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
