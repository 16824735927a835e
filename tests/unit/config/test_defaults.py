"""What a profile gets that it does not say: plugins and arguments."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.config.args import (
    ARGS_KINDS,
    DynamicResourcesArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubesched.config.defaults import (
    IN_TREE_PLUGINS,
    complete_args,
    default_plugins,
    default_profile,
    merge_plugin_set,
)
from kubesched.config.durations import Duration
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginRef, PluginSet
from tests.support.configuration_tables import GATES, IN_TREE_POINTS

DEFAULT_ORDER = [
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeName", 0),
    ("NodeUnschedulable", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
    ("NodeDeclaredFeatures", 0),
]
WORKLOADS = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
RESIZES = "InPlacePodVerticalScalingSchedulerPreemption=true"
BEFORE_FIT = DEFAULT_ORDER.index(("NodeResourcesFit", 1))


@pytest.mark.parametrize(
    ("gates", "want"),
    [
        ("", DEFAULT_ORDER),
        (
            WORKLOADS,
            [
                *DEFAULT_ORDER,
                ("GangScheduling", 0),
                ("TopologyPlacementGenerator", 0),
                ("PodGroupPodsCount", 1),
            ],
        ),
        (
            RESIZES,
            [
                *DEFAULT_ORDER[:BEFORE_FIT],
                ("DeferredPodScheduling", 0),
                *DEFAULT_ORDER[BEFORE_FIT:],
            ],
        ),
    ],
    ids=["by default", "with workloads", "with preemption for resizes"],
)
def test_default_plugins(gates: str, want: list[tuple[str, int]]) -> None:
    enabled = default_plugins(FeatureGates.parse(gates)).multi_point.enabled

    assert [(ref.name, ref.weight) for ref in enabled] == want


def test_declared_features_can_be_off_as_in_1_36() -> None:
    gates = FeatureGates.parse("AllBeta=false", emulated_version="1.36")
    enabled = default_plugins(gates).multi_point.enabled

    assert [(ref.name, ref.weight) for ref in enabled] == DEFAULT_ORDER[:-1]


def test_all_in_tree_plugins_are_known() -> None:
    assert set(IN_TREE_POINTS) == IN_TREE_PLUGINS
    assert set(ARGS_KINDS) <= IN_TREE_PLUGINS
    assert [kind.__name__ for kind in ARGS_KINDS.values()] == [f"{name}Args" for name in ARGS_KINDS]


def test_every_plugin_with_arguments_has_them_sorted_by_name() -> None:
    names = [config.name for config in default_profile(GATES).plugin_config]

    assert names == sorted(ARGS_KINDS)


def plugin_set(enabled: str = "", disabled: str = "") -> PluginSet:
    """A set from text: ``A B=3`` is A without and B with a weight."""

    def refs(text: str) -> tuple[PluginRef, ...]:
        pairs = (word.partition("=") for word in text.split())
        return tuple(PluginRef(name=name, weight=int(weight or 0)) for name, _, weight in pairs)

    return PluginSet(enabled=refs(enabled), disabled=refs(disabled))


@pytest.mark.parametrize(
    ("default", "custom", "want"),
    [
        (plugin_set("A B"), plugin_set(), plugin_set("A B")),
        (plugin_set("A B"), plugin_set("C"), plugin_set("A B C")),
        (plugin_set("A B"), plugin_set("", "A"), plugin_set("B", "A")),
        (plugin_set("A B"), plugin_set("C", "*"), plugin_set("C", "*")),
        (plugin_set("A=1 B=2"), plugin_set("A=5"), plugin_set("A=5 B=2")),
        (plugin_set("A=1 B=2"), plugin_set("C A=5"), plugin_set("A=5 B=2 C")),
        (plugin_set("A B C"), plugin_set("A", "A"), plugin_set("B C A", "A")),
        (plugin_set("A B"), plugin_set("B A", "*"), plugin_set("B A", "*")),
        (plugin_set("A B"), plugin_set("A=1 A=2"), plugin_set("A=2 B A=1")),
        (plugin_set("A B"), plugin_set("C C"), plugin_set("A B C C")),
        (plugin_set("A B", "C"), plugin_set("", "D"), plugin_set("A B", "D C")),
        (plugin_set("A B"), plugin_set("", "A=7"), plugin_set("B", "A")),
    ],
    ids=[
        "nothing custom",
        "added at the end",
        "disabled",
        "all disabled, one added",
        "weight replaced in place",
        "replaced in place, others at the end",
        "disabled and enabled goes to the end",
        "all disabled and enabled in another order",
        "of duplicates the last replaces, the others are kept",
        "duplicates are kept",
        "disabled sets are joined",
        "weights of disabled plugins are dropped",
    ],
)
def test_merge_plugin_set(default: PluginSet, custom: PluginSet, want: PluginSet) -> None:
    assert merge_plugin_set(default, custom) == want


CPU_MEMORY = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


@pytest.mark.parametrize(
    ("given", "want_type", "want_resources"),
    [
        ({}, "LeastAllocated", CPU_MEMORY),
        ({"scoringStrategy": None}, "LeastAllocated", CPU_MEMORY),
        ({"scoringStrategy": {"type": "MostAllocated"}}, "MostAllocated", CPU_MEMORY),
        (
            {"scoringStrategy": {"resources": [{"name": "x", "weight": 0}]}},
            "",
            (ResourceSpec(name="x", weight=1),),
        ),
    ],
    ids=["nothing", "null", "only a type", "only resources: the type is not defaulted"],
)
def test_scoring_strategy(
    given: dict[str, Any], want_type: str, want_resources: tuple[ResourceSpec, ...]
) -> None:
    args = complete_args("NodeResourcesFit", given, GATES)

    assert isinstance(args, NodeResourcesFitArgs)
    assert args.scoring_strategy.type == want_type
    assert args.scoring_strategy.resources == want_resources


#: The default shape: the less of the capacity is used, the better.
FULLEST_LAST = (
    UtilizationShapePoint(utilization=0, score=10),
    UtilizationShapePoint(utilization=100, score=0),
)


@pytest.mark.parametrize(
    ("plugin", "given", "gates", "want"),
    [
        ("VolumeBinding", {}, "", VolumeBindingArgs(bind_timeout_seconds=600, shape=FULLEST_LAST)),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}, "",
         VolumeBindingArgs(bind_timeout_seconds=0, shape=FULLEST_LAST)),
        ("VolumeBinding", {"shape": []}, "", VolumeBindingArgs(shape=FULLEST_LAST)),
        ("VolumeBinding", {}, "StorageCapacityScoring=false",
         VolumeBindingArgs(bind_timeout_seconds=600, shape=None)),
        ("VolumeBinding", {"shape": []}, "StorageCapacityScoring=false",
         VolumeBindingArgs(shape=())),
        ("DynamicResources", {}, "",
         DynamicResourcesArgs(filter_timeout=Duration.of_seconds(10),
                              binding_timeout=Duration.of_seconds(600))),
        ("DynamicResources", {"filterTimeout": Duration()}, "",
         DynamicResourcesArgs(filter_timeout=Duration(),
                              binding_timeout=Duration.of_seconds(600))),
        ("DynamicResources", {}, "DRASchedulerFilterTimeout=false,DRADeviceBindingConditions=false",
         DynamicResourcesArgs()),
        ("PodTopologySpread", {"defaultingType": ""}, "",
         PodTopologySpreadArgs(defaulting_type="System")),
    ],
)  # fmt: skip
def test_complete_args(plugin: str, given: dict[str, Any], gates: str, want: PluginArgs) -> None:
    assert complete_args(plugin, given, FeatureGates.parse(gates)) == want
