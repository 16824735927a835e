"""Arguments of the in-tree plugins, one struct per kind, with all defaults filled in.

``ARGS_KINDS`` maps plugins to their structs. Plugins without an entry take no arguments;
arguments of plugins that are not in-tree stay plain JSON.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.core import NodeAffinity, TopologySpreadConstraint
from kubesched.api.meta import ApiStruct
from kubesched.api.names import CPU, LABEL_HOSTNAME, LABEL_ZONE, MEMORY
from kubesched.config.durations import Duration

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"

SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"
#: The constraints of System defaulting.
SYSTEM_CONSTRAINTS: Final = (
    TopologySpreadConstraint(
        max_skew=3, topology_key=LABEL_HOSTNAME, when_unsatisfiable="ScheduleAnyway"
    ),
    TopologySpreadConstraint(
        max_skew=5, topology_key=LABEL_ZONE, when_unsatisfiable="ScheduleAnyway"
    ),
)

#: The highest score a utilization shape may give.
MAX_CUSTOM_PRIORITY_SCORE: Final = 10


class UtilizationShapePoint(ApiStruct, frozen=True):
    """A point of a piecewise linear function from utilization in percent to a score of 0-10."""

    utilization: int = 0
    score: int = 0


class ResourceSpec(ApiStruct, frozen=True):
    """A resource that is scored, and how much it counts."""

    name: str = ""
    weight: int = 1


#: Resources that are scored if none are named.
DEFAULT_RESOURCES: Final = (ResourceSpec(name=CPU), ResourceSpec(name=MEMORY))


class RequestedToCapacityRatioParam(ApiStruct, frozen=True):
    """The shape that the RequestedToCapacityRatio strategy scores with."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(ApiStruct, frozen=True):
    """How NodeResourcesFit scores nodes."""

    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class DefaultPreemptionArgs(ApiStruct, frozen=True):
    """The number of candidate nodes that preemption evaluates."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class DynamicResourcesArgs(ApiStruct, frozen=True):
    """Time limits of DynamicResources; None where the feature gate of the limit is off."""

    #: of one node's allocation; zero means no limit
    filter_timeout: Duration | None = None
    #: of waiting for binding conditions
    binding_timeout: Duration | None = None


class InterPodAffinityArgs(ApiStruct, frozen=True):
    """Scoring by affinity to other pods."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(ApiStruct, frozen=True):
    """Affinity that every pod of the profile has in addition to its own."""

    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(ApiStruct, frozen=True):
    """Resources whose use should be balanced."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


class NodeResourcesFitArgs(ApiStruct, frozen=True):
    """Resources that need not fit, and how nodes are scored."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class PodTopologySpreadArgs(ApiStruct, frozen=True):
    """Default constraints of pods without their own."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING


class VolumeBindingArgs(ApiStruct, frozen=True):
    """How long volumes may take to bind, and how their size is scored."""

    bind_timeout_seconds: int = 600
    #: None unless StorageCapacityScoring is on
    shape: tuple[UtilizationShapePoint, ...] | None = None


PluginArgs = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)

#: Plugin name to the struct of its arguments; the kind on the wire is the struct's name.
ARGS_KINDS: Final[dict[str, type[PluginArgs]]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
