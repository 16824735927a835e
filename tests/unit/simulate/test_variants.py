"""Fields of configurations with several values, each a configuration like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.config import loading
from kubesched.config.args import NodeResourcesFitArgs
from kubesched.config.plugins import expand
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ConfigError, UsageError
from kubesched.plugins.in_tree import IN_TREE
from kubesched.simulate.variants import Base, Variant, combined, default, read
from tests.support.worlds import GATES


def _decoded(variant: Variant) -> SchedulerConfiguration:
    return loading.decode(variant.text, variant.name, gates=GATES)


def _weight(variant: Variant, plugin: str) -> int:
    [profile] = _decoded(variant).profiles
    refs = expand(profile, IN_TREE.points_of).points["score"]
    return next((ref.weight for ref in refs if ref.name == plugin), 0)


def test_without_anything_to_set_the_configuration_is_as_it_is() -> None:
    [variant] = combined([default()], [])

    assert variant.name == "default"
    assert _decoded(variant) == SchedulerConfiguration.default(GATES)


def test_weights_of_plugins_are_set() -> None:
    variants = combined([default()], ["NodeResourcesFit.weight=3,7"])

    assert [each.name for each in variants] == [
        "NodeResourcesFit.weight=3",
        "NodeResourcesFit.weight=7",
    ]
    assert [_weight(each, "NodeResourcesFit") for each in variants] == [3, 7]
    assert [_weight(each, "TaintToleration") for each in variants] == [3, 3]


def test_a_weight_that_the_base_sets_is_replaced_where_it_is() -> None:
    plugins = {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 2}]}}
    base = Base("mine", {**default().tree, "profiles": [{"plugins": plugins}]})

    [variant] = combined([base], ["NodeResourcesFit.weight=9"])

    assert _weight(variant, "NodeResourcesFit") == 9
    assert base.tree["profiles"][0]["plugins"]["score"]["enabled"][0]["weight"] == 2


def test_plugins_are_switched_off() -> None:
    on, off = combined([default()], ["ImageLocality.enabled=true,false"])

    assert _weight(on, "ImageLocality") == 1
    assert _weight(off, "ImageLocality") == 0


def test_arguments_of_plugins_are_set() -> None:
    settings = ["NodeResourcesFit.scoringStrategy.type=MostAllocated"]

    [variant] = combined([default()], settings)

    [profile] = _decoded(variant).profiles
    args = profile.args("NodeResourcesFit", NodeResourcesFitArgs)
    assert args.scoring_strategy is not None
    assert args.scoring_strategy.type == "MostAllocated"


def test_fields_of_the_configuration_itself_are_set() -> None:
    [variant] = combined([default()], ["podMaxBackoffSeconds=60"])

    assert _decoded(variant).pod_max_backoff_seconds == 60


def test_all_values_are_combined_with_all_bases() -> None:
    bases = [Base("a", default().tree), Base("b", default().tree)]

    variants = combined(bases, ["NodeResourcesFit.weight=1,2", "podMaxBackoffSeconds=10,20,30"])

    assert len(variants) == 12
    assert variants[0].name == "a, NodeResourcesFit.weight=1, podMaxBackoffSeconds=10"
    assert len({each.name for each in variants}) == 12


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("NodeResourcesFit.weight", "expected PATH=VALUE"),
        ("=3", "expected PATH=VALUE"),
        ("podMaxBackoffSeconds=[", "no values in YAML"),
        ("NodeResourcesFit=3", "say what of it"),
        ("ImageLocality.enabled=maybe", "true or false, not maybe"),
        ("ImageLocality.size=3", "plugin ImageLocality takes no arguments"),
        ("Mine.size=3", "no profile enables a plugin Mine"),
        ("podMaxBackoffSeconds=1,2", ""),
    ],
)
def test_mistakes_are_named(setting: str, message: str) -> None:
    if not message:
        assert len(combined([default()], [setting])) == 2
        return
    with pytest.raises(UsageError, match=message):
        combined([default()], [setting])


def test_a_value_that_cannot_be_used_is_refused_by_name() -> None:
    [variant] = combined([default()], ["podInitialBackoffSeconds=0"])

    with pytest.raises(ConfigError, match="podInitialBackoffSeconds=0: "):
        _decoded(variant)


def test_a_base_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*none\.yaml"):
        read(tmp_path / "none.yaml")
