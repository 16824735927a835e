"""QuietRacks, on two racks of two nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubesched.errors import ConfigError
from kubesched.testing import Workbench, make_node, make_pod, plugin_checks

from .plugin import QuietRacks

RACK = "topology.kubernetes.io/rack"
NOISY = {"noisy": "true"}


@pytest.fixture
def two_racks(cluster: Workbench) -> Workbench:
    cluster.use(QuietRacks, weight=50)
    for name in ("a1", "a2", "b1", "b2"):
        cluster.node(name, cpu=8, labels={RACK: name[0]})
    return cluster


def test_the_rack_with_fewer_noisy_pods_wins(two_racks: Workbench) -> None:
    two_racks.pod(cpu=1, node="a1", labels=NOISY)

    # a2 has no pod at all, but its neighbour is noisy.
    two_racks.pod(cpu=1).lands_on("b1", "b2")


def test_counts_follow_every_pod(two_racks: Workbench) -> None:
    two_racks.pod(cpu=1, node="a1", labels=NOISY)
    two_racks.pod(cpu=1).lands_on("b1", "b2")
    two_racks.pod(cpu=1, node="b1", labels=NOISY)
    two_racks.pod(cpu=1, node="b2", labels=NOISY)

    two_racks.pod(cpu=1).lands_on("a1", "a2")


def test_the_selector_is_the_administrators_choice(cluster: Workbench) -> None:
    cluster.use(QuietRacks, weight=50, args={"selector": "tier in (batch, ci)"})
    for name in ("a1", "b1"):
        cluster.node(name, cpu=8, labels={RACK: name[0]})
    cluster.pod(cpu=1, node="a1", labels=NOISY)
    cluster.pod(cpu=1, node="b1", labels={"tier": "ci"})

    cluster.pod(cpu=1).lands_on("a1")


def test_a_malformed_selector_is_told_at_start(cluster: Workbench) -> None:
    cluster.node("n1")
    cluster.use(QuietRacks, args={"selector": "tier in batch"})

    with pytest.raises(ConfigError, match='initializing plugin "QuietRacks"'):
        cluster.schedule(cluster.pod())


CHECKS = plugin_checks(
    QuietRacks,
    nodes=[make_node("a", labels={RACK: "a"}), make_node("b", labels={RACK: "b"})],
    pods=[make_pod("loud", labels=NOISY)],
)


@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in CHECKS])
def test_it_keeps_its_promises(check: Callable[[], None]) -> None:
    check()
