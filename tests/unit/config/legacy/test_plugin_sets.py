from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubesched.config.legacy.plugin_sets import PluginSetWriter, renamed, resolve
from kubesched.config.legacy.releases import KNOWN_THEN, V1BETA1, V1BETA2, OldProfile
from kubesched.config.legacy.report import ConversionReport
from kubesched.config.loading import profile_from_fragment
from kubesched.config.plugins import expand
from kubesched.config.profiles import PluginRef
from tests.support.configuration_tables import GATES, IN_TREE_POINTS
from tests.support.legacy_configurations import TODAY, configuration, converted

DEFAULT = TODAY.points()
POINTS = {
    **IN_TREE_POINTS,
    "Mine": {"preFilter", "filter", "score", "reserve", "bind"},
    "Other": {"bind", "reserve"},
}
FILTERS = sorted({ref.name for ref in DEFAULT["filter"]} & KNOWN_THEN)
#: VolumeBinding scores by feature gate, whatever an old configuration says.
SCORES = sorted({ref.name for ref in DEFAULT["score"]} & KNOWN_THEN - {"VolumeBinding"})


def old_profile(filters: list[str], scores: dict[str, int]) -> OldProfile:
    volumes = [PluginRef(name="VolumeBinding")] if "VolumeBinding" in filters else []
    return OldProfile(
        scheduler_name=None,
        points={
            "queueSort": [PluginRef(name="PrioritySort")],
            "filter": [PluginRef(name=name) for name in filters],
            "postFilter": [PluginRef(name="DefaultPreemption")],
            "score": [PluginRef(name=name, weight=weight) for name, weight in scores.items()],
            "reserve": volumes,
            "preBind": volumes,
            "bind": [PluginRef(name="DefaultBinder")],
        },
    )


def running(plugins: dict[str, Any]) -> dict[str, dict[str, int]]:
    """What v1 runs of plugin sets, without plugins that came later."""
    expansion = expand(profile_from_fragment({"plugins": plugins}, GATES), POINTS)
    return {
        point: {ref.name: ref.weight for ref in refs if ref.name in {*KNOWN_THEN, "Mine", "Other"}}
        for point, refs in expansion.points.items()
    }


@given(
    filters=st.lists(st.sampled_from([*FILTERS, "Mine"]), unique=True),
    scores=st.dictionaries(st.sampled_from([*SCORES, "Mine"]), st.integers(1, 100)),
    emptied=st.booleans(),
)
def test_v1_runs_what_ran(filters: list[str], scores: dict[str, int], emptied: bool) -> None:
    profile = old_profile(filters, scores)
    if emptied:
        profile.emptied.add("score")

    found = running(PluginSetWriter(profile, TODAY, ConversionReport()).plugins())

    assert found["filter"].keys() == set(filters)
    by_gate = {"VolumeBinding"} if "VolumeBinding" in filters and not emptied else set()
    assert found["score"] == {**scores, **dict.fromkeys(by_gate, 1)}
    prepared = {name for name in found["preFilter"] if "filter" in POINTS[name]}
    assert prepared == {name for name in filters if "preFilter" in POINTS[name]} - {"Mine"}
    assert found["preScore"].keys() == {
        name for name in found["score"] if "preScore" in POINTS[name]
    }
    volumes = {"VolumeBinding"} & set(filters)
    assert found["reserve"].keys() == found["preBind"].keys() == volumes
    assert list(found["bind"]) == ["DefaultBinder"]


def test_plugins_that_came_later_stay() -> None:
    written = PluginSetWriter(old_profile([], {}), TODAY, ConversionReport()).plugins()

    expansion = expand(profile_from_fragment({"plugins": written}, GATES), POINTS)

    for point, refs in DEFAULT.items():
        later = {ref.name for ref in refs} - KNOWN_THEN
        assert later <= set(expansion.names(point))


def test_plugins_that_did_not_run_at_all_are_disabled_altogether() -> None:
    filters = [name for name in FILTERS if name not in {"VolumeBinding", "VolumeZone"}]
    scores = {ref.name: ref.weight for ref in DEFAULT["score"] if ref.name in SCORES}

    written = PluginSetWriter(old_profile(filters, scores), TODAY, ConversionReport()).plugins()

    assert written == {
        "multiPoint": {"disabled": [{"name": "VolumeBinding"}, {"name": "VolumeZone"}]}
    }


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1", "v1beta2"])
def test_the_order_of_binders_is_kept(version: str) -> None:
    enabled = [{"name": "Mine"}, {"name": "DefaultBinder"}, {"name": "Other"}]
    plugins = {"bind": {"disabled": [{"name": "*"}], "enabled": enabled}}
    document = configuration(version, profiles=[{"plugins": plugins}])

    (profile,) = yaml.safe_load(converted(document).text)["profiles"]

    assert list(running(profile["plugins"])["bind"]) == ["Mine", "DefaultBinder", "Other"]


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1", "v1beta2"])
def test_own_plugins_come_after_the_default_ones(version: str) -> None:
    plugins = {
        "reserve": {"enabled": [{"name": "Mine"}]},
        "preFilter": {"enabled": [{"name": "Mine"}]},
        "score": {"enabled": [{"name": "Mine", "weight": 7}]},
    }
    document = configuration(version, profiles=[{"plugins": plugins}])

    (profile,) = yaml.safe_load(converted(document).text)["profiles"]

    found = running(profile["plugins"])
    assert list(found["reserve"]) == ["VolumeBinding", "Mine"]
    assert "Mine" in found["preFilter"]
    assert found["score"]["Mine"] == 7
    assert "Mine" not in found["filter"]


def test_since_v1beta2_a_default_can_be_enabled_again_with_another_weight() -> None:
    default = {"score": [PluginRef(name="ImageLocality", weight=1)]}
    sets = {"score": {"enabled": [{"name": "ImageLocality", "weight": 5}]}}

    before, after = (resolve(default, sets, version) for version in (V1BETA1, V1BETA2))

    assert [ref.weight for ref in before.points["score"]] == [1, 5]
    assert [ref.weight for ref in after.points["score"]] == [5]
    assert after.chosen["score"] == []


def test_a_weight_that_is_not_given_is_1() -> None:
    found = resolve({}, {"score": {"enabled": [{"name": "Mine"}]}}, V1BETA2)

    assert found.points["score"] == [PluginRef(name="Mine", weight=1)]


def test_sets_with_multi_point_change_only_where_plugins_are_gone() -> None:
    report = ConversionReport()
    plugins = {
        "multiPoint": {
            "enabled": [{"name": "EBSLimits"}, {"name": "NodeVolumeLimits"}, {"name": "Mine"}],
            "disabled": [{"name": "*"}],
        },
        "filter": {"disabled": [{"name": "GCEPDLimits"}, {"name": "VolumeZone"}]},
        "postBind": {"disabled": [{"name": "CinderLimits"}]},
    }

    assert renamed(plugins, report) == {
        "multiPoint": {
            "enabled": [{"name": "NodeVolumeLimits"}, {"name": "Mine"}],
            "disabled": [{"name": "*"}],
        },
        "filter": {"disabled": [{"name": "VolumeZone"}]},
    }
    assert report.converted == ["multiPoint.enabled EBSLimits -> NodeVolumeLimits"]


def test_plugins_that_were_refused_then_are_no_part_of_v1() -> None:
    report = ConversionReport()
    plugins = {"score": {"enabled": [{"name": "NodeResourcesMostAllocated", "weight": 5}]}}

    assert renamed(plugins, report) == {}
    assert report.lost == ["score.enabled NodeResourcesMostAllocated: v1beta3 refused it"]
