"""Profiles answer what callers ask of them."""

from __future__ import annotations

import pytest

from kubesched.config.args import InterPodAffinityArgs, NodeResourcesFitArgs
from kubesched.config.defaults import default_profile
from kubesched.config.profiles import EXTENSION_POINTS, MULTI_POINT, PluginRef, Plugins, PluginSet
from kubesched.errors import ConfigError
from tests.support.configuration_tables import GATES

PROFILE = default_profile(GATES)


def test_args_are_of_the_kind_that_was_asked_for() -> None:
    args = PROFILE.args("InterPodAffinity", InterPodAffinityArgs)

    assert args.hard_pod_affinity_weight == 1


@pytest.mark.parametrize(
    ("plugin", "kind"), [("Foo", InterPodAffinityArgs), ("InterPodAffinity", NodeResourcesFitArgs)]
)
def test_args_that_are_not_there(plugin: str, kind: type[NodeResourcesFitArgs]) -> None:
    with pytest.raises(ConfigError, match=f"plugin {plugin} has no {kind.__name__} configured"):
        PROFILE.args(plugin, kind)


def test_points_are_found_by_their_configuration_keys() -> None:
    plugins = Plugins(pre_filter=PluginSet(enabled=(PluginRef(name="A"),)))

    assert plugins.at("preFilter").enabled[0].name == "A"
    assert {point for point, _ in plugins.items()} == {*EXTENSION_POINTS, MULTI_POINT}


def test_names_of_all_enabled_plugins() -> None:
    plugins = Plugins(
        filter=PluginSet(enabled=(PluginRef(name="B"),), disabled=(PluginRef(name="C"),)),
        multi_point=PluginSet(enabled=(PluginRef(name="B"), PluginRef(name="A"))),
    )

    assert plugins.names() == ["A", "B"]
