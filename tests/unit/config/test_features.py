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
    "SchedulerQueueingHints": GA_ON,
    "SchedulerAsyncPreemption": BETA_ON,
    "SchedulerPopFromBackoffQ": BETA_ON,
    "SchedulerAsyncAPICalls": BETA_OFF,
    "OpportunisticBatching": BETA_ON,
    "NominatedNodeNameForExpectation": BETA_ON,
    "ClearingNominatedNodeNameAfterBinding": BETA_ON,
    "NodeDeclaredFeatures": BETA_ON,
    "PodSchedulingReadiness": GA_ON,
    "PodLevelResources": BETA_ON,
    "InPlacePodVerticalScaling": GA_ON,
    "InPlacePodLevelResourcesVerticalScaling": BETA_ON,
    "SidecarContainers": GA_ON,
    "MatchLabelKeysInPodTopologySpread": BETA_ON,
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": BETA_ON,
    "NodeInclusionPolicyInPodTopologySpread": GA_ON,
    "MatchLabelKeysInPodAffinity": GA_ON,
    "TaintTolerationComparisonOperators": ALPHA_OFF,
    "VolumeAttributesClass": GA_ON,
    "VolumeLimitScaling": ALPHA_OFF,
    "MutableCSINodeAllocatableCount": GA_ON,
    "StorageCapacityScoring": ALPHA_OFF,
    "DynamicResourceAllocation": GA_ON,
    "DRAAdminAccess": GA_ON,
    "DRAPrioritizedList": GA_ON,
    "DRADeviceTaints": BETA_ON,
    "DRADeviceTaintRules": BETA_OFF,
    "DRAPartitionableDevices": BETA_ON,
    "DRAConsumableCapacity": BETA_ON,
    "DRADeviceBindingConditions": BETA_ON,
    "DRAResourceClaimDeviceStatus": BETA_ON,
    "DRAExtendedResource": BETA_ON,
    "DRASchedulerFilterTimeout": BETA_ON,
    "DRAListTypeAttributes": ALPHA_OFF,
    "DRANodeAllocatableResources": ALPHA_OFF,
    "DRAWorkloadResourceClaims": ALPHA_OFF,
    "GenericWorkload": ALPHA_OFF,
    "GangScheduling": ALPHA_OFF,
    "TopologyAwareWorkloadScheduling": ALPHA_OFF,
    "WorkloadAwarePreemption": ALPHA_OFF,
    "ImageVolume": GA_ON,
    "CoordinatedLeaderElection": BETA_OFF,
    "ComponentFlagz": BETA_ON,
    "ComponentStatusz": BETA_ON,
    "NativeHistograms": ALPHA_OFF,
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
    "SchedulerQueueingHints",
    "PodSchedulingReadiness",
    "InPlacePodVerticalScaling",
    "SidecarContainers",
    "NodeInclusionPolicyInPodTopologySpread",
    "MatchLabelKeysInPodAffinity",
    "VolumeAttributesClass",
    "MutableCSINodeAllocatableCount",
    "DynamicResourceAllocation",
    "DRAAdminAccess",
    "ImageVolume",
    "PodObservedGenerationTracking",
]


@pytest.mark.parametrize("name", SCHEDULER_GATES)
def test_stage_and_default_at_1_36(name: str) -> None:
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
    assert not FeatureGates.parse("DRAPrioritizedList=false").enabled("DRAPrioritizedList")


