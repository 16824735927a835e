"""Drivers that only pretend: nodes with their labels have devices."""

from __future__ import annotations

import asyncio

from kubesched.embedded import EmbeddedCluster, NodeTemplate, SimulatedDriver
from kubesched.embedded.drivers import SLICES
from kubesched.embedded.resources import NODES
from tests.support.waiting import eventually

DRIVER = SimulatedDriver("gpu.example.com", {"pool": "gpu"}, [{"name": "gpu-0"}, {"name": "gpu-1"}])


def test_a_slice_is_published_for_each_node_with_the_labels() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(drivers=[DRIVER]) as cluster:
            slices = cluster.store.collection(SLICES)
            cluster.add_nodes(2, NodeTemplate(labels={"pool": "general"}))
            (name,) = cluster.add_nodes(1, NodeTemplate(labels={"pool": "gpu"}))
            await eventually(lambda: len(slices) == 1)

            (published,) = slices.versions()
            spec = published.obj["spec"]
            assert (spec["driver"], spec["nodeName"]) == ("gpu.example.com", name)
            assert spec["pool"] == {"name": name, "generation": 1, "resourceSliceCount": 1}
            assert [device["name"] for device in spec["devices"]] == ["gpu-0", "gpu-1"]

            node = cluster.store.get(NODES, name)
            assert node is not None
            cluster.store.remove(NODES, node)
            await eventually(lambda: not len(slices))

    asyncio.run(scenario())
