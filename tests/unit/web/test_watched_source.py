"""A live cluster that somebody else schedules, seen by a page that never writes."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.client.access import ClusterAccess
from kubesched.client.rest import ApiClient
from kubesched.clock import RealClock
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.plugins.in_tree import IN_TREE
from kubesched.web import freshness
from kubesched.web.living_world import Rules
from kubesched.web.page import WebPage
from kubesched.web.times import rfc3339
from kubesched.web.watched_source import watched_source
from tests.support.waiting import eventually

from .conftest import Run
from .harness import asked

GATES = FeatureGates.of({})
RULES = Rules(SchedulerConfiguration.default(GATES), GATES, IN_TREE)


def pod(name: str, *, node: str = "", scheduler: str = "default-scheduler") -> dict[str, object]:
    container = {"name": "a", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], "nodeName": node, "schedulerName": scheduler}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def bind(access: ClusterAccess, name: str, node: str) -> None:
    """Place a pod, as another scheduler does."""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"kind": "Node", "name": node},
    }
    async with ApiClient(access) as client:
        await client.post(f"/api/v1/namespaces/default/pods/{name}/binding", binding)


def test_a_cluster_is_shown_as_its_api_server_tells(run_once: Run) -> None:
    async def main() -> None:
        async with EmbeddedCluster() as cluster:
            (first, _) = cluster.add_nodes(2)
            cluster.create(pod("placed", node=first))
            cluster.create(pod("waiting"))
            cluster.create(pod("others", scheduler="somebody-else"))
            access = ClusterAccess.plain(cluster.url)
            watched, source = watched_source(access, RULES, clock=RealClock())
            watching = asyncio.create_task(watched.run())
            await watched.synced.wait()
            async with asked(WebPage(source)) as ask:
                overview = (await ask("/ui/api/overview")).json
                assert overview["source"] == "cluster"
                assert overview["nodes"] == 2
                assert (overview["pods"]["placed"], overview["pods"]["active"]) == (1, 1)
                assert overview["pods"]["unclaimed"] == 1
                assert overview["latency"] == {"p50Ms": None, "p99Ms": None}

                cluster.create(pod("late", node=first))
                await eventually(lambda: watched.cluster.pod_count == 2)
                node = (await ask(f"/ui/api/nodes/{first}")).json
                assert {each["name"] for each in node["pods"]} == {"placed", "late"}

                told = (await ask("/ui/api/pods/default/others/explanation")).json
                assert told["outcome"] == "Unclaimed"
                assert "no profile is named somebody-else" in told["message"]
                assert watched.cluster.pod_count == 2
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    run_once(main())


def test_pods_that_get_a_node_are_the_rate(run_once: Run) -> None:
    async def main() -> None:
        async with EmbeddedCluster() as cluster:
            (first,) = cluster.add_nodes(1)
            cluster.create(pod("waiting"))
            access = ClusterAccess.plain(cluster.url)
            watched, source = watched_source(access, RULES, clock=RealClock())
            watching = asyncio.create_task(watched.run())
            await watched.synced.wait()
            state = await source.state(None)
            running = asyncio.create_task(source.run())
            await asyncio.sleep(0)
            await bind(access, "waiting", first)
            await eventually(lambda: max(source.rate(state).history) > 0)
            for task in (running, watching):
                task.cancel()
            await asyncio.gather(running, watching, return_exceptions=True)

    run_once(main())


def test_a_server_that_is_gone_makes_the_picture_stale_until_it_is_back(run_once: Run) -> None:
    async def main() -> None:
        async with EmbeddedCluster() as cluster:
            cluster.add_nodes(2)
            port, access = cluster.port, ClusterAccess.plain(cluster.url)
            watched, source = watched_source(access, RULES, clock=RealClock())
            watching = asyncio.create_task(watched.run())
            await watched.synced.wait()
            assert source.stale() is None
            before = rfc3339(RealClock().time())
        async with asked(WebPage(source)) as ask:

            def cannot_connect() -> bool:
                stale = source.stale()
                return stale is not None and f"127.0.0.1:{port}" in stale.why

            await eventually(cannot_connect)
            told = (await ask("/ui/api/overview")).json
            assert before <= told["stale"]["since"] <= told["time"]
            # What was known is still shown.
            assert told["nodes"] == 2

            async with EmbeddedCluster(port=port) as cluster:
                cluster.add_nodes(3)
                await eventually(lambda: source.stale() is None)
                await eventually(lambda: len(watched.cluster.table) == 3)
                assert (await ask("/ui/api/overview")).json["stale"] is None
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    run_once(main())


def test_a_server_that_is_only_silent_is_noticed(
    run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No connection breaks, as behind a network that drops everything."""
    monkeypatch.setattr(freshness, "ANSWER_WITHIN_S", 0.05)
    monkeypatch.setattr(freshness, "PROBE_EVERY_S", 0.01)

    class Silent:
        answers = asyncio.Event()

        async def request(self, *_: object, **__: object) -> None:
            await self.answers.wait()

    async def main() -> None:
        client = Silent()
        client.answers.set()
        fresh = freshness.Freshness(list, RealClock())
        probing = asyncio.create_task(fresh.probe(client))  # type: ignore[arg-type]  # enough of one
        await asyncio.sleep(0)
        assert fresh.stale() is None

        client.answers.clear()
        await eventually(lambda: fresh.stale() is not None)
        stale = fresh.stale()
        assert stale is not None
        assert stale.why.startswith("no answer within")

        client.answers.set()
        await eventually(lambda: fresh.stale() is None)
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)

    run_once(main())


def test_placements_of_another_scheduler_are_graded_by_our_profiles(run_once: Run) -> None:
    async def main() -> None:
        async with EmbeddedCluster() as cluster:
            (first, second) = cluster.add_nodes(2)
            cluster.create(pod("placed", node=first))
            cluster.create(pod("well"))
            cluster.create(pod("tied"))
            cluster.create(pod("worse"))
            access = ClusterAccess.plain(cluster.url)
            watched, source = watched_source(access, RULES, clock=RealClock())
            watching = asyncio.create_task(watched.run())
            await watched.synced.wait()
            async with asked(WebPage(source)) as ask:
                await bind(access, "well", second)
                await eventually(lambda: watched.cluster.pod_count == 2)
                await bind(access, "tied", first)
                await eventually(lambda: watched.cluster.pod_count == 3)

                told = (await ask("/ui/api/decisions")).json["decisions"]
                grades = {each["name"]: each["grade"] for each in told}
                assert grades["well"]["better"] == 0
                assert grades["well"]["margin"] > 0
                assert (grades["tied"]["equal"], grades["tied"]["margin"]) == (1, 0)
                await bind(access, "worse", first)
                await eventually(lambda: watched.cluster.pod_count == 4)
                told = (await ask("/ui/api/decisions")).json["decisions"]
                assert told[0]["grade"]["better"] == 1
                assert told[0]["grade"]["margin"] < 0
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    run_once(main())
