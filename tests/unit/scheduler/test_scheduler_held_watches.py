"""Decisions see what happened to nodes although their watch is not always read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from kubesched.client import held_watches
from kubesched.client.resources import NODES
from tests.support.embedded_scheduler import Harness, scheduler
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be read again just because time passes."""
    monkeypatch.setattr(held_watches, "HOLD_S", 3600.0)


def run(test: Callable[[Harness], Awaitable[None]], *, nodes: int) -> None:
    async def main() -> None:
        async with scheduler(nodes=nodes) as harness:
            await test(harness)

    asyncio.run(main())


async def _heartbeat(harness: Harness) -> None:
    """Let a node report something that changes nothing, which holds the watch."""
    beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    path = f"{NODES.item('node-0000')}/status"
    await harness.app.client.patch(path, {"status": {"conditions": [beat]}})
    await eventually(lambda: harness.app.engine.held_watches.is_holding)


async def _cordon(harness: Harness, name: str, *, on: bool = True) -> None:
    await harness.app.client.patch(NODES.item(name), {"spec": {"unschedulable": on}})


def test_a_decision_sees_what_came_while_the_watch_was_held() -> None:
    async def test(harness: Harness) -> None:
        for name in (f"p{number}" for number in range(8)):
            await _heartbeat(harness)
            await _cordon(harness, "node-0000")
            harness.create_pod(name)
            await eventually(partial(harness.node_of, name))
            assert harness.node_of(name) == "node-0001"
            await _cordon(harness, "node-0000", on=False)

    run(test, nodes=2)


def test_a_pod_that_waits_for_a_node_gets_it_at_once() -> None:
    async def test(harness: Harness) -> None:
        await _heartbeat(harness)
        await _cordon(harness, "node-0000")
        harness.create_pod("p")
        await eventually(lambda: "unschedulable" in harness.message("p"))
        assert not harness.app.engine.held_watches.is_holding
        await _cordon(harness, "node-0000", on=False)
        await eventually(lambda: harness.node_of("p"))

    run(test, nodes=1)
