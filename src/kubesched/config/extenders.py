"""Effects of extenders on the rest of the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kubesched.config.args import NodeResourcesFitArgs
from kubesched.config.durations import Duration
from kubesched.config.profiles import PluginConfig, Profile
from kubesched.config.types import Extender, SchedulerConfiguration
from kubesched.errors import ConfigError

#: Default timeout of a call.
DEFAULT_TIMEOUT: Final = Duration.of_seconds(5)

#: stands for extenders where a plugin is named
EXTENDER: Final = "Extender"

_FIT: Final = "NodeResourcesFit"


def calling_order(extenders: Sequence[Extender]) -> tuple[Extender, ...]:
    """Sort ignorable extenders after the others."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def with_extender_effects(config: SchedulerConfiguration) -> SchedulerConfiguration:
    """Fill in the timeouts of extenders, and have NodeResourcesFit ignore resources they manage.

    In every profile, these resources replace the ignored resources of the profile itself.
    """
    extenders = tuple(_with_timeout(extender) for extender in config.extenders)
    ignored = tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    profiles = config.profiles
    if ignored:
        profiles = tuple(_ignoring(profile, ignored) for profile in profiles)
    return msgspec.structs.replace(config, extenders=extenders, profiles=profiles)


def _with_timeout(extender: Extender) -> Extender:
    if extender.http_timeout != Duration():
        return extender
    return msgspec.structs.replace(extender, http_timeout=DEFAULT_TIMEOUT)


def _ignoring(profile: Profile, resources: tuple[str, ...]) -> Profile:
    found = False
    configs: list[PluginConfig] = []
    for config in profile.plugin_config:
        if config.name == _FIT and isinstance(config.args, NodeResourcesFitArgs):
            args = msgspec.structs.replace(config.args, ignored_resources=resources)
            configs.append(PluginConfig(name=_FIT, args=args))
            found = True
        else:
            configs.append(config)
    if not found:
        raise ConfigError(
            "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
        )
    return msgspec.structs.replace(profile, plugin_config=tuple(configs))
