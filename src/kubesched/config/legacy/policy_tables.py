"""Predicates and priorities of a Policy, and the plugins that replace them.

The names are those of v1.22, the last release with policies, and of the releases before it.
"""

from __future__ import annotations

from typing import Final

FILTER: Final = ("filter",)
_VOLUMES: Final = ("filter", "reserve", "preBind")

#: predicate -> plugins, and the points that they run at
PREDICATES: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "CheckNodeUnschedulable": (("NodeUnschedulable",), FILTER),
    "GeneralPredicates": (
        ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
        FILTER,
    ),
    "HostName": (("NodeName",), FILTER),
    "PodFitsHost": (("NodeName",), FILTER),
    "PodFitsHostPorts": (("NodePorts",), FILTER),
    "PodFitsPorts": (("NodePorts",), FILTER),
    "MatchNodeSelector": (("NodeAffinity",), FILTER),
    "PodFitsResources": (("NodeResourcesFit",), FILTER),
    "NoDiskConflict": (("VolumeRestrictions",), FILTER),
    "PodToleratesNodeTaints": (("TaintToleration",), FILTER),
    "PodToleratesNodeNoExecuteTaints": (("TaintToleration",), FILTER),
    # Conditions of nodes are taints since v1.12.
    "CheckNodeCondition": (("TaintToleration",), FILTER),
    "CheckNodeMemoryPressure": (("TaintToleration",), FILTER),
    "CheckNodeDiskPressure": (("TaintToleration",), FILTER),
    "CheckNodePIDPressure": (("TaintToleration",), FILTER),
    "CheckNodeLabelPresence": (("NodeLabel",), FILTER),
    "CheckServiceAffinity": (("ServiceAffinity",), FILTER),
    "MaxEBSVolumeCount": (("EBSLimits",), FILTER),
    "MaxGCEPDVolumeCount": (("GCEPDLimits",), FILTER),
    "MaxCSIVolumeCountPred": (("NodeVolumeLimits",), FILTER),
    "MaxAzureDiskVolumeCount": (("AzureDiskLimits",), FILTER),
    "MaxCinderVolumeCount": (("CinderLimits",), FILTER),
    "CheckVolumeBinding": (("VolumeBinding",), _VOLUMES),
    "NoVolumeNodeConflict": (("VolumeBinding",), _VOLUMES),
    "NoVolumeZoneConflict": (("VolumeZone",), FILTER),
    "EvenPodsSpread": (("PodTopologySpread",), FILTER),
    "MatchInterPodAffinity": (("InterPodAffinity",), FILTER),
}
#: Predicates that every policy had.
MANDATORY: Final = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")
#: Predicates of a policy that names none.
DEFAULT_PREDICATES: Final = (
    "NoVolumeZoneConflict",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
    "CheckNodeUnschedulable",
    "EvenPodsSpread",
)

#: priority -> the plugin that scores
PRIORITIES: Final = {
    "SelectorSpreadPriority": "SelectorSpread",
    "ServiceSpreadingPriority": "SelectorSpread",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "TaintTolerationPriority": "TaintToleration",
    "NodeAffinityPriority": "NodeAffinity",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods",
    "MostRequestedPriority": "NodeResourcesMostAllocated",
    "LeastRequestedPriority": "NodeResourcesLeastAllocated",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "RequestedToCapacityRatioPriority": "RequestedToCapacityRatio",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
    "ResourceLimitsPriority": "NodeResourceLimits",
}
#: A priority that gave all nodes the same.
EQUAL_PRIORITY: Final = "EqualPriority"
#: Priorities of a policy that names none.
DEFAULT_PRIORITIES: Final = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}
