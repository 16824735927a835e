"""Builds the framework of a profile from its configuration."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from kubesched.clock import Clock, RealClock
from kubesched.cluster.cluster import Cluster
from kubesched.config import plugins as config_plugins
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import Profile
from kubesched.errors import ConfigError
from kubesched.framework.group_runtime import placement_feasible_plugins
from kubesched.framework.null_writers import (
    NullBinder,
    NullClaimWriter,
    NullEvictor,
    NullVolumeWriter,
)
from kubesched.framework.observing import NullObserver
from kubesched.framework.registry import (
    ClaimWriter,
    EvaluatorReference,
    Evictor,
    PluginContext,
    PodBinder,
    Registry,
    VolumeWriter,
)
from kubesched.framework.runtime import Framework
from kubesched.framework.waiting import WaitingPods
from kubesched.metrics.recorder import Metrics


def build_framework(
    profile: Profile,
    *,
    registry: Registry,
    gates: FeatureGates,
    cluster: Cluster,
    binder: PodBinder | None = None,
    evictor: Evictor | None = None,
    waiting: WaitingPods | None = None,
    volume_writer: VolumeWriter | None = None,
    claim_writer: ClaimWriter | None = None,
    clock: Clock | None = None,
    on_volume_stage_failure: Callable[[str], None] = lambda _stage: None,
    percentage_of_nodes_to_score: int = 0,
    metrics: Metrics | None = None,
    observer: NullObserver | None = None,
) -> Framework:
    """Build every plugin that the profile enables; raises ConfigError if one cannot be built.

    In-tree plugins that the registry lacks are left out; the framework lists them. Without a
    binder, an evictor and a volume writer, the framework can decide but not act.
    """
    expansion = config_plugins.expand(
        profile, registry.points_of, unbuilt=config_plugins.Unbuilt.LEAVE_OUT
    )
    context = PluginContext(
        profile=profile,
        gates=gates,
        cluster=cluster,
        binder=NullBinder() if binder is None else binder,
        evictor=NullEvictor() if evictor is None else evictor,
        waiting=WaitingPods() if waiting is None else waiting,
        metrics=_unread_metrics() if metrics is None else metrics,
        evaluator=EvaluatorReference(),
        volume_writer=NullVolumeWriter() if volume_writer is None else volume_writer,
        claim_writer=NullClaimWriter() if claim_writer is None else claim_writer,
        clock=RealClock() if clock is None else clock,
        on_volume_stage_failure=on_volume_stage_failure,
    )
    instances = {}
    for name in sorted({ref.name for refs in expansion.points.values() for ref in refs}):
        try:
            instances[name] = registry[name].create(context)
        except ConfigError as refused:
            raise ConfigError(f'initializing plugin "{name}": {refused}') from None
    framework = Framework(
        profile,
        expansion=expansion,
        instances=instances,
        cluster=cluster,
        percentage_of_nodes_to_score=percentage_of_nodes_to_score,
        observer=observer,
    )
    context.evaluator.set(framework.evaluator)
    framework.groups.placement_feasible = placement_feasible_plugins(
        instances, by_spec=gates.enabled("GenericWorkload")
    )
    return framework


@cache
def _unread_metrics() -> Metrics:
    """Return metrics for frameworks that are not scraped."""
    return Metrics(FeatureGates.of({}))
