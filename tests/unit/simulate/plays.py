"""Short plays, for the tests of virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kubesched.api.core import Node, Pod
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.simulate.playing import Conditions, Played, play
from kubesched.simulate.simulated_cluster import Delays
from kubesched.simulate.timed_events import TimedEvent
from tests.support.worlds import CONFIG, GATES, snapshot_of


def conditions_of(
    objects: Iterable[Node | Pod],
    *,
    seed: int = 0,
    delays: Delays = Delays(),  # noqa: B008 (immutable)
    until_s: float | None = None,
    in_line: bool = False,
    config: SchedulerConfiguration = CONFIG,
    reading_period_s: float = 0.0,
) -> Conditions:
    """Return conditions of a few objects."""
    return Conditions(
        snapshot=snapshot_of(objects),
        config=config,
        gates=GATES,
        seed=seed,
        delays=delays,
        until_s=until_s,
        in_line=in_line,
        reading_period_s=reading_period_s,
    )


def played(
    objects: Iterable[Node | Pod],
    happenings: Sequence[TimedEvent] = (),
    *,
    delays: Delays = Delays(),  # noqa: B008 (immutable)
    until_s: float | None = None,
    in_line: bool = False,
) -> Played:
    """Play something and check that the state in the end is sound."""
    conditions = conditions_of(objects, delays=delays, until_s=until_s, in_line=in_line)
    found = play(conditions, happenings)
    found.cluster.validate()
    return found


def nodes_of(found: Played) -> dict[str, str]:
    """Return the node of each pod, by its name."""
    return {pod.metadata.name: pod.spec.node_name for pod in found.pods}


def run_of(
    objects: Iterable[Any],
    happenings: Sequence[TimedEvent] = (),
    *,
    gates: FeatureGates = GATES,
    until_s: float | None = None,
    progress: Callable[[float, int], None] = lambda _seconds, _waiting: None,
) -> Played:
    """Play with objects of any kind and feature gates; the state in the end is sound."""
    conditions = Conditions(
        snapshot=snapshot_of(objects),
        config=SchedulerConfiguration.default(gates),
        gates=gates,
        until_s=until_s,
        progress=progress,
    )
    found = play(conditions, happenings)
    found.cluster.validate()
    return found
