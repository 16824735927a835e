"""Which plugins there are, what they implement, and how a profile's framework is made of them."""

from __future__ import annotations

from typing import Self

import pytest

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.config.args import NodeResourcesFitArgs
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import Profile
from kubesched.errors import ConfigError, PluginError
from kubesched.framework.building import build_framework
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import PreFilter, PreFilterResult, RowFilter
from kubesched.framework.registry import PluginContext, Registry
from kubesched.framework.status import SKIP
from kubesched.framework.verdict import ALL_PASS, Verdict
from kubesched.plugins.in_tree import IN_TREE
from kubesched.plugins.node_name import NodeName
from kubesched.plugins.node_ports import NodePorts
from tests.support.scheduling import RecordingBinder, RecordingEvictor, cluster_of, framework_of


class Mine(RowFilter):
    name = "Mine"
    reads_pods = False

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        return ALL_PASS


class Refusing(Mine):
    name = "Refusing"

    @classmethod
    def create(cls, context: PluginContext) -> Self:
        raise ConfigError("limit: must be greater than zero")


def test_a_registry_is_a_mapping_of_names_to_classes() -> None:
    registry = Registry([NodeName, NodePorts])
    assert dict(registry) == {"NodeName": NodeName, "NodePorts": NodePorts}
    assert len(registry) == 2


def test_two_plugins_of_one_name_are_refused() -> None:
    with pytest.raises(PluginError, match="a plugin named NodeName already exists"):
        IN_TREE.with_plugins([NodeName])


class Mixed(Mine, PreFilter):
    """Its filter is asked once a signature, its PreFilter once a pod."""

    name = "Mixed"

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:
        return PreFilterResult(SKIP)


def test_a_row_filter_with_a_pre_filter_that_looks_at_pods_is_refused() -> None:
    with pytest.raises(
        PluginError,
        match="plugin Mixed: answers of a RowFilter are cached by signature, so its PreFilter "
        "must be a SignaturePreFilter",
    ):
        IN_TREE.with_plugins([Mixed])


def test_more_plugins_make_a_new_registry() -> None:
    more = Registry([NodeName]).with_plugins([Mine])
    assert set(more) == {"NodeName", "Mine"}
    assert "Mine" not in IN_TREE


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        ("NodeName", {"preFilter", "filter"}),
        ("NodePorts", {"preFilter", "filter"}),
        ("NodeAffinity", {"preFilter", "filter", "preScore", "score"}),
        ("TaintToleration", {"preFilter", "filter", "preScore", "score"}),
        ("NodeResourcesFit", {"preFilter", "filter", "preScore", "score"}),
        ("NodeResourcesBalancedAllocation", {"preScore", "score"}),
        ("ImageLocality", {"score"}),
        ("NodeUnschedulable", {"preFilter", "filter"}),
        ("NodeDeclaredFeatures", {"preFilter", "filter"}),
        ("SchedulingGates", {"preEnqueue"}),
        ("PrioritySort", {"queueSort"}),
        ("DefaultBinder", {"bind"}),
    ],
)
def test_extension_points_of_in_tree_plugins(plugin: str, want: set[str]) -> None:
    assert IN_TREE.points_of(plugin) == frozenset(want)


def test_an_unknown_plugin_has_no_points() -> None:
    assert IN_TREE.points_of("Nothing") is None


def test_the_default_profile_runs_its_plugins_in_order() -> None:
    plugins = framework_of(cluster_of()).plugins

    def those(point: str, *names: str) -> list[str]:
        return [name for name in names if point in (IN_TREE.points_of(name) or ())]

    assert [each.name for each in plugins.filter] == those(
        "filter",
        "NodeName",
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    )
    assert [each.name for each in plugins.pre_filter] == those(
        "preFilter",
        "NodeName",
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    )
    weights = {each.name: weight for each, weight in plugins.score}
    all_weights = {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert weights == {name: all_weights[name] for name in those("score", *all_weights)}
    assert [each.name for each in plugins.bind] == ["DefaultBinder"]


def test_in_tree_plugins_that_are_not_built_are_named() -> None:
    framework = framework_of(cluster_of())
    assert set(framework.left_out).isdisjoint(IN_TREE)
    assert framework.scheduler_name == "default-scheduler"


def test_an_out_of_tree_plugin_runs_after_the_default_ones() -> None:
    framework = framework_of(cluster_of(), plugins=[Mine])
    assert framework.plugins.filter[-1].name == "Mine"


def test_a_plugin_that_refuses_its_arguments_is_named() -> None:
    with pytest.raises(ConfigError) as raised:
        framework_of(cluster_of(), plugins=[Refusing])
    assert str(raised.value) == ('initializing plugin "Refusing": limit: must be greater than zero')


def test_a_profile_without_arguments_for_a_plugin_that_needs_them_is_refused() -> None:
    profile = framework_of(cluster_of()).profile
    bare = Profile(scheduler_name="bare", plugins=profile.plugins)
    with pytest.raises(ConfigError, match=r"initializing plugin .* has no \w+Args configured"):
        build_framework(
            bare,
            registry=IN_TREE,
            gates=FeatureGates.of(),
            cluster=cluster_of(),
            binder=RecordingBinder(),
            evictor=RecordingEvictor(),
        )


def test_arguments_reach_the_plugin() -> None:
    args = NodeResourcesFitArgs(ignored_resources=("example.com/x",))
    framework = framework_of(cluster_of(), args={"NodeResourcesFit": args})
    assert framework.profile.args("NodeResourcesFit", NodeResourcesFitArgs) is args
