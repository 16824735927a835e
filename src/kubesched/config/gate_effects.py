"""The feature gates that have an effect here.

All gates of kube-scheduler are accepted, because the same flags are given to all components. Most
of them belong to other components, and a few to behaviour that does not exist here or cannot be
switched. A warning tells an operator who sets one of those that it has no effect.
"""

from __future__ import annotations

from typing import Final

from kubesched.config.features import ALL_ALPHA, ALL_BETA, FeatureGates

#: Gates that affect decisions, served endpoints or logs.
EFFECTIVE: Final = frozenset(
    {
        "CBORServingAndStorage",
        "ComponentFlagz",
        "ComponentStatusz",
        "CompositePodGroup",
        "CoordinatedLeaderElection",
        "DRAConsumableCapacity",
        "DRADerivedAttributes",
        "DRADeviceBindingConditions",
        "DRADeviceCompatibilityGroups",
        "DRADeviceTaintRules",
        "DRADeviceTaints",
        "DRAFractionalCapacityRange",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "DRAPartitionableDevices",
        "DRAResourceClaimDeviceStatus",
        "DRASchedulerFilterTimeout",
        "DRAWorkloadResourceClaims",
        "DynamicResourceAllocation",
        "GenericWorkload",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingSchedulerPreemption",
        "LoggingAlphaOptions",
        "LoggingBetaOptions",
        "MatchLabelKeysInPodTopologySpread",
        "NodeDeclaredFeatures",
        "PodGroupPreemptionPolicy",
        "PodLevelResources",
        "RemoteRequestHeaderUID",
        "SchedulerPreQueueingHints",
        "StorageCapacityScoring",
        "TaintTolerationComparisonOperators",
        "TopologyAwareWorkloadScheduling",
        "VolumeAttributesClass",
        "VolumeLimitScaling",
    }
)
#: They stand for all gates of a stage, each of which is checked by itself.
_SPECIAL: Final = frozenset({ALL_ALPHA, ALL_BETA})


def without_effect(gates: FeatureGates) -> list[str]:
    """Return the gates that are not at their default and have no effect, as ``Name=value``."""
    return [
        f"{state.name}={str(state.enabled).lower()}"
        for state in gates.states()
        if state.name not in EFFECTIVE | _SPECIAL
        and state.enabled is not gates.spec(state.name).default
    ]
