from __future__ import annotations

from typing import Any

import pytest

from kubesched.config.legacy.releases import OldProfile
from kubesched.config.legacy.report import ConversionReport
from kubesched.config.legacy.successors import replace_old_plugins, successor
from kubesched.config.profiles import PluginRef


def profile(
    score: dict[str, int], *, filters: tuple[str, ...] = (), args: dict[str, Any] | None = None
) -> OldProfile:
    return OldProfile(
        scheduler_name=None,
        points={
            "filter": [PluginRef(name=name) for name in filters],
            "score": [PluginRef(name=name, weight=weight) for name, weight in score.items()],
        },
        args=args or {},
    )


def replaced(old: OldProfile) -> ConversionReport:
    report = ConversionReport()
    replace_old_plugins(old, report)
    return report


def scores(old: OldProfile) -> dict[str, int]:
    return {ref.name: ref.weight for ref in old.points["score"]}


def test_limits_of_clouds_are_one_plugin() -> None:
    old = profile({}, filters=("NodeName", "EBSLimits", "NodeVolumeLimits", "CinderLimits"))

    replaced(old)

    assert [ref.name for ref in old.points["filter"]] == ["NodeName", "NodeVolumeLimits"]


@pytest.mark.parametrize(
    ("plugin", "strategy"),
    [
        ("NodeResourcesLeastAllocated", "LeastAllocated"),
        ("NodeResourcesMostAllocated", "MostAllocated"),
    ],
)
def test_a_weight_of_zero_took_a_resource_out(plugin: str, strategy: str) -> None:
    resources = [{"name": "cpu", "weight": 2}, {"name": "memory", "weight": 0}]
    args = {plugin: {"resources": resources}, "NodeResourcesFit": {"ignoredResources": ["a/b"]}}
    old = profile({plugin: 3}, args=args)

    replaced(old)

    assert scores(old) == {"NodeResourcesFit": 3}
    assert old.args == {
        "NodeResourcesFit": {
            "ignoredResources": ["a/b"],
            "scoringStrategy": {"type": strategy, "resources": resources[:1]},
        }
    }


def test_a_profile_has_one_strategy_that_of_the_user() -> None:
    old = profile({"NodeResourcesLeastAllocated": 9, "RequestedToCapacityRatio": 5})
    old.chosen["score"] = ["RequestedToCapacityRatio"]

    report = replaced(old)

    assert scores(old) == {"NodeResourcesFit": 5}
    assert old.args["NodeResourcesFit"]["scoringStrategy"]["type"] == "RequestedToCapacityRatio"
    (lost,) = report.lost
    assert lost == (
        "score NodeResourcesLeastAllocated weight 9: NodeResourcesFit scores with one strategy, "
        "and that of RequestedToCapacityRatio is kept"
    )


def test_labels_that_nodes_must_have_are_added_affinity() -> None:
    args = {"NodeLabel": {"presentLabels": ["a"], "absentLabels": ["b"]}}
    old = profile({}, filters=("NodeAffinity", "NodeLabel"), args=args)

    report = replaced(old)

    (term,) = old.args["NodeAffinity"]["addedAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "a", "operator": "Exists"},
        {"key": "b", "operator": "DoesNotExist"},
    ]
    assert [ref.name for ref in old.points["filter"]] == ["NodeAffinity"]
    assert report.notes == []


def test_labels_narrow_every_term_that_is_there() -> None:
    terms = [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}, {"matchFields": []}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    args = {
        "NodeLabel": {"presentLabels": ["a"]},
        "NodeAffinity": {"addedAffinity": required},
    }
    old = profile({}, filters=("NodeAffinity", "NodeLabel"), args=args)

    replaced(old)

    found = old.args["NodeAffinity"]["addedAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert [[each["key"] for each in term["matchExpressions"]] for term in found] == [
        ["x", "a"],
        ["a"],
    ]


def test_labels_need_node_affinity_and_it_is_said_if_it_did_not_filter() -> None:
    old = profile({}, filters=("NodeLabel",), args={"NodeLabel": {"presentLabels": ["a"]}})

    report = replaced(old)

    assert [ref.name for ref in old.points["filter"]] == ["NodeAffinity"]
    assert "NodeAffinity filters now" in report.notes[0]


def test_labels_that_nodes_should_have_are_preferred() -> None:
    args = {"NodeLabel": {"presentLabelsPreference": ["a"], "absentLabelsPreference": ["b"]}}
    old = profile({"NodeAffinity": 1, "NodeLabel": 4}, args=args)

    replaced(old)

    preferred = old.args["NodeAffinity"]["addedAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert scores(old) == {"NodeAffinity": 4}
    assert [each["preference"]["matchExpressions"][0] for each in preferred] == [
        {"key": "a", "operator": "Exists"},
        {"key": "b", "operator": "DoesNotExist"},
    ]


def test_services_are_spread_by_default_constraints_beside_those_there_were() -> None:
    args = {"ServiceAffinity": {"antiAffinityLabelsPreference": ["rack"]}}
    old = profile({"PodTopologySpread": 2, "ServiceAffinity": 3}, args=args)

    report = replaced(old)

    spread = old.args["PodTopologySpread"]
    assert scores(old) == {"PodTopologySpread": 3}
    assert spread["defaultingType"] == "List"
    assert [(each["topologyKey"], each["maxSkew"]) for each in spread["defaultConstraints"]] == [
        ("kubernetes.io/hostname", 3),
        ("topology.kubernetes.io/zone", 5),
        ("rack", 1),
    ]
    assert report.lost == []


def test_spreading_by_selector_and_by_constraints_is_one_plugin() -> None:
    both = profile({"PodTopologySpread": 2, "SelectorSpread": 5})
    one = profile({"DefaultPodTopologySpread": 5})

    replaced(both)
    replaced(one)

    assert scores(both) == {"PodTopologySpread": 2}
    assert scores(one) == {"PodTopologySpread": 5}
    assert both.args == one.args == {}


def test_pods_without_constraints_were_not_spread_without_the_plugin_for_them() -> None:
    old = profile({"PodTopologySpread": 1})
    old.selector_spread_apart = True

    replaced(old)

    assert old.args == {"PodTopologySpread": {"defaultingType": "List"}}


@pytest.mark.parametrize("plugin", ["NodePreferAvoidPods", "NodeResourceLimits"])
def test_a_plugin_without_successor_is_reported(plugin: str) -> None:
    old = profile({plugin: 1, "ImageLocality": 1})

    report = replaced(old)

    assert scores(old) == {"ImageLocality": 1}
    assert report.lost[0].startswith(f"{plugin}: ")
    assert successor(plugin) == ""
