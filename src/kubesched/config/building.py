"""Checks whether a scheduler can be built from a configuration, without building it.

A configuration that is rejected here is well-formed and valid field by field, but names plugins
that do not exist or do not go together. The checks are in the order in which kube-scheduler builds:
extenders, then for each profile its plugins and its extension points.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from kubesched.config.args import NodeResourcesFitArgs
from kubesched.config.encoding import used_profiles
from kubesched.config.extenders import with_extender_effects
from kubesched.config.plugins import PointsOf, Unbuilt, expand_all
from kubesched.config.profiles import Profile
from kubesched.config.types import SchedulerConfiguration
from kubesched.config.validation_args import check_node_resources_fit_args
from kubesched.errors import ConfigError

_FIT: Final = "NodeResourcesFit"


def as_built(
    config: SchedulerConfiguration,
    points_of: PointsOf | Mapping[str, Collection[str]],
    *,
    unbuilt: Unbuilt = Unbuilt.REFUSE,
) -> SchedulerConfiguration:
    """Return the configuration that a scheduler is built from; raises ConfigError if it cannot be.

    It includes the effects of extenders, and lacks the arguments of plugins that are not enabled.
    """
    config = with_extender_effects(config)
    for count, profile in enumerate(config.profiles, 1):
        _check_plugins(profile)
        expand_all(config.profiles[:count], points_of, unbuilt=unbuilt)
    return used_profiles(config)


def _check_plugins(profile: Profile) -> None:
    if _FIT not in profile.plugins.names():
        return
    try:
        check_node_resources_fit_args(profile.args(_FIT, NodeResourcesFitArgs))
    except ConfigError as refused:
        raise ConfigError(
            "initializing profiles: creating profile for scheduler name "
            f'{profile.scheduler_name}: initializing plugin "{_FIT}": {refused}'
        ) from None
