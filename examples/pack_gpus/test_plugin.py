"""PackGpus, on nodes of eight GPUs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubesched.testing import Workbench, make_node, make_pod, plugin_checks

from .plugin import PackGpus

GPU = "nvidia.com/gpu"


def test_gpus_are_filled_up_node_by_node(cluster: Workbench) -> None:
    cluster.use(PackGpus, weight=10)
    cluster.nodes(3, cpu=64, resources={GPU: 8})

    placements = cluster.schedule(cluster.pods(8, cpu=1, resources={GPU: 2}))

    assert sorted(placements.per_node.values()) == [8 // 2, 8 // 2]


def test_without_it_they_would_be_spread(cluster: Workbench) -> None:
    cluster.nodes(3, cpu=64, resources={GPU: 8})

    placements = cluster.schedule(cluster.pods(6, cpu=1, resources={GPU: 2}))

    assert len(placements.per_node) == 3


def test_a_node_in_use_wins_over_an_empty_one(cluster: Workbench) -> None:
    cluster.use(PackGpus, weight=10)
    cluster.nodes(2, cpu=64, resources={GPU: 8})
    cluster.pod(cpu=32, resources={GPU: 4}, node="n2")

    cluster.pod(cpu=1, resources={GPU: 1}).lands_on("n2")


def test_it_has_no_say_about_other_pods(cluster: Workbench) -> None:
    cluster.use(PackGpus, weight=10)
    cluster.nodes(2, cpu=64, resources={GPU: 8})
    cluster.pod(cpu=32, resources={GPU: 4}, node="n2")

    placement = cluster.pod(cpu=1).lands_on("n1")

    assert "PackGpus" not in {each.plugin for each in placement.scores}


def test_the_resource_can_be_another_one(cluster: Workbench) -> None:
    cluster.use(PackGpus, weight=10, args={"resource": "example.com/fpga"})
    cluster.nodes(2, cpu=64, resources={"example.com/fpga": 8})
    cluster.pod(cpu=32, resources={"example.com/fpga": 4}, node="n2")

    cluster.pod(cpu=1, resources={"example.com/fpga": 1}).lands_on("n2")


CHECKS = plugin_checks(
    PackGpus,
    nodes=[make_node("eight", cpu=64, resources={GPU: 8}), make_node("two", resources={GPU: 2})],
    pods=[make_pod("one", resources={GPU: 1}), make_pod("four", resources={GPU: 4})],
)


@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in CHECKS])
def test_it_keeps_its_promises(check: Callable[[], None]) -> None:
    check()
