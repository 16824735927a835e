"""PoolGrants, with grants that come and go."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubesched.api.meta import ObjectMeta
from kubesched.testing import Workbench, make_node, plugin_checks

from .plugin import LABEL, PoolGrant, PoolGrants, PoolGrantSpec


def grant(pool: str, *namespaces: str) -> PoolGrant:
    spec = PoolGrantSpec(pool=pool, namespaces=namespaces)
    return PoolGrant(metadata=ObjectMeta(name=f"to-{pool}"), spec=spec)


@pytest.fixture
def two_pools(cluster: Workbench) -> Workbench:
    cluster.use(PoolGrants)
    cluster.node("plain", cpu=2)
    cluster.node("gpu", cpu=64, labels={LABEL: "gpu"})
    return cluster


def test_a_pool_is_closed_to_namespaces_without_a_grant(two_pools: Workbench) -> None:
    placement = two_pools.pod(cpu=1).lands_on("plain")

    assert placement.refused == {"gpu": "node(s) of pool gpu were not granted to default"}


def test_a_grant_opens_it(two_pools: Workbench) -> None:
    two_pools.put(grant("gpu", "default"))

    two_pools.pod(cpu=8).lands_on("gpu")


def test_a_grant_that_changes_closes_it_again(two_pools: Workbench) -> None:
    two_pools.put(grant("gpu", "default"))
    two_pools.pod(cpu=8).lands_on("gpu")
    two_pools.put(grant("gpu", "team-a"))

    two_pools.pod(cpu=8).stays_pending_because("node(s) of pool gpu were not granted to default")


def test_an_explanation_names_the_namespaces_that_have_it(two_pools: Workbench) -> None:
    two_pools.put(grant("gpu", "team-b", "team-a"))
    placement = two_pools.pod(cpu=8).stays_pending_because("were not granted to default")

    assert placement.details["gpu"] == "pool gpu is granted to team-a, team-b"


CHECKS = plugin_checks(PoolGrants, nodes=[make_node("gpu", labels={LABEL: "gpu"})])


@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in CHECKS])
def test_it_keeps_its_promises(check: Callable[[], None]) -> None:
    check()
