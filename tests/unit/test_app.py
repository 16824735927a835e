"""In which order a scheduler starts, and what becomes of what another configuration replaces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubesched.app import App
from kubesched.client.access import ClusterAccess
from kubesched.config.features import FeatureGates
from kubesched.config.types import Extender, SchedulerConfiguration
from kubesched.embedded.cluster import EmbeddedCluster
from tests.support.servers import Exchange, Script, ScriptedServer, answer
from tests.support.waiting import eventually, settle

JsonObject = dict[str, Any]

CONFIG = SchedulerConfiguration.default(FeatureGates.of({}))


class Turn:
    """Our turn, which a test lets come."""

    def __init__(self) -> None:
        self.asked = 0
        self.has_come = asyncio.Event()

    async def __call__(self) -> None:
        self.asked += 1
        await self.has_come.wait()


@asynccontextmanager
async def waiting(*, delays_cache: bool) -> AsyncIterator[tuple[App, Turn]]:
    """A scheduler that waits for its turn."""
    config = replace(CONFIG, delay_cache_until_active=delays_cache)
    async with EmbeddedCluster() as cluster:
        cluster.add_nodes(3)
        app, turn = App(config, FeatureGates.of({}), ClusterAccess.plain(cluster.url)), Turn()
        running = asyncio.create_task(app.run(turn))
        try:
            await eventually(lambda: turn.asked)
            yield app, turn
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(("delays_cache", "known"), [(False, 3), (True, 0)])
def test_what_is_known_before_our_turn(delays_cache: bool, known: int) -> None:
    async def main() -> None:
        async with waiting(delays_cache=delays_cache) as (app, turn):
            await eventually(lambda: len(app.cluster.table) >= known)
            await asyncio.sleep(0.3)  # time enough for informers that should not run
            assert len(app.cluster.table) == known
            assert not app.started.is_set()
            turn.has_come.set()
            await asyncio.wait_for(app.started.wait(), 20)
            assert len(app.cluster.table) == 3

    asyncio.run(main())


@pytest.mark.parametrize("delays_cache", [False, True])
def test_a_turn_is_waited_for_once_whatever_another_configuration_says(delays_cache: bool) -> None:
    async def main() -> None:
        async with waiting(delays_cache=delays_cache) as (app, turn):
            app.reconfigure(replace(CONFIG, delay_cache_until_active=not delays_cache))
            turn.has_come.set()
            await asyncio.wait_for(app.started.wait(), 20)
            assert turn.asked == 1

    asyncio.run(main())


# --- extenders of the configuration before ----------------------------------------------------


def extending(server: ScriptedServer) -> SchedulerConfiguration:
    extender = Extender(
        url_prefix=server.url,
        filter_verb="filter",
        prioritize_verb="prioritize",
        bind_verb="bind",
        weight=1,
        node_cache_capable=True,
    )
    return replace(CONFIG, extenders=(extender,))


@asynccontextmanager
async def scheduling(config: SchedulerConfiguration) -> AsyncIterator[tuple[App, EmbeddedCluster]]:
    """A scheduler at work."""
    async with EmbeddedCluster() as cluster:
        cluster.add_nodes(2)
        app = App(config, FeatureGates.of({}), ClusterAccess.plain(cluster.url))
        running = asyncio.create_task(app.run())
        try:
            await asyncio.wait_for(app.started.wait(), 20)
            yield app, cluster
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def test_extenders_are_closed_after_a_reload_once_no_pod_in_flight_needs_them() -> None:
    async def main() -> None:
        arrived, proceed = asyncio.Event(), asyncio.Event()

        async def slowly(exchange: Exchange) -> bytes:
            arrived.set()
            await proceed.wait()
            return answer({"NodeNames": msgspec.json.decode(exchange.body)["NodeNames"]})

        script = Script().on("POST", "/filter", slowly).on("POST", "/prioritize", answer(b"[]"))
        async with (
            ScriptedServer(script) as server,
            scheduling(extending(server)) as (app, cluster),
        ):
            cluster.create(a_pod("waits"))
            await arrived.wait()
            app.reconfigure(CONFIG)
            await settle()
            assert server.open_connections == 1, "an answer is waited for"
            proceed.set()
            await eventually(lambda: bool(bound_node(app, "waits")))
            asked = [exchange.path for exchange in server.requests]
            assert asked == ["/filter", "/prioritize"], "the cycle ends as it began"
            await eventually(lambda: server.open_connections == 0)

    asyncio.run(main())


def test_extenders_that_stay_in_use_stay_open() -> None:
    async def main() -> None:
        script = Script().on("POST", "/filter", answer({"NodeNames": []}))
        async with ScriptedServer(script) as server:
            config = extending(server)
            async with scheduling(config) as (app, cluster):
                cluster.create(a_pod("unlucky"))
                await eventually(lambda: server.requests)
                before = len(server.requests)  # the queue check may have tried it again
                app.reconfigure(config)
                # The connection of the one before is closed; that of the new one is made and kept.
                await eventually(
                    lambda: len(server.requests) > before and server.open_connections == 1
                )

    asyncio.run(main())


def a_pod(name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]},
    }


def bound_node(app: App, name: str) -> str:
    pod = app.find_pod("default", name)
    return pod.spec.node_name if pod is not None else ""
