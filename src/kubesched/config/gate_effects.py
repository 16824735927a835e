"""Which feature gates change what this program does.

All gates of kube-scheduler are accepted, because the same flags are given to all components. Most
of them are about other components, and a few about what is not built here or cannot be switched.
An operator who switches one of those is told that nothing comes of it.
"""

from __future__ import annotations

from typing import Final

from kubesched.config.features import ALL_ALPHA, ALL_BETA, FeatureGates

#: Gates that change what is decided, served or logged.
EFFECTIVE: Final = frozenset(
    {
        "CBORServingAndStorage",
        "ComponentFlagz",
        "ComponentStatusz",
        "CompositePodGroup",
        "CoordinatedLeaderElection",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaintRules",
        "DRADeviceTaints",
        "DRAFractionalCapacityRange",
        "DRAPartitionableDevices",
        "DRAResourceClaimDeviceStatus",
        "DRASchedulerFilterTimeout",
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
#: They stand for the gates of a stage, each of which is told of by itself.
_SPECIAL: Final = frozenset({ALL_ALPHA, ALL_BETA})


def without_effect(gates: FeatureGates) -> list[str]:
    """Return the gates that are not at their default and change nothing, as ``Name=value``."""
    return [
        f"{state.name}={str(state.enabled).lower()}"
        for state in gates.states()
        if state.name not in EFFECTIVE | _SPECIAL
        and state.enabled is not gates.spec(state.name).default
    ]