@pytest.mark.parametrize(
    ("text", "on", "off"),
    [
        ("", ["NodeDeclaredFeatures"], ["GenericWorkload"]),
        ("GenericWorkload=true", ["GenericWorkload"], ["GangScheduling"]),
        ("kube:GenericWorkload=true", ["GenericWorkload"], []),
        (" GenericWorkload = true ,", ["GenericWorkload"], []),
        ("GenericWorkload=T,GangScheduling=1", ["GenericWorkload", "GangScheduling"], []),
        ("OpportunisticBatching=false", [], ["OpportunisticBatching"]),
        ("OpportunisticBatching=true,OpportunisticBatching=F", [], ["OpportunisticBatching"]),
        ("AllAlpha=true", ["GangScheduling", "AllAlpha"], ["SchedulerAsyncAPICalls", "AllBeta"]),
        ("AllAlpha=true,StorageCapacityScoring=false", ["GangScheduling"],
         ["StorageCapacityScoring"]),
        ("AllBeta=true", ["SchedulerAsyncAPICalls"], ["GangScheduling"]),
        ("AllBeta=false", ["SchedulerQueueingHints"], ["NodeDeclaredFeatures"]),
        ("AllBeta=false,OpportunisticBatching=true", ["OpportunisticBatching"],
         ["NodeDeclaredFeatures"]),
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
        ("Foo=true,SchedulerQueueingHints=false", "unrecognized feature gate: Foo"),
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
            "kube:GenericWorkload=true,GangScheduling=true",
            (
                "set kube feature gates with default empty prefix or kube: prefix consistently, "
                "do not mix use"
            ),
        ),
        (
            "SchedulerQueueingHints=false,DRAAdminAccess=false",
            (
                "[cannot set feature gate DRAAdminAccess to false, feature is locked to true, "
                "cannot set feature gate SchedulerQueueingHints to false, "
                "feature is locked to true]"
            ),
        ),
        (
            "GangScheduling=true",
            (
                "GangScheduling is enabled, but depends on features that are disabled: "
                "[GenericWorkload]"
            ),
        ),
        (
            "DRAResourceClaimDeviceStatus=false",
            (
                "[DRADeviceBindingConditions is enabled, but depends on features that are "
                "disabled: [DRAResourceClaimDeviceStatus], "
                "DRAResourceClaimGranularStatusAuthorization is enabled, but depends on features "
                "that are disabled: [DRAResourceClaimDeviceStatus]]"
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
        ("1.33", "SchedulerQueueingHints", BETA_ON),
        ("1.33", "DRADeviceTaints", ALPHA_OFF),
        ("1.34", "DRAPrioritizedList", BETA_ON),
        ("1.35", "NodeDeclaredFeatures", ALPHA_OFF),
        ("1.36", "NodeDeclaredFeatures", BETA_ON),
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
    gates = FeatureGates.parse("SchedulerQueueingHints=false", emulated_version="1.33")

    assert not gates.enabled("SchedulerQueueingHints")


def test_a_gate_that_did_not_exist_yet_is_off_and_not_listed() -> None:
    gates = FeatureGates.parse(emulated_version="1.35")

    assert not gates.enabled("NativeHistograms")
    assert "NativeHistograms" not in {state.name for state in gates.states()}


@pytest.mark.parametrize(
    ("text", "emulated", "oldest_peer", "want"),
    [
        ("", "1.32", "", ("[emulation version 1.32 is not between [1.33, 1.36.0], "
                         "minCompatibilityVersion version 1.33 is not between [1.33, 1.32]]")),
        ("", "1.37", "", "emulation version 1.37 is not between [1.33, 1.36.0]"),
        ("", "1.36.1", "", "patch version not allowed, got: kube=1.36.1"),
        ("", "abc", "", 'could not parse "abc" as version'),
        ("", "1", "", 'illegal version string "1"'),
        ("", "wardle=1.2", "", "component not registered: wardle"),
        ("", "1.35", "1.36", "minCompatibilityVersion version 1.36 is not between [1.33, 1.35]"),
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

    assert "kube:GangScheduling=true|false (ALPHA - default=false)" in lines
    assert "kube:NodeDeclaredFeatures=true|false (BETA - default=true)" in lines
    assert "kube:AllAlpha=true|false (ALPHA - default=false)" in lines
    assert not [line for line in lines if "SchedulerQueueingHints" in line]
    assert lines == sorted(lines)


def test_an_unknown_name_is_a_mistake_in_the_program() -> None:
    with pytest.raises(KeyError):
        FeatureGates.parse().enabled("NoSuchGate")


def test_the_table_is_sound() -> None:
    assert list(GATES) == sorted(GATES)
    assert set(DEPENDENCIES) <= set(GATES)
    assert {other for needed in DEPENDENCIES.values() for other in needed} <= set(GATES)
    for version in ("1.33", "1.34", "1.35", "1.36"):
        assert FeatureGates.parse(emulated_version=version).values
