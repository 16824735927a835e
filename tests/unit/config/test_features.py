"""Feature gates: what is on by default, what can be set, and what is refused."""

from __future__ import annotations

import pytest

from kubesched.config.features import FeatureGates, GateState, Stage
from kubesched.config.gate_table import DEPENDENCIES, GATES
from kubesched.errors import ConfigError

ALPHA_OFF = (Stage.ALPHA, False)
BETA_OFF = (Stage.BETA, False)
BETA_ON = (Stage.BETA, True)
GA_ON = (Stage.GA, True)

SCHEDULER_GATES = {
    "SchedulerPreQueueingHints": ALPHA_OFF,
    "SchedulerAsyncPreemption": BETA_ON,
    "SchedulerPopFromBackoffQ": BETA_ON,
    "SchedulerAsyncAPICalls": BETA_OFF,
    "OpportunisticBatching": BETA_ON,
    "NominatedNodeNameForExpectation": BETA_ON,
    "ClearingNominatedNodeNameAfterBinding": BETA_ON,
    "NodeDeclaredFeatures": GA_ON,
    "PodSchedulingReadiness": GA_ON,
    "PodLevelResources": BETA_ON,
    "InPlacePodVerticalScaling": GA_ON,
    "InPlacePodLevelResourcesVerticalScaling": BETA_ON,
    "InPlacePodVerticalScalingInitContainers": GA_ON,
    "InPlacePodVerticalScalingSchedulerPreemption": ALPHA_OFF,
    "InterPodAffinityHostnameFastPath": ALPHA_OFF,
    "MatchLabelKeysInPodTopologySpread": BETA_ON,
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": BETA_ON,
    "NodeInclusionPolicyInPodTopologySpread": GA_ON,
    "MatchLabelKeysInPodAffinity": GA_ON,
    "TaintTolerationComparisonOperators": ALPHA_OFF,
    "VolumeAttributesClass": GA_ON,
    "VolumeLimitScaling": BETA_ON,
    "MutableCSINodeAllocatableCount": GA_ON,
    "StorageCapacityScoring": BETA_ON,
    "DynamicResourceAllocation": GA_ON,
    "DRAAdminAccess": GA_ON,
    "DRAPrioritizedList": GA_ON,
    "DRADeviceTaints": GA_ON,
    "DRADeviceTaintRules": GA_ON,
    "DRAPartitionableDevices": BETA_ON,
    "DRAConsumableCapacity": BETA_ON,
    "DRADeviceBindingConditions": BETA_ON,
    "DRAResourceClaimDeviceStatus": GA_ON,
    "DRAExtendedResource": GA_ON,
    "DRASchedulerFilterTimeout": BETA_ON,
    "DRAListTypeAttributes": ALPHA_OFF,
    "DRANodeAllocatableResources": ALPHA_OFF,
    "DRAWorkloadResourceClaims": BETA_OFF,
    "DRAFractionalCapacityRange": BETA_OFF,
    "DRADerivedAttributes": ALPHA_OFF,
    "DRADeviceCompatibilityGroups": ALPHA_OFF,
    "DRAOptionalNodeOperations": ALPHA_OFF,
    "GenericWorkload": BETA_OFF,
    "TopologyAwareWorkloadScheduling": ALPHA_OFF,
    "CompositePodGroup": ALPHA_OFF,
    "PodGroupPreemptionPolicy": ALPHA_OFF,
    "ImageVolume": GA_ON,
    "CoordinatedLeaderElection": BETA_OFF,
    "ComponentFlagz": BETA_ON,
    "ComponentStatusz": BETA_ON,
    "NativeHistograms": BETA_ON,
    "ContextualLogging": BETA_ON,
    "LoggingAlphaOptions": ALPHA_OFF,
    "LoggingBetaOptions": BETA_ON,
    "PodObservedGenerationTracking": GA_ON,
    "WatchListClient": BETA_ON,
    "InOrderInformers": GA_ON,
    "AtomicFIFO": BETA_ON,
    "ClientsAllowCBOR": ALPHA_OFF,
}

LOCKED_ON = [
    "NodeDeclaredFeatures",
    "PodSchedulingReadiness",
    "InPlacePodVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "NodeInclusionPolicyInPodTopologySpread",
    "MatchLabelKeysInPodAffinity",
    "VolumeAttributesClass",
    "MutableCSINodeAllocatableCount",
    "DynamicResourceAllocation",
    "DRAAdminAccess",
    "DRAExtendedResource",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
    "ImageVolume",
    "PodObservedGenerationTracking",
]

#: Gates of 1.36 that are gone: naming them ends the process.
REMOVED = ["SchedulerQueueingHints", "SidecarContainers", "GangScheduling"]


@pytest.mark.parametrize("name", SCHEDULER_GATES)
def test_stage_and_default_at_1_37(name: str) -> None:
    states = {state.name: (state.stage, state.enabled) for state in FeatureGates.parse().states()}

    assert states[name] == SCHEDULER_GATES[name]


