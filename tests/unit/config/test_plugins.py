"""Expansion of a profile: which plugins run at which point, in which order."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.config import loading
from kubesched.config.extenders import with_extender_effects
from kubesched.config.features import FeatureGates
from kubesched.config.plugins import Unbuilt, expand, expand_all
from kubesched.config.profiles import (
    EXTENSION_POINTS,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    Profile,
)
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ConfigError
from tests.support.configuration_tables import GATES, IN_TREE_POINTS, rows

SMALL = {
    "Sort": {"queueSort"},
    "OtherSort": {"queueSort"},
    "Bind": {"bind"},
    "Score": {"score", "filter"},
    "Place": {"placementGenerate", "placementScore"},
    "OtherPlace": {"placementGenerate"},
}


def profile(name: str = "p", **points: str) -> Profile:
    """A profile from text: ``multi_point="Sort Bind Score=3"``, nothing of it defaulted."""
    sets = {}
    for point, text in points.items():
        pairs = (word.partition("=") for word in text.split())
        refs = (PluginRef(name=name, weight=int(weight or 0)) for name, _, weight in pairs)
        sets[point] = PluginSet(enabled=tuple(refs))
    return Profile(scheduler_name=name, plugins=Plugins(**sets))


@pytest.mark.parametrize("row", rows("expanded"))
def test_expanded(row: dict[str, Any]) -> None:
    config = loading.decode(row["config"], gates=GATES)

    got = [
        {
            point: " ".join(f"{r.name}={r.weight}" if r.weight else r.name for r in refs)
            for point, refs in expansion.points.items()
        }
        for expansion in expand_all(config.profiles, IN_TREE_POINTS).values()
    ]

    assert got == row["points"]


@pytest.mark.parametrize("row", rows("unbuildable"))
def test_unbuildable(row: dict[str, str]) -> None:
    config = loading.decode(row["config"], gates=GATES)

    with pytest.raises(ConfigError) as caught:
        expand_all(with_extender_effects(config).profiles, IN_TREE_POINTS)

    assert str(caught.value) == row["error"]


def test_every_point_is_there_even_if_nothing_runs() -> None:
    expansion = expand(profile(multi_point="Sort Bind"), SMALL)

    assert tuple(expansion.points) == EXTENSION_POINTS
    assert expansion.points["filter"] == ()
    assert expansion.names("bind") == ["Bind"]


def test_plugins_can_be_asked_for_by_function() -> None:
    expansion = expand(profile(multi_point="Sort Bind"), SMALL.get)

    assert expansion.names("queueSort") == ["Sort"]


def test_a_weight_of_zero_is_one_where_plugins_score() -> None:
    expansion = expand(profile(multi_point="Sort Bind Score Place=4"), SMALL)

    assert expansion.points["score"] == (PluginRef(name="Score", weight=1),)
    assert expansion.points["placementScore"] == (PluginRef(name="Place", weight=4),)
    assert expansion.points["filter"] == (PluginRef(name="Score", weight=0),)


@pytest.mark.parametrize(
    ("points", "want"),
    [
        ({"multi_point": "Bind"},
         'only one queue sort plugin required for profile with scheduler name "p", but got 0'),
        ({"multi_point": "Sort OtherSort Bind"},
         'only one queue sort plugin required for profile with scheduler name "p", but got 2'),
        ({"multi_point": "Sort"},
         'at least one bind plugin is needed for profile with scheduler name "p"'),
        ({"multi_point": "Sort Bind Place OtherPlace"},
         'at most one placement generate plugin is allowed for profile with scheduler name "p"'),
        ({"multi_point": f"Sort Bind Score={2**62}"},
         "score plugins: total score of Score plugins could overflow"),
        ({"multi_point": f"Sort Bind Place={2**62}"},
         "placement score plugins: total score of Score plugins could overflow"),
        ({"multi_point": "Sort Bind", "permit": "Nobody"}, 'PermitPlugin "Nobody" does not exist'),
    ],
)  # fmt: skip
def test_profiles_that_cannot_be_built(points: dict[str, str], want: str) -> None:
    with pytest.raises(ConfigError) as caught:
        expand(profile(**points), SMALL)

    assert str(caught.value) == want


def test_all_profiles_sort_the_queue_alike() -> None:
    profiles = [profile("a", multi_point="Sort Bind"), profile("b", multi_point="OtherSort Bind")]

    with pytest.raises(ConfigError) as caught:
        expand_all(profiles, SMALL)

    assert str(caught.value) == (
        'initializing profiles: different queue sort plugins for profile "b": "OtherSort", '
        'first: "Sort"'
    )


def test_all_profiles_sort_the_queue_with_the_same_arguments() -> None:
    first = profile("a", multi_point="Sort Bind")
    second = profile("b", multi_point="Sort Bind")
    config = (PluginConfig(name="Sort", args={"by": "age"}),)

    with pytest.raises(ConfigError) as caught:
        expand_all([first, msgspec.structs.replace(second, plugin_config=config)], SMALL)

    assert str(caught.value) == (
        'initializing profiles: different queue sort plugin args for profile "b"'
    )


# --- in-tree plugins that are not built yet ---------------------------------------------------


BUILT = {name: IN_TREE_POINTS[name] for name in ("PrioritySort", "DefaultBinder", "NodeName")}


def test_unbuilt_plugins_are_refused_unless_asked_otherwise() -> None:
    default = SchedulerConfiguration.default(GATES).profiles[0]

    with pytest.raises(ConfigError, match='PreFilterPlugin "SchedulingGates" does not exist'):
        expand(default, BUILT)


def test_unbuilt_plugins_can_be_left_out() -> None:
    default = SchedulerConfiguration.default(GATES).profiles[0]

    expansion = expand(default, BUILT, unbuilt=Unbuilt.LEAVE_OUT)

    assert expansion.names("filter") == ["NodeName"]
    assert expansion.names("score") == []
    assert "ImageLocality" in expansion.left_out
    assert "NodeName" not in expansion.left_out


def test_a_plugin_that_nobody_knows_is_never_left_out() -> None:
    fragment = {"plugins": {"filter": {"enabled": [{"name": "Typo"}]}}}
    custom = loading.profile_from_fragment(fragment, FeatureGates.parse())

    with pytest.raises(ConfigError, match='FilterPlugin "Typo" does not exist'):
        expand(custom, BUILT, unbuilt=Unbuilt.LEAVE_OUT)
