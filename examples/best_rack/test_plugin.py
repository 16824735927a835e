"""BestRack, on two racks of two nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubesched.testing import Workbench, plugin_checks

from .plugin import BestRack

RACK = "topology.kubernetes.io/rack"


@pytest.fixture
def two_racks(cluster: Workbench) -> Workbench:
    cluster.use(BestRack, weight=100).without("TopologyPlacementGenerator")
    for name in ("a1", "a2", "b1", "b2"):
        cluster.node(name, cpu=4, labels={RACK: name[0]})
    return cluster


def test_a_group_goes_to_the_rack_that_is_fuller(two_racks: Workbench) -> None:
    two_racks.pod(cpu=1, node="b1")
    two_racks.group("train", min_count=3, topology=RACK).pods(3, cpu=2).lands_on("b1", "b2")


def test_a_group_that_fits_into_no_rack_goes_anywhere(two_racks: Workbench) -> None:
    outcome = two_racks.group("large", min_count=6, topology=RACK).pods(6, cpu=2).lands()
    assert {node[0] for node in outcome.nodes.values()} == {"a", "b"}


def test_a_group_that_fits_nowhere_says_so(two_racks: Workbench) -> None:
    group = two_racks.group("huge", min_count=9, topology=RACK).pods(9, cpu=2)
    group.stays_pending_because("nor all nodes have room for 9 pods")


@pytest.mark.parametrize("check", [check for _, check in plugin_checks(BestRack)])
def test_it_keeps_its_promises(check: Callable[[], None]) -> None:
    check()
