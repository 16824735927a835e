"""Making the framework of a profile from its configuration."""

from __future__ import annotations

from kubesched.cluster.cluster import Cluster
from kubesched.config import plugins as config_plugins
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import Profile
from kubesched.errors import ConfigError
from kubesched.framework.registry import (
    EvaluatorReference,
    Evictor,
    PluginContext,
    PodBinder,
    Registry,
)
from kubesched.framework.runtime import Framework
from kubesched.framework.waiting import WaitingPods


def build_framework(
    profile: Profile,
    *,
    registry: Registry,
    gates: FeatureGates,
    cluster: Cluster,
    binder: PodBinder,
    evictor: Evictor,
    waiting: WaitingPods | None = None,
    percentage_of_nodes_to_score: int = 0,
) -> Framework:
    """Make every plugin that the profile enables; raises ConfigError if that is not possible.

    In-tree plugins that the registry lacks are left out; the framework says which.
    """
    expansion = config_plugins.expand(
        profile, registry.points_of, unbuilt=config_plugins.Unbuilt.LEAVE_OUT
    )
    context = PluginContext(
        profile=profile,
        gates=gates,
        cluster=cluster,
        binder=binder,
        evictor=evictor,
        waiting=WaitingPods() if waiting is None else waiting,
        evaluator=EvaluatorReference(),
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
    )
    context.evaluator.set(framework.evaluator)
    return framework
