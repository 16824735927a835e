"""What a watch missed is told from what it saw."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.client.access import ClusterAccess
from kubesched.clock import VirtualClock
from kubesched.errors import ClientError
from kubesched.shadow.attention import Attention, WatchOnlyClient

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def attention(clock: VirtualClock) -> Attention:
    looking = Attention(clock.monotonic)
    looking.opens(PODS, "100")
    looking.opens(NODES, "100")
    return looking


def test_events_from_before_the_watch_were_missed(attention: Attention) -> None:
    assert not attention.saw(PODS, "100")
    assert attention.saw(PODS, "101")
    assert attention.open_watches == 2


def test_after_a_pause_events_up_to_the_newest_version_were_missed(
    attention: Attention, clock: VirtualClock
) -> None:
    attention.shuts(PODS)
    clock.advance(0.1)
    attention.opens(PODS, "120")

    assert not attention.saw(PODS, "115")
    assert attention.saw(PODS, "121")


def test_while_another_watch_is_shut_for_long_the_state_may_be_behind(
    attention: Attention, clock: VirtualClock
) -> None:
    attention.shuts(NODES)
    clock.advance(0.5)
    assert attention.saw(PODS, "101"), "a short pause is no longer than news take anyway"

    clock.advance(1.0)
    assert not attention.saw(PODS, "102")

    attention.opens(NODES, "110")
    assert not attention.saw(PODS, "103"), "what was missed is still on its way"
    clock.advance(1.1)
    assert attention.saw(PODS, "104")


def test_a_watch_that_fails_to_open_stays_shut_since_it_was_shut(
    attention: Attention, clock: VirtualClock
) -> None:
    attention.shuts(NODES)
    clock.advance(0.9)
    attention.shuts(NODES)
    clock.advance(0.9)

    assert not attention.saw(PODS, "101")
    assert attention.open_watches == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_client_sends_nothing_but_get(method: str) -> None:
    async def write() -> None:
        access = ClusterAccess.plain("http://127.0.0.1:1")
        async with WatchOnlyClient(access, user_agent="test", timer=lambda: 0.0) as client:
            await client.request(method, "/api/v1/nodes/n", body=b"{}")

    with pytest.raises(ClientError, match="not"):
        asyncio.run(write())
