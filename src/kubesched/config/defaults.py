"""Defaults of profiles: plugin sets, and arguments of plugins.

The user's plugin sets are merged into the default ones, which depend on feature gates, and every
enabled in-tree plugin gets arguments. Arguments come in as JSON objects with the given fields, and
go out as complete structs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kubesched.api.names import DEFAULT_SCHEDULER
from kubesched.config.args import (
    ARGS_KINDS,
    DEFAULT_RESOURCES,
    MAX_CUSTOM_PRIORITY_SCORE,
    PluginArgs,
    UtilizationShapePoint,
)
from kubesched.config.durations import Duration
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import (
    ALL_PLUGINS,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    Profile,
)

JsonObject = dict[str, Any]

#: The default plugins in their order; those with a weight score nodes.
DEFAULT_PLUGINS: Final = (
    PluginRef(name="SchedulingGates"),
    PluginRef(name="PrioritySort"),
    PluginRef(name="NodeName"),
    PluginRef(name="NodeUnschedulable"),
    PluginRef(name="TaintToleration", weight=3),
    PluginRef(name="NodeAffinity", weight=2),
    PluginRef(name="NodePorts"),
    # Before NodeResourcesFit: a node that forbids preemption for a resize must not count as full.
    PluginRef(name="DeferredPodScheduling"),
    PluginRef(name="NodeResourcesFit", weight=1),
    PluginRef(name="VolumeRestrictions"),
    PluginRef(name="NodeVolumeLimits"),
    PluginRef(name="VolumeBinding"),
    PluginRef(name="VolumeZone"),
    PluginRef(name="PodTopologySpread", weight=2),
    PluginRef(name="InterPodAffinity", weight=2),
    # Before DefaultPreemption: deallocating an unused claim is better than evicting a pod.
    PluginRef(name="DynamicResources", weight=2),
    PluginRef(name="DefaultPreemption"),
    PluginRef(name="NodeResourcesBalancedAllocation", weight=1),
    PluginRef(name="ImageLocality", weight=1),
    PluginRef(name="DefaultBinder"),
    PluginRef(name="NodeDeclaredFeatures"),
    PluginRef(name="GangScheduling"),
    PluginRef(name="TopologyPlacementGenerator"),
    PluginRef(name="PodGroupPodsCount", weight=1),
)

#: Every in-tree plugin of kube-scheduler, whether it exists here or not.
IN_TREE_PLUGINS: Final = frozenset(ref.name for ref in DEFAULT_PLUGINS)

#: Default plugins that are enabled only if their gate is on.
PLUGIN_GATES: Final = {
    "DeferredPodScheduling": "InPlacePodVerticalScalingSchedulerPreemption",
    "DynamicResources": "DynamicResourceAllocation",
    "NodeDeclaredFeatures": "NodeDeclaredFeatures",
    "GangScheduling": "GenericWorkload",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
}

_FILTER_TIMEOUT: Final = Duration.of_seconds(10)
_BINDING_TIMEOUT: Final = Duration.of_seconds(600)
_SHAPE: Final = (
    UtilizationShapePoint(utilization=0, score=MAX_CUSTOM_PRIORITY_SCORE),
    UtilizationShapePoint(utilization=100, score=0),
)


def default_plugins(gates: FeatureGates) -> Plugins:
    """Return the plugin sets of a profile without ``plugins``."""
    enabled = tuple(
        ref
        for ref in DEFAULT_PLUGINS
        if ref.name not in PLUGIN_GATES or gates.enabled(PLUGIN_GATES[ref.name])
    )
    return Plugins(multi_point=PluginSet(enabled=enabled))


def default_profile(gates: FeatureGates) -> Profile:
    """Return the only profile of a configuration that names none."""
    return complete_profile(Profile(scheduler_name=DEFAULT_SCHEDULER), given_args=(), gates=gates)


def complete_profile(
    profile: Profile, *, given_args: tuple[PluginConfig, ...], gates: FeatureGates
) -> Profile:
    """Merge the profile's plugins with the default ones, and add missing arguments."""
    plugins = merge_plugins(default_plugins(gates), profile.plugins)
    given = {config.name for config in given_args}
    added = tuple(
        PluginConfig(name=name, args=complete_args(name, {}, gates))
        for name in plugins.names()
        if name in ARGS_KINDS and name not in given
    )
    return msgspec.structs.replace(profile, plugins=plugins, plugin_config=given_args + added)


def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """Merge the user's plugin sets into the default ones, point by point."""
    merged = {
        info.name: merge_plugin_set(default.at(info.encode_name), custom.at(info.encode_name))
        for info in msgspec.structs.fields(Plugins)
    }
    return Plugins(**merged)


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Merge one point: re-enabled defaults stay in their order, other plugins follow them."""
    disabled = tuple(PluginRef(name=ref.name) for ref in custom.disabled + default.disabled)
    disabled_names = {ref.name for ref in disabled}
    kept = () if ALL_PLUGINS in disabled_names else default.enabled
    # Of plugins named twice, the last one replaces the default; the others stay, to be rejected
    # when the profile is built.
    replacement = {ref.name: index for index, ref in enumerate(custom.enabled)}
    enabled: list[PluginRef] = []
    used: set[int] = set()
    for ref in kept:
        if ref.name in disabled_names:
            continue
        index = replacement.get(ref.name)
        if index is None:
            enabled.append(ref)
        else:
            enabled.append(custom.enabled[index])
            used.add(index)
    enabled += [ref for index, ref in enumerate(custom.enabled) if index not in used]
    return PluginSet(enabled=tuple(enabled), disabled=disabled)


def complete_args(plugin: str, given: Mapping[str, Any], gates: FeatureGates) -> PluginArgs:
    """Fill in the defaults of the arguments of an in-tree plugin."""
    fields = dict(given)
    match plugin:
        case "NodeResourcesFit":
            given_strategy = fields.get("scoringStrategy")
            # A strategy without a type is not the default one: validation rejects it.
            strategy: JsonObject = (
                {"type": "LeastAllocated"}
                if given_strategy is None
                else {"type": "", **given_strategy}
            )
            strategy["resources"] = _weighted(strategy.get("resources"))
            fields["scoringStrategy"] = strategy
        case "NodeResourcesBalancedAllocation":
            fields["resources"] = _weighted(fields.get("resources"))
        case "PodTopologySpread":
            fields["defaultingType"] = fields.get("defaultingType") or "System"
        case "VolumeBinding":
            if not fields.get("shape") and gates.enabled("StorageCapacityScoring"):
                fields["shape"] = _SHAPE
        case "DynamicResources":
            _complete_timeouts(fields, gates)
    return msgspec.convert(fields, ARGS_KINDS[plugin])


def _weighted(resources: list[JsonObject] | None) -> list[JsonObject]:
    if not resources:
        return [{"name": spec.name, "weight": spec.weight} for spec in DEFAULT_RESOURCES]
    return [{**resource, "weight": resource.get("weight") or 1} for resource in resources]


def _complete_timeouts(fields: JsonObject, gates: FeatureGates) -> None:
    if fields.get("filterTimeout") is None and gates.enabled("DRASchedulerFilterTimeout"):
        fields["filterTimeout"] = _FILTER_TIMEOUT
    if (
        fields.get("bindingTimeout") is None
        and gates.enabled("DRADeviceBindingConditions")
        and gates.enabled("DRAResourceClaimDeviceStatus")
    ):
        fields["bindingTimeout"] = _BINDING_TIMEOUT
