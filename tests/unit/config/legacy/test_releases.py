from __future__ import annotations

import pytest

from kubesched.config.defaults import IN_TREE_PLUGINS
from kubesched.config.legacy.releases import KNOWN_THEN, OLD_VERSIONS, default_points
from kubesched.config.legacy.successors import CLOUD_LIMITS, successor
from kubesched.errors import ConfigError


@pytest.mark.parametrize("version", OLD_VERSIONS[:-1])
def test_every_old_default_exists_today_or_has_a_successor_that_does(version: str) -> None:
    names = {ref.name for refs in default_points(version).values() for ref in refs}

    assert {successor(name) for name in names} - {""} <= IN_TREE_PLUGINS


def test_plugins_that_were_known_are_those_of_today() -> None:
    assert KNOWN_THEN - set(CLOUD_LIMITS) <= IN_TREE_PLUGINS


def test_providers_ended_with_v1beta1() -> None:
    with pytest.raises(ConfigError, match="v1beta2 has no algorithm providers"):
        default_points("v1beta2", "ClusterAutoscalerProvider")
