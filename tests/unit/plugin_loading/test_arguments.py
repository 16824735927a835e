"""Arguments of others' plugins: what is taken, and how the rest is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from kubesched.config.defaults import complete_profile
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginConfig, PluginRef, Plugins, PluginSet, Profile
from kubesched.errors import ConfigError, PluginError
from kubesched.framework.node_by_node import NodeAnswer, NodeFilter, NodeWithPods, PodView
from kubesched.framework.plugin import Plugin
from kubesched.plugin_loading.arguments import (
    Arguments,
    arguments_of,
    check_arguments,
    check_type,
)
from kubesched.plugins.in_tree import IN_TREE


class Limit(Arguments):
    resource: str
    at_most: int = 5


class FilterOfNothing(NodeFilter):
    name = "Mine"

    def filter_node(self, pod: PodView, node: NodeWithPods) -> NodeAnswer:
        return None


class WithStruct(FilterOfNothing):
    class Args(Arguments):
        price_label: str = "price"
        limits: list[Limit] = msgspec.field(default_factory=list)
        by_zone: dict[str, Limit] = msgspec.field(default_factory=dict)
        spare: Limit | None = None

        def __post_init__(self) -> None:
            if not self.price_label:
                raise ValueError("priceLabel must not be empty")


@dataclass(frozen=True)
class PlainArgs:
    weight: float
    tags: list[str] = field(default_factory=list)


class WithDataclass(FilterOfNothing):
    Args = PlainArgs


def profile(args: Any) -> Profile:
    return Profile(scheduler_name="fast", plugin_config=(PluginConfig(name="Mine", args=args),))


def refusal(plugin: type[Plugin], args: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        arguments_of(profile(args), plugin)
    return str(refused.value)


def test_arguments_get_their_type() -> None:
    given = {"priceLabel": "cost", "limits": [{"resource": "cpu"}], "spare": {"resource": "x"}}

    args = arguments_of(profile(given), WithStruct)

    assert args == WithStruct.Args(
        price_label="cost", limits=[Limit(resource="cpu")], spare=Limit(resource="x")
    )


@pytest.mark.parametrize("given", [None, {}, {"apiVersion": "example.com/v1", "kind": "MineArgs"}])
def test_what_is_left_out_has_its_default(given: Any) -> None:
    assert arguments_of(profile(given), WithStruct) == WithStruct.Args()


def test_a_profile_that_does_not_mention_the_plugin_gives_defaults() -> None:
    assert arguments_of(Profile(scheduler_name="x"), WithStruct) == WithStruct.Args()


def test_a_dataclass_will_do_and_keeps_its_names() -> None:
    assert arguments_of(profile({"weight": 2, "tags": ["a"]}), WithDataclass) == PlainArgs(2, ["a"])


def test_a_plugin_without_arguments_gets_none() -> None:
    assert arguments_of(profile({}), FilterOfNothing) is None


@pytest.mark.parametrize(
    ("plugin", "given", "said"),
    [
        (WithStruct, {"price_label": "x"}, "unknown field args.price_label; known are byZone, "),
        (WithStruct, {"limits": [{"resource": "a", "max": 1}]}, "unknown field args.limits[0].max"),
        (WithStruct, {"byZone": {"z": {"resource": "a", "q": 1}}}, "unknown field args.byZone.z.q"),
        (WithStruct, {"spare": {"resource": "a", "q": 1}}, "unknown field args.spare.q"),
        (WithStruct, {"priceLabel": 3}, "args.priceLabel: Expected str, got int"),
        (WithStruct, {"limits": [{}]}, "args.limits[0]: Object missing required field resource"),
        (WithStruct, {"priceLabel": ""}, "args: priceLabel must not be empty"),
        (WithStruct, [1], "args: expected an object, got list"),
        (WithDataclass, {}, "args: Object missing required field weight"),
        (
            WithDataclass,
            {"weight": 1, "more": 2},
            "unknown field args.more; known are tags, weight",
        ),
        (FilterOfNothing, {"a": 1}, "takes no args, got a"),
    ],
)
def test_what_does_not_fit_is_refused_by_profile_plugin_and_field(
    plugin: type[Plugin], given: Any, said: str
) -> None:
    assert refusal(plugin, given).startswith(f'profile "fast": plugin "Mine": {said}')


def test_args_must_be_something_with_fields() -> None:
    class Wrong(FilterOfNothing):
        Args = dict

    with pytest.raises(PluginError, match="Args must be a msgspec Struct or a dataclass"):
        check_type(Wrong)


def test_all_profiles_are_checked_and_in_tree_plugins_left_to_others() -> None:
    def profile_with(args: Any) -> Profile:
        return complete_profile(
            Profile(
                scheduler_name="fast",
                plugins=Plugins(multi_point=PluginSet(enabled=(PluginRef(name="Mine"),))),
            ),
            given_args=(PluginConfig(name="Mine", args=args),),
            gates=FeatureGates.of({}),
        )

    registry: dict[str, type[Plugin]] = {**IN_TREE, "Mine": WithStruct}
    good, bad = profile_with({"priceLabel": "x"}), profile_with({"more": 1})

    check_arguments([good], registry)
    with pytest.raises(
        ConfigError, match=r'profile "fast": plugin "Mine": unknown field args\.more'
    ):
        check_arguments([good, bad], registry)
