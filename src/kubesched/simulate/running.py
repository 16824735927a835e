"""Summarizes one run in virtual time."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubesched.simulate.playing import Conditions, Played, play
from kubesched.simulate.report import RunReport, UsageSample
from kubesched.simulate.spreading import spread_of, summed
from kubesched.simulate.timed_events import TimedEvent
from kubesched.simulate.trace import Script

#: Number of samples of a run of known length.
READINGS = 96


def run(conditions: Conditions, script: Script | None = None) -> RunReport:
    """Run a script, or only the pending pods, and summarize it."""
    happenings = script.happenings(conditions.seed) if script is not None else []
    until_s = conditions.until_s
    if until_s is None and script is not None:
        until_s = script.until_s
    period_s = conditions.reading_period_s or _period_s(happenings, until_s)
    played = play(replace(conditions, until_s=until_s, reading_period_s=period_s), happenings)
    return summary(played)


def _period_s(happenings: Sequence[TimedEvent], until_s: float | None) -> float:
    last_s = max((each.at_s for each in happenings), default=0.0)
    return (until_s or last_s) / READINGS


def summary(played: Played) -> RunReport:
    """Summarize a simulation."""
    seen = played.observations
    waiting = seen.waiting(pod for pod in played.pods if not pod.spec.node_name)
    return RunReport(
        seconds=round(played.seconds, 3),
        arrived=seen.arrivals,
        placed=seen.placements,
        ended=seen.ends,
        displaced=seen.displacements,
        pending=len(waiting),
        waits=seen.waits(),
        preemptions=tuple(seen.preemptions),
        reasons=seen.reasons(),
        waiting=waiting,
        mean_cpu=_mean([each.cpu for each in _regular(seen.readings)]),
        mean_memory=_mean([each.memory for each in _regular(seen.readings)]),
        spread=summed(spread_of(played.cluster, played.pods)),
        readings=tuple(seen.readings),
        notes=played.notes,
    )


def _regular(readings: Sequence[UsageSample]) -> Sequence[UsageSample]:
    """Return the samples without the last, which is irregular."""
    return readings[:-1] or readings


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 2) if values else 0.0
