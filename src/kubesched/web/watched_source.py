"""A source for a live cluster with another scheduler."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.client.access import ClusterAccess
from kubesched.clock import Clock
from kubesched.shadow.watching import WatchedCluster
from kubesched.web.freshness import Freshness
from kubesched.web.living_world import Rules
from kubesched.web.rates import Rates, RateSample
from kubesched.web.source import LiveSource, Source
from kubesched.web.watched_state import PlacementCount, WatchedState


def watched_source(
    access: ClusterAccess, rules: Rules, *, clock: Clock
) -> tuple[WatchedCluster, Source]:
    """Return a watched cluster, to be run by the caller, and its source."""
    placements = PlacementCount(clock)
    watched = WatchedCluster(
        access,
        rules.config,
        rules.gates,
        registry=rules.registry,
        clock=clock,
        user_agent="kubesched-ui",
        wrap_pods=placements.wrap,
    )
    freshness = Freshness(watched.informers.values, clock)
    source = LiveSource(
        "cluster",
        WatchedState(watched, placements, _always(rules)),
        Rates(clock, lambda at: RateSample(at, placements.placed)),
        clock=clock,
        title=lambda: access.server.address,
        scheduler_names=lambda: watched.frameworks,
        stale=freshness.stale,
        probe=lambda: freshness.probe(watched.client),
    )
    return watched, source


def _always(rules: Rules) -> Callable[[], Rules]:
    return lambda: rules
