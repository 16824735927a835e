"""Validates a completed configuration; all errors are reported together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kubesched.api.labels import label_key_errors
from kubesched.config.args import (
    ARGS_KINDS,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kubesched.config.durations import Duration
from kubesched.config.features import FeatureGates
from kubesched.config.field_errors import aggregate, duplicate, invalid, required
from kubesched.config.profiles import EXTENSION_POINTS, PluginSet, Profile
from kubesched.config.types import (
    API_VERSION,
    Extender,
    LeaderElection,
    SchedulerConfiguration,
)
from kubesched.config.validation_args import ARGS_CHECKS
from kubesched.errors import ConfigError

#: Structs that have no JSON names in kube-scheduler.
_INTERNAL_STRUCTS: Final = (
    *ARGS_KINDS.values(),
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
#: Plugins that were removed from kube-scheduler; naming one is an error.
_REMOVED_PLUGINS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
_REMOVED: Final = (
    f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
)
#: kube-scheduler does not look for them at the placement points.
_POINTS_WITH_REMOVED_PLUGINS: Final = tuple(
    point for point in EXTENSION_POINTS if not point.startswith("placement")
)


def validate(config: SchedulerConfiguration, gates: FeatureGates) -> None:
    """Raise ConfigError with all errors of an invalid configuration."""
    errors = validation_errors(config, gates)
    if errors:
        raise ConfigError(aggregate(errors))


def validation_errors(config: SchedulerConfiguration, gates: FeatureGates) -> list[str]:
    """Return all errors of a configuration."""
    errors = []
    if config.client_connection.burst < 0:
        burst = config.client_connection.burst
        errors.append(invalid("clientConnection.burst", burst, "must be non-negative"))
    if config.leader_election.leader_elect:
        errors += _leader_election_errors(config.leader_election)
    if config.parallelism <= 0:
        detail = "should be an integer value greater than zero"
        errors.append(invalid("parallelism", config.parallelism, detail))
    errors += _profiles_errors(config.profiles, gates)
    errors += _percentage_errors("", config.percentage_of_nodes_to_score)
    errors += _backoff_errors(config)
    return errors + _extenders_errors(config.extenders)


def _leader_election_errors(election: LeaderElection) -> list[str]:
    path = "leaderElection"
    errors = [
        invalid(f"{path}.{name}", duration, "must be greater than zero")
        for name, duration in (
            ("leaseDuration", election.lease_duration),
            ("renewDeadline", election.renew_deadline),
            ("retryPeriod", election.retry_period),
        )
        if duration <= Duration()
    ]
    if election.lease_duration <= election.renew_deadline:
        # The value shown is the deadline, not the lease, as kube-scheduler has it.
        detail = "must be greater than `RenewDeadline`"
        errors.append(invalid(f"{path}.leaseDuration", election.renew_deadline, detail))
    errors += [
        required(f"{path}.{name}")
        for name, value in (
            ("resourceLock", election.resource_lock),
            ("resourceNamespace", election.resource_namespace),
            ("resourceName", election.resource_name),
        )
        if not value
    ]
    if election.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        errors.append(invalid(f"{path}.resourceLock", election.resource_lock, detail))
    return errors


def _backoff_errors(config: SchedulerConfiguration) -> list[str]:
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    errors = []
    if initial <= 0:
        errors.append(invalid("podInitialBackoffSeconds", initial, "must be greater than 0"))
    if longest < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        errors.append(invalid("podMaxBackoffSeconds", longest, detail))
    return errors


def _percentage_errors(prefix: str, percentage: int | None) -> list[str]:
    if percentage is None or 0 <= percentage <= 100:
        return []
    path = f"{prefix}percentageOfNodesToScore"
    return [invalid(path, percentage, "not in valid range [0-100]")]


# --- profiles ---------------------------------------------------------------------------------


def _profiles_errors(profiles: Sequence[Profile], gates: FeatureGates) -> list[str]:
    if not profiles:
        return [required("profiles")]
    errors = []
    names = set()
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        errors += _profile_errors(path, profile, gates)
        if profile.scheduler_name in names:
            # kube-scheduler means to show the path of the other profile, and shows this.
            errors.append(duplicate(f"{path}.schedulerName", {}))
        names.add(profile.scheduler_name)
    return errors + _queue_sort_errors(profiles)


def _profile_errors(path: str, profile: Profile, gates: FeatureGates) -> list[str]:
    errors = []
    if not profile.scheduler_name:
        errors.append(required(f"{path}.schedulerName"))
    errors += _percentage_errors(f"{path}.", profile.percentage_of_nodes_to_score)
    for point in _POINTS_WITH_REMOVED_PLUGINS:
        for index, ref in enumerate(profile.plugins.at(point).enabled):
            if ref.name in _REMOVED_PLUGINS:
                errors.append(
                    invalid(f"{path}.plugins.{point}.enabled[{index}]", ref.name, _REMOVED)
                )
    return errors + _plugin_config_errors(path, profile, gates)


def _plugin_config_errors(path: str, profile: Profile, gates: FeatureGates) -> list[str]:
    errors = []
    seen = set()
    for index, config in enumerate(profile.plugin_config):
        config_path = f"{path}.pluginConfig[{index}]"
        if config.name in seen:
            errors.append(duplicate(config_path, config.name))
        seen.add(config.name)
        if config.name in _REMOVED_PLUGINS:
            errors.append(invalid(config_path, config.name, _REMOVED))
        elif config.name in ARGS_CHECKS:
            if isinstance(config.args, ARGS_KINDS[config.name]):
                errors += ARGS_CHECKS[config.name](f"{config_path}.args", config.args, gates)
            else:
                args = _shown_args(config.args)
                errors.append(invalid(f"{config_path}.args", args, "has to match plugin args"))
    return errors


def _queue_sort_errors(profiles: Sequence[Profile]) -> list[str]:
    """Check that all profiles sort the one queue in the same way."""
    first, *others = profiles
    common = first.plugins.queue_sort
    errors = []
    if len(common.enabled) > 1:
        detail = "only one queue sort plugin can be enabled"
        path = "profiles[0].plugins.queueSort.Enabled"
        errors.append(invalid(path, len(common.enabled), detail))
    name = common.enabled[0].name if common.enabled else ""
    # Without a name, the first profile's arguments are not looked up; arguments without the name of
    # a plugin in another profile then differ from none.
    args = _args_of(first, name) if name else None
    for index, profile in enumerate(others, start=1):
        path = f"profiles[{index}]"
        if profile.plugins.queue_sort != common:
            shown = _shown_plugin_set(profile.plugins.queue_sort)
            detail = "must be the same for all profiles"
            errors.append(invalid(f"{path}.plugins.queueSort", shown, detail))
        for config in profile.plugin_config:
            if config.name == name and config.args != args:
                value = _shown_args(config.args)
                detail = "queueSort must be the same for all profiles"
                errors.append(invalid(f"{path}.pluginConfig.args", value, detail))
    return errors


def _shown_args(value: object) -> object:
    """Return arguments as messages show them: those of in-tree plugins with Go's field names."""
    match value:
        case Duration():
            return str(value)
        case tuple():
            return [_shown_args(each) for each in value] or None
        case msgspec.Struct() if isinstance(value, _INTERNAL_STRUCTS):
            return {
                field.encode_name[0].upper() + field.encode_name[1:]: _shown_args(
                    getattr(value, field.name)
                )
                for field in msgspec.structs.fields(value)
            }
    return msgspec.to_builtins(value)


