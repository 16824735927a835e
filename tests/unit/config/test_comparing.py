from __future__ import annotations

from typing import Any

import pytest
import yaml

from kubesched.config import loading
from kubesched.config.comparing import ConfigDifference, as_text, compare
from kubesched.config.types import SchedulerConfiguration
from tests.support.configuration_tables import GATES, HEADER, IN_TREE_POINTS


def config(**fields: Any) -> SchedulerConfiguration:
    return loading.decode(HEADER + (yaml.safe_dump(fields) if fields else ""), gates=GATES)


def profile(**fields: Any) -> SchedulerConfiguration:
    return config(profiles=[fields])


def plugins(**points: Any) -> SchedulerConfiguration:
    return profile(plugins=points)


def differences(a: SchedulerConfiguration, b: SchedulerConfiguration) -> list[ConfigDifference]:
    return list(compare(a, b, IN_TREE_POINTS).differences)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (config(), config(parallelism=16, podMaxBackoffSeconds=10)),
        (
            plugins(multiPoint={"disabled": [{"name": "ImageLocality"}]}),
            plugins(score={"disabled": [{"name": "ImageLocality"}]}),
        ),
        (
            plugins(score={"enabled": [{"name": "ImageLocality", "weight": 5}]}),
            plugins(multiPoint={"enabled": [{"name": "ImageLocality", "weight": 5}]}),
        ),
        (
            profile(),
            profile(pluginConfig=[{"name": "InterPodAffinity", "args": {}}]),
        ),
        (
            config(extenders=[{"urlPrefix": "http://a", "filterVerb": "f"}]),
            config(extenders=[{"urlPrefix": "http://a", "filterVerb": "f", "httpTimeout": "5s"}]),
        ),
        (
            config(profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}]),
            config(profiles=[{"schedulerName": "b"}, {"schedulerName": "a"}]),
        ),
        (
            plugins(multiPoint={"enabled": [{"name": "Mine"}]}),
            plugins(multiPoint={"enabled": [{"name": "Mine"}]}),
        ),
    ],
    ids=[
        "defaults",
        "disabled at its only point",
        "weighted here or there",
        "arguments",
        "timeouts",
        "order of profiles",
        "a plugin that is not at hand",
    ],
)
def test_the_same_said_otherwise(a: SchedulerConfiguration, b: SchedulerConfiguration) -> None:
    assert compare(a, b, IN_TREE_POINTS).equal


def test_fields_are_named_by_their_path() -> None:
    a, b = config(), config(parallelism=4, leaderElection={"leaderElect": False})

    assert differences(a, b) == [
        ConfigDifference("", "parallelism", 16, 4),
        ConfigDifference("", "leaderElection.leaderElect", True, False),
    ]


def test_profiles_are_matched_by_name() -> None:
    a = config(profiles=[{"schedulerName": "x"}])
    b = config(profiles=[{"schedulerName": "z"}, {"schedulerName": "x"}])

    assert differences(a, b) == [ConfigDifference("profiles", "z", None, "enabled")]


def test_plugins_are_compared_as_they_run() -> None:
    part = "profiles[default-scheduler].plugins"
    a = plugins()
    b = plugins(
        multiPoint={"disabled": [{"name": "VolumeZone"}]},
        score={"enabled": [{"name": "TaintToleration", "weight": 1}]},
        permit={"enabled": [{"name": "Mine"}]},
    )

    assert differences(a, b) == [
        ConfigDifference(f"{part}.preFilter", "VolumeZone", "enabled", None),
        ConfigDifference(f"{part}.filter", "VolumeZone", "enabled", None),
        ConfigDifference(f"{part}.score", "TaintToleration", 3, 1),
        ConfigDifference(f"{part}.permit", "Mine", None, "enabled"),
    ]


def test_order_counts_where_it_makes_a_difference() -> None:
    def binders(*names: str) -> SchedulerConfiguration:
        enabled = [{"name": name} for name in names]
        return plugins(bind={"disabled": [{"name": "*"}], "enabled": enabled})

    assert differences(binders("A", "DefaultBinder"), binders("DefaultBinder", "A")) == [
        ConfigDifference(
            "profiles[default-scheduler].plugins.bind",
            "order",
            ["A", "DefaultBinder"],
            ["DefaultBinder", "A"],
        )
    ]


def test_plugins_that_are_not_at_hand_are_compared_by_what_is_said_of_them() -> None:
    a, b = plugins(), plugins(multiPoint={"enabled": [{"name": "Mine"}]})

    assert differences(a, b) == [
        ConfigDifference("profiles[default-scheduler].plugins.multiPoint", "Mine", None, "enabled")
    ]


def test_arguments_of_any_plugin_are_compared() -> None:
    def with_args(strategy: str, mine: Any) -> SchedulerConfiguration:
        return profile(
            plugins={"score": {"enabled": [{"name": "Mine"}]}},
            pluginConfig=[
                {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": strategy}}},
                {"name": "Mine", "args": mine},
            ],
        )

    found = differences(with_args("LeastAllocated", {"a": 1}), with_args("MostAllocated", [2]))

    part = "profiles[default-scheduler]"
    assert found == [
        ConfigDifference(f"{part}.Mine", "a", 1, None),
        ConfigDifference(f"{part}.Mine", "args", None, [2]),
        ConfigDifference(
            f"{part}.NodeResourcesFit", "scoringStrategy.type", "LeastAllocated", "MostAllocated"
        ),
    ]


def test_extenders_are_compared_in_order() -> None:
    a = config(extenders=[{"urlPrefix": "http://a", "filterVerb": "f"}])
    b = config(
        extenders=[
            {"urlPrefix": "http://b", "filterVerb": "f"},
            {"urlPrefix": "http://a", "filterVerb": "f"},
        ]
    )

    found = differences(a, b)

    assert found[0] == ConfigDifference("extenders[0]", "urlPrefix", "http://a", "http://b")
    assert {each.part for each in found[1:]} == {"extenders[1]"}
    assert {each.a for each in found[1:]} == {None}


def test_text_shows_both_sides() -> None:
    a, b = config(), config(parallelism=4, profiles=[{"schedulerName": "x"}])

    assert as_text(compare(a, b, IN_TREE_POINTS), "a.yaml", "b.yaml") == (
        "--- a.yaml\n"
        "+++ b.yaml\n"
        "- parallelism: 16\n"
        "+ parallelism: 4\n"
        "profiles:\n"
        "  - default-scheduler\n"
        "  + x\n"
    )


def test_no_text_if_nothing_differs() -> None:
    assert as_text(compare(config(), config(), IN_TREE_POINTS), "a", "b") == ""
