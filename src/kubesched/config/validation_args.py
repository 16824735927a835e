"""Validates the arguments of plugins.

Each function takes the path of the arguments and the arguments, and returns the errors. As in
kube-scheduler, those of NodeResourcesFit are validated when the plugin is built, not with the rest
of the configuration, and their errors have no path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kubesched.api.core import TopologySpreadConstraint
from kubesched.api.labels import label_key_errors, node_selector_terms, node_term
from kubesched.config import args as arguments
from kubesched.config.args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubesched.config.durations import Duration
from kubesched.config.features import FeatureGates
from kubesched.config.field_errors import (
    aggregate,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kubesched.errors import ConfigError

Shape = tuple[UtilizationShapePoint, ...]

_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_STRATEGIES: Final = (
    arguments.LEAST_ALLOCATED,
    arguments.MOST_ALLOCATED,
    arguments.REQUESTED_TO_CAPACITY_RATIO,
)
_SHORTEST_BINDING_TIMEOUT: Final = Duration.of_seconds(1)


def check_node_resources_fit_args(args: NodeResourcesFitArgs) -> None:
    """Reject invalid arguments of NodeResourcesFit; the plugin calls this."""
    errors = node_resources_fit_errors("", args)
    if errors:
        raise ConfigError(aggregate(errors))


def default_preemption_errors(path: str, args: DefaultPreemptionArgs) -> list[str]:
    """Check DefaultPreemptionArgs."""
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path = f"{path}.minCandidateNodesPercentage"
    absolute_path = f"{path}.minCandidateNodesAbsolute"
    errors = []
    if not 0 <= percentage <= 100:
        errors.append(invalid(percentage_path, percentage, "not in valid range [0, 100]"))
    if absolute < 0:
        errors.append(invalid(absolute_path, absolute, "not in valid range [0, inf)"))
    if percentage == 0 and absolute == 0:
        both = "cannot be zero at the same time as"
        errors.append(invalid(percentage_path, 0, f"{both} minCandidateNodesAbsolute"))
        errors.append(invalid(absolute_path, 0, f"{both} minCandidateNodesPercentage"))
    return errors


def inter_pod_affinity_errors(path: str, args: InterPodAffinityArgs) -> list[str]:
    """Check InterPodAffinityArgs."""
    weight = args.hard_pod_affinity_weight
    if 0 <= weight <= 100:
        return []
    return [invalid(f"{path}.hardPodAffinityWeight", weight, "not in valid range [0, 100]")]


def node_affinity_args_errors(path: str, args: NodeAffinityArgs) -> list[str]:
    """Check NodeAffinityArgs; an empty term, and one of weight 0, are not checked."""
    errors: list[str] = []
    affinity, affinity_path = args.added_affinity, f"{path}.addedAffinity"
    if affinity is None:
        return errors
    selector = affinity.required_during_scheduling_ignored_during_execution
    if selector is not None:
        required_path = f"{affinity_path}.requiredDuringSchedulingIgnoredDuringExecution"
        for term in node_selector_terms(selector, path=required_path):
            errors += term.errors
    preferred_path = f"{affinity_path}.preferredDuringSchedulingIgnoredDuringExecution"
    preferred = affinity.preferred_during_scheduling_ignored_during_execution or ()
    for index, weighted in enumerate(preferred):
        if weighted.weight:
            errors += node_term(weighted.preference, path=f"{preferred_path}[{index}]").errors
    return errors


def balanced_allocation_errors(path: str, args: NodeResourcesBalancedAllocationArgs) -> list[str]:
    """Check NodeResourcesBalancedAllocationArgs."""
    errors = []
    seen = set()
    for index, resource in enumerate(args.resources):
        resource_path = f"{path}.resources[{index}]"
        if resource.name in seen:
            errors.append(duplicate(f"{resource_path}.name", resource.name))
        seen.add(resource.name)
        if resource.weight != 1:
            errors.append(invalid(f"{resource_path}.weight", resource.weight, "must be 1"))
    return errors


def pod_topology_spread_errors(path: str, args: PodTopologySpreadArgs) -> list[str]:
    """Check PodTopologySpreadArgs."""
    errors = []
    type_path, kinds = (
        f"{path}.defaultingType",
        (
            arguments.SYSTEM_DEFAULTING,
            arguments.LIST_DEFAULTING,
        ),
    )
    if args.defaulting_type not in kinds:
        errors.append(unsupported(type_path, args.defaulting_type, kinds))
    elif args.defaulting_type == arguments.SYSTEM_DEFAULTING and args.default_constraints:
        detail = "when .defaultConstraints are not empty"
        errors.append(invalid(type_path, args.defaulting_type, detail))
    seen = set()
    for index, constraint in enumerate(args.default_constraints):
        constraint_path = f"{path}.defaultConstraints[{index}]"
        errors += _constraint_errors(constraint_path, constraint)
        identity = (constraint.topology_key, constraint.when_unsatisfiable)
        if identity in seen:
            errors.append(duplicate(constraint_path, f"{{{', '.join(identity)}}}"))
        seen.add(identity)
    return errors


def _constraint_errors(path: str, constraint: TopologySpreadConstraint) -> list[str]:
    errors = []
    key, action = constraint.topology_key, constraint.when_unsatisfiable
    if constraint.max_skew <= 0:
        detail = "not in valid range (0, inf)"
        errors.append(invalid(f"{path}.maxSkew", constraint.max_skew, detail))
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    else:
        errors += _label_name_errors(f"{path}.topologyKey", key)
    if not action:
        errors.append(required(f"{path}.whenUnsatisfiable", "can not be empty"))
    elif action not in _ACTIONS:
        errors.append(unsupported(f"{path}.whenUnsatisfiable", action, _ACTIONS))
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        errors.append(forbidden(f"{path}.labelSelector", detail))
    return errors


def volume_binding_errors(path: str, args: VolumeBindingArgs, gates: FeatureGates) -> list[str]:
    """Check VolumeBindingArgs."""
    errors = []
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        errors.append(invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_seconds, detail))
    if gates.enabled("StorageCapacityScoring"):
        errors += _shape_errors(f"{path}.shape", args.shape or ())
    elif args.shape is not None:
        # Rejected rather than ignored, so that turning the gate on does not change behaviour.
        detail = (
            "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        )
        shape = [{"Utilization": p.utilization, "Score": p.score} for p in args.shape]
        errors.append(invalid(f"{path}.shape", shape, detail))
    return errors


def dynamic_resources_errors(
    path: str, args: DynamicResourcesArgs, gates: FeatureGates
) -> list[str]:
    """Check DynamicResourcesArgs."""
    errors = []
    filter_path, binding_path = f"{path}.filterTimeout", f"{path}.bindingTimeout"
    if args.filter_timeout is not None:
        if not gates.enabled("DRASchedulerFilterTimeout"):
            detail = "DRASchedulingFilterTimeout feature gate is disabled"
            errors.append(forbidden(filter_path, detail))
        elif args.filter_timeout < Duration():
            errors.append(invalid(filter_path, args.filter_timeout, "must be zero or positive"))
    if args.binding_timeout is not None:
        conditions = gates.enabled("DRADeviceBindingConditions")
        if not (conditions and gates.enabled("DRAResourceClaimDeviceStatus")):
            detail = (
                "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate "
                "is disabled"
            )
            errors.append(forbidden(binding_path, detail))
        elif args.binding_timeout < _SHORTEST_BINDING_TIMEOUT:
            detail = "must be at least 1 second"
            errors.append(invalid(binding_path, args.binding_timeout, detail))
    return errors


def node_resources_fit_errors(path: str, args: NodeResourcesFitArgs) -> list[str]:
    """Check NodeResourcesFitArgs."""
    prefix = f"{path}." if path else ""
    errors = []
    for index, resource in enumerate(args.ignored_resources):
        errors += _label_name_errors(f"{prefix}ignoredResources[{index}]", resource)
    for index, group in enumerate(args.ignored_resource_groups):
        group_path = f"{prefix}ignoredResourceGroups[{index}]"
        if "/" in group:
            errors.append(invalid(group_path, group, "resource group name can't contain '/'"))
        errors += _label_name_errors(group_path, group)
    return errors + _strategy_errors(f"{prefix}scoringStrategy", args.scoring_strategy)


def _strategy_errors(path: str, strategy: ScoringStrategy) -> list[str]:
    errors = []
    if strategy.type not in _STRATEGIES:
        errors.append(unsupported(f"{path}.type", strategy.type, _STRATEGIES))
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            weight_path = f"{path}.resources[{index}].weight"
            errors.append(invalid(weight_path, resource.weight, detail))
    ratio, ratio_path = strategy.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
    if strategy.type != arguments.REQUESTED_TO_CAPACITY_RATIO:
        if ratio is not None:
            detail = "must be nil when type is not RequestedToCapacityRatio"
            errors.append(forbidden(ratio_path, detail))
    elif ratio is None:
        detail = "must be specified when type is RequestedToCapacityRatio"
        errors.append(required(ratio_path, detail))
    else:
        errors += _shape_errors(f"{ratio_path}.shape", ratio.shape)
    return errors


def _shape_errors(path: str, shape: Shape) -> list[str]:
    if not shape:
        return [required(path, "at least one point must be specified")]
    errors = []
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            detail = "values must be sorted in increasing order"
            point_path = f"{path}[{index}].utilization"
            errors.append(invalid(point_path, shape[index].utilization, detail))
            break
    for index, point in enumerate(shape):
        for name, value, highest in (
            ("utilization", point.utilization, 100),
            ("score", point.score, arguments.MAX_CUSTOM_PRIORITY_SCORE),
        ):
            if not 0 <= value <= highest:
                detail = f"not in valid range [0, {highest}]"
                errors.append(invalid(f"{path}[{index}].{name}", value, detail))
    return errors


def _label_name_errors(path: str, name: str) -> list[str]:
    return [invalid(path, name, problem) for problem in label_key_errors(name)]


def _ungated(check: Callable[[str, Any], list[str]]) -> Callable[..., list[str]]:
    return lambda path, args, _gates: check(path, args)


#: Plugin name to the check of its arguments: (path, args, gates) to errors.
ARGS_CHECKS: Final[dict[str, Callable[..., list[str]]]] = {
    "DefaultPreemption": _ungated(default_preemption_errors),
    "InterPodAffinity": _ungated(inter_pod_affinity_errors),
    "NodeAffinity": _ungated(node_affinity_args_errors),
    "NodeResourcesBalancedAllocation": _ungated(balanced_allocation_errors),
    "PodTopologySpread": _ungated(pod_topology_spread_errors),
    "VolumeBinding": volume_binding_errors,
    "DynamicResources": dynamic_resources_errors,
}