def _args_of(profile: Profile, plugin: str) -> object:
    found: object = None
    for config in profile.plugin_config:
        if config.name == plugin:
            found = config.args
    return found


def _shown_plugin_set(plugin_set: PluginSet) -> dict[str, object]:
    return {
        title: [{"Name": ref.name, "Weight": ref.weight} for ref in refs] or None
        for title, refs in (("Enabled", plugin_set.enabled), ("Disabled", plugin_set.disabled))
    }


# --- extenders --------------------------------------------------------------------------------


def _extenders_errors(extenders: Sequence[Extender]) -> list[str]:
    errors = []
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            detail = "must have a positive weight applied to it"
            errors.append(invalid(f"{path}.weight", extender.weight, detail))
        for position, resource in enumerate(extender.managed_resources):
            name_path = f"{path}.managedResources[{position}].name"
            errors += [
                invalid(name_path, resource.name, problem)
                for problem in _extended_resource_problems(resource.name)
            ]
            if resource.name in managed:
                detail = "duplicate extender managed resource name"
                errors.append(invalid(name_path, resource.name, detail))
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        value = f"found {binders} extenders implementing bind"
        errors.append(invalid("extenders", value, "only one extender can implement bind"))
    return errors


def _extended_resource_problems(name: str) -> list[str]:
    """Return the errors in a name of an extended resource."""
    problems = label_key_errors(name)
    if problems:
        return problems
    native = "/" not in name or "kubernetes.io/" in name
    # Quota prefixes the name with "requests.", and has to be able to.
    if native or name.startswith("requests.") or label_key_errors(f"requests.{name}"):
        return ["is an invalid extended resource name"]
    return []