@pytest.mark.parametrize("name", LOCKED_ON)
def test_locked_gates_stay_on(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FeatureGates.of({name: False})

    assert str(caught.value) == (
        f"cannot set feature gate {name} to false, feature is locked to true"
    )
    assert FeatureGates.of({name: True}).enabled(name)


def test_ga_without_lock_can_go_off() -> None:
    assert not FeatureGates.parse("DRADeviceTaintRules=false").enabled("DRADeviceTaintRules")


@pytest.mark.parametrize("version", ["1.34", "1.36", "1.37"])
@pytest.mark.parametrize("name", REMOVED)
def test_removed_gates_are_unknown_in_every_emulation(name: str, version: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FeatureGates.parse(f"{name}=true", emulated_version=version)

    assert str(caught.value) == f"unrecognized feature gate: {name}"


@pytest.mark.parametrize(
    ("text", "on", "off"),
    [
        ("", ["NodeDeclaredFeatures"], ["GenericWorkload"]),
        ("GenericWorkload=true", ["GenericWorkload"], ["TopologyAwareWorkloadScheduling"]),
        ("kube:GenericWorkload=true", ["GenericWorkload"], []),
        (" GenericWorkload = true ,", ["GenericWorkload"], []),
        ("GenericWorkload=T,PodGroupPreemptionPolicy=1",
         ["GenericWorkload", "PodGroupPreemptionPolicy"], []),
        ("OpportunisticBatching=false", [], ["OpportunisticBatching"]),
        ("OpportunisticBatching=true,OpportunisticBatching=F", [], ["OpportunisticBatching"]),
        ("AllAlpha=true,GenericWorkload=true", ["CompositePodGroup", "AllAlpha"],
         ["SchedulerAsyncAPICalls", "AllBeta"]),
        ("AllAlpha=true,GenericWorkload=true,DRADerivedAttributes=false", ["CompositePodGroup"],
         ["DRADerivedAttributes"]),
        ("AllBeta=true", ["SchedulerAsyncAPICalls", "DRAFractionalCapacityRange"],
         ["CompositePodGroup"]),
        ("AllBeta=false", ["NodeDeclaredFeatures"], ["StorageCapacityScoring"]),
        ("AllBeta=false,OpportunisticBatching=true", ["OpportunisticBatching"],
         ["StorageCapacityScoring"]),
    ],
)  # fmt: skip
def test_parse(text: str, on: list[str], off: list[str]) -> None:
    gates = FeatureGates.parse(text)

    assert [name for name in on if not gates.enabled(name)] == []
    assert [name for name in off if gates.enabled(name)] == []


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Foo=true", "unrecognized feature gate: Foo"),
        ("Foo=true,NodeDeclaredFeatures=false", "unrecognized feature gate: Foo"),
        ("NodeDeclaredFeatures", "missing bool value for NodeDeclaredFeatures"),
        (
            "NodeDeclaredFeatures=maybe",
            (
                "invalid value of NodeDeclaredFeatures=maybe, "
                'err: strconv.ParseBool: parsing "maybe": invalid syntax'
            ),
        ),
        ("wardle:X=true", "component not registered: wardle"),
        ("A:B:C=true", "component not registered: A"),
        (
            "kube:GenericWorkload=true,PodGroupPreemptionPolicy=true",
            (
                "set kube feature gates with default empty prefix or kube: prefix consistently, "
                "do not mix use"
            ),
        ),
        (
            "NodeDeclaredFeatures=false,DRAAdminAccess=false",
            (
                "[cannot set feature gate DRAAdminAccess to false, feature is locked to true, "
                "cannot set feature gate NodeDeclaredFeatures to false, "
                "feature is locked to true]"
            ),
        ),
        (
            "CompositePodGroup=true",
            (
                "CompositePodGroup is enabled, but depends on features that are disabled: "
                "[GenericWorkload TopologyAwareWorkloadScheduling]"
            ),
        ),
        (
            "PodLevelResources=false,InPlacePodLevelResourcesVerticalScaling=false",
            (
                "[PodLevelResourcesFixDefaulting is enabled, but depends on features that are "
                "disabled: [PodLevelResources], "
                "PodLevelResourcesFixKubeletQOSClass is enabled, but depends on features "
                "that are disabled: [PodLevelResources]]"
            ),
        ),
    ],
)
def test_parse_refuses(text: str, want: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FeatureGates.parse(text)

    assert str(caught.value) == want


@pytest.mark.parametrize(
    ("version", "name", "want"),
    [
        ("1.34", "DRADeviceTaints", ALPHA_OFF),
        ("1.34", "DRAPrioritizedList", BETA_ON),
        ("1.36", "DRADeviceTaintRules", BETA_OFF),
        ("1.36", "GenericWorkload", ALPHA_OFF),
        ("1.36", "StorageCapacityScoring", ALPHA_OFF),
        ("1.35", "NodeDeclaredFeatures", ALPHA_OFF),
        ("1.36", "NodeDeclaredFeatures", BETA_ON),
        ("1.37", "NodeDeclaredFeatures", GA_ON),
        ("kube=1.35", "NodeDeclaredFeatures", ALPHA_OFF),
        ("v1.35", "NodeDeclaredFeatures", ALPHA_OFF),
    ],
)
def test_emulated_version_selects_the_older_stage(
    version: str, name: str, want: tuple[Stage, bool]
) -> None:
    gates = FeatureGates.parse(emulated_version=version)

    assert GateState(name, *want) in list(gates.states())


def test_a_locked_gate_can_be_set_where_it_was_not_locked_yet() -> None:
    gates = FeatureGates.parse("DRAPrioritizedList=false", emulated_version="1.36")

    assert not gates.enabled("DRAPrioritizedList")


@pytest.mark.parametrize(("oldest_peer", "want"), [("", False), ("1.36", False), ("1.37", True)])
def test_a_default_may_depend_on_the_oldest_peer(oldest_peer: str, want: bool) -> None:
    gates = FeatureGates.parse(min_compatibility_version=oldest_peer)

    assert gates.enabled("DRAFractionalCapacityRange") is want
    assert gates.spec("DRAFractionalCapacityRange").stage is Stage.BETA


def test_a_gate_that_did_not_exist_yet_is_off_and_not_listed() -> None:
    gates = FeatureGates.parse(emulated_version="1.35")

    assert not gates.enabled("NativeHistograms")
    assert "NativeHistograms" not in {state.name for state in gates.states()}


@pytest.mark.parametrize(
    ("text", "emulated", "oldest_peer", "want"),
    [
        ("", "1.33", "", ("[emulation version 1.33 is not between [1.34, 1.37.0], "
                         "minCompatibilityVersion version 1.34 is not between [1.34, 1.33]]")),
        ("", "1.38", "", "emulation version 1.38 is not between [1.34, 1.37.0]"),
        ("", "1.36.1", "", "patch version not allowed, got: kube=1.36.1"),
        ("", "abc", "", 'could not parse "abc" as version'),
        ("", "1", "", 'illegal version string "1"'),
        ("", "wardle=1.2", "", "component not registered: wardle"),
        ("", "1.35", "1.36", "minCompatibilityVersion version 1.36 is not between [1.34, 1.35]"),
        ("CompositePodGroup=true", "1.36", "", ("cannot set feature gate CompositePodGroup to "
         "true, feature is PreAlpha at emulated version 1.36, min compatibility version 1.35")),
        ("NativeHistograms=true", "1.35", "", ("cannot set feature gate NativeHistograms to true, "
         "feature is PreAlpha at emulated version 1.35, min compatibility version 1.34")),
    ],
)  # fmt: skip
def test_versions_that_cannot_be_emulated(
    text: str, emulated: str, oldest_peer: str, want: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        FeatureGates.parse(text, emulated_version=emulated, min_compatibility_version=oldest_peer)

    assert str(caught.value) == want


def test_replace_keeps_what_was_asked_for() -> None:
    gates = FeatureGates.parse("StorageCapacityScoring=true", emulated_version="1.35")
    other = gates.replace(OpportunisticBatching=False)

    assert other.enabled("StorageCapacityScoring")
    assert not other.enabled("OpportunisticBatching")
    assert gates.enabled("OpportunisticBatching")
    assert other.emulated_version == (1, 35)


def test_help_lists_alpha_and_beta_gates() -> None:
    lines = FeatureGates.parse().help_lines()

    assert "kube:CompositePodGroup=true|false (ALPHA - default=false)" in lines
    assert "kube:StorageCapacityScoring=true|false (BETA - default=true)" in lines
    assert (
        "kube:DRAFractionalCapacityRange=true|false (BETA - default=false), or "
        "DRAFractionalCapacityRange=true|false (BETA - default=true) "
        "if --min-compatibility-version>=1.37"
    ) in lines
    assert "kube:AllAlpha=true|false (ALPHA - default=false)" in lines
    assert not [line for line in lines if "NodeDeclaredFeatures" in line]
    assert lines == sorted(lines)


def test_an_unknown_name_is_a_mistake_in_the_program() -> None:
    with pytest.raises(KeyError):
        FeatureGates.parse().enabled("NoSuchGate")


def test_the_table_is_sound() -> None:
    assert list(GATES) == sorted(GATES)
    assert set(DEPENDENCIES) <= set(GATES)
    assert {other for needed in DEPENDENCIES.values() for other in needed} <= set(GATES)
    for version in ("1.34", "1.35", "1.36", "1.37"):
        assert FeatureGates.parse(emulated_version=version).values
