"""In which order a scheduler starts: it waits for its turn once, as its configuration says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from kubesched.app import App
from kubesched.client.access import ClusterAccess
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.embedded.cluster import EmbeddedCluster

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
            async with asyncio.timeout(5):
                while not turn.asked:  # noqa: ASYNC110 (nobody tells us)
                    await asyncio.sleep(0.001)
            yield app, turn
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(("delays_cache", "known"), [(False, 3), (True, 0)])
def test_what_is_known_before_our_turn(delays_cache: bool, known: int) -> None:
    async def main() -> None:
        async with waiting(delays_cache=delays_cache) as (app, turn):
            await asyncio.sleep(0.3)
            assert len(app.cluster.table) == known
            assert not app.started.is_set()
            turn.has_come.set()
            await asyncio.wait_for(app.started.wait(), 5)
            assert len(app.cluster.table) == 3

    asyncio.run(main())


@pytest.mark.parametrize("delays_cache", [False, True])
def test_a_turn_is_waited_for_once_whatever_another_configuration_says(delays_cache: bool) -> None:
    async def main() -> None:
        async with waiting(delays_cache=delays_cache) as (app, turn):
            app.reconfigure(replace(CONFIG, delay_cache_until_active=not delays_cache))
            turn.has_come.set()
            await asyncio.wait_for(app.started.wait(), 5)
            assert turn.asked == 1

    asyncio.run(main())
