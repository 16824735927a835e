"""PackGpus, on nodes of eight GPUs."""

from __future__ import annotations

from kubesched.cluster.node_rows import NodeRows
from kubesched.testing import Workbench

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


def test_one_node_is_scored_as_all_are(cluster: Workbench) -> None:
    cluster.use(PackGpus)
    cluster.nodes(3, resources={GPU: 8})
    cluster.node("none")
    for used in range(1, 9):
        cluster.pod(resources={GPU: 1 if used % 2 else 2}, node=f"n{used % 3 + 1}")
    plugin, table = cluster.framework.plugins.instances["PackGpus"], cluster.cluster.table
    assert isinstance(plugin, PackGpus)

    for wanted in (1, 3, 9):
        pod = cluster.cluster.compiler.pending(cluster.pod(resources={GPU: wanted}).object)
        one = plugin.row_scorer(pod.shape, table)
        assert one is not None
        scores = plugin.score(pod.shape, NodeRows.all_of(table))
        assert [one(row) for row in range(table.size)] == scores.tolist()
