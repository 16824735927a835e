"""What extenders change about the rest of the configuration."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.config.args import NodeResourcesFitArgs
from kubesched.config.durations import Duration
from kubesched.config.extenders import calling_order, with_extender_effects
from kubesched.config.types import Extender, ExtenderManagedResource, SchedulerConfiguration
from kubesched.errors import ConfigError
from tests.support.configuration_tables import GATES

DEFAULT = SchedulerConfiguration.default(GATES)


def with_extenders(*extenders: Extender) -> SchedulerConfiguration:
    return msgspec.structs.replace(DEFAULT, extenders=extenders)


def managing(**resources: bool) -> Extender:
    managed = (
        ExtenderManagedResource(name=f"example.com/{name}", ignored_by_scheduler=ignored)
        for name, ignored in resources.items()
    )
    return Extender(url_prefix="http://a", managed_resources=tuple(managed))


def test_extenders_that_may_fail_are_called_last_and_otherwise_in_order() -> None:
    a, b, c, d = (
        Extender(url_prefix=name, ignorable=ignorable)
        for name, ignorable in (("a", True), ("b", False), ("c", True), ("d", False))
    )

    assert calling_order([a, b, c, d]) == (b, d, a, c)


def test_ignored_resources_replace_those_of_every_profile() -> None:
    fit = NodeResourcesFitArgs(ignored_resources=("example.com/old",))
    profile = DEFAULT.profiles[0]
    configs = tuple(
        msgspec.structs.replace(config, args=fit) if config.name == "NodeResourcesFit" else config
        for config in profile.plugin_config
    )
    profiles = tuple(
        msgspec.structs.replace(profile, scheduler_name=name, plugin_config=configs)
        for name in ("one", "two")
    )
    config = msgspec.structs.replace(
        with_extenders(managing(a=True, b=False), managing(c=True)), profiles=profiles
    )

    changed = with_extender_effects(config)

    for each in changed.profiles:
        args = each.args("NodeResourcesFit", NodeResourcesFitArgs)
        assert args.ignored_resources == ("example.com/a", "example.com/c")
        assert [c.name for c in each.plugin_config] == [c.name for c in profile.plugin_config]


def test_nothing_ignored_changes_no_profile() -> None:
    assert with_extender_effects(with_extenders(managing(a=False))).profiles == DEFAULT.profiles


def test_ignoring_needs_node_resources_fit() -> None:
    profile = msgspec.structs.replace(DEFAULT.profiles[0], plugin_config=())
    config = msgspec.structs.replace(with_extenders(managing(a=True)), profiles=(profile,))

    with pytest.raises(ConfigError) as caught:
        with_extender_effects(config)

    assert str(caught.value) == (
        "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
    )


def test_calls_have_a_timeout() -> None:
    slow = Extender(url_prefix="b", http_timeout=Duration.of_seconds(9))

    changed = with_extender_effects(with_extenders(Extender(url_prefix="a"), slow))

    assert [extender.http_timeout.seconds for extender in changed.extenders] == [5, 9]
