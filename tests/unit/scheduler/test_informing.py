"""Informers of all kinds fill the cluster from an API server."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kubesched.app import App
from kubesched.client.access import ClusterAccess
from kubesched.config import loading
from kubesched.config.features import FeatureGates
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.kinds import KINDS, stores, watched
from tests.support.minimal_objects import MINIMAL

#: Its plugin enables the watch of a kind.
COSCHEDULING = Path(__file__).parents[3] / "deploy/coscheduling/scheduler.yaml"
#: All kinds are read, those of alpha features too.
GATES = FeatureGates.of(
    {
        "GenericWorkload": True,
        "TopologyAwareWorkloadScheduling": True,
        "CompositePodGroup": True,
    }
)


def test_informers_fill_the_stores_of_all_kinds() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(run_kubelet=False) as server:
            for name, required in MINIMAL.items():
                path = KINDS[name].path
                called = KINDS[name].called
                head = {"apiVersion": path.api_version, "kind": called, "metadata": {"name": "x"}}
                server.create({**head, **required})
            config = loading.decode(COSCHEDULING.read_text(), str(COSCHEDULING), gates=GATES)
            app = App(config, GATES, ClusterAccess.plain(server.url))
            async with app.client:
                tasks = [asyncio.create_task(each.run()) for each in app.informers.all]
                try:
                    async with asyncio.timeout(10):
                        await app.informers.wait_until_synced()
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
        kinds = watched(GATES, ["Coscheduling"])
        assert [each.kind for each in app.informers.all] == [kind.name for kind in kinds]
        for kind, store in stores(app.cluster):
            found = [each for each in store if each.metadata.name == "x"]
            assert [type(each) for each in found] == [kind.type]
        assert len(app.cluster.table) == 1
        assert [each.info.pod.metadata.name for each in app.queue.pods()] == ["x"]

    asyncio.run(scenario())
