"""One run in virtual time, summed up."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubesched.simulate.happenings import Happening
from kubesched.simulate.playing import Conditions, Played, play
from kubesched.simulate.report import Reading, Run
from kubesched.simulate.spreading import spread_of, summed
from kubesched.simulate.trace import Script

#: Readings of a run whose length is known before.
READINGS = 96


def run(conditions: Conditions, script: Script | None = None) -> Run:
    """Play a script, or nothing but the pods that wait, and sum up what happened."""
    happenings = script.happenings(conditions.seed) if script is not None else []
    until_s = conditions.until_s
    if until_s is None and script is not None:
        until_s = script.until_s
    period_s = conditions.reading_period_s or _period_s(happenings, until_s)
    played = play(replace(conditions, until_s=until_s, reading_period_s=period_s), happenings)
    return summary(played)


def _period_s(happenings: Sequence[Happening], until_s: float | None) -> float:
    last_s = max((each.at_s for each in happenings), default=0.0)
    return (until_s or last_s) / READINGS


def summary(played: Played) -> Run:
    """Sum up a play."""
    seen = played.observations
    waiting = seen.waiting(pod for pod in played.pods if not pod.spec.node_name)
    return Run(
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


def _regular(readings: Sequence[Reading]) -> Sequence[Reading]:
    """Return the readings without the last, which is of the end, whenever that was."""
    return readings[:-1] or readings


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 2) if values else 0.0
