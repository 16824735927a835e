"""What the tests of the web page are made with: a page of a few objects, asked without a socket.

async with asked(page_of(node("n1"), pod("p"))) as ask:
    reply = await ask("/ui/api/overview")
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from kubesched.api.core import Node, Pod
from kubesched.clock import VirtualClock
from kubesched.server.answers import ServerAnswer
from kubesched.server.request import ServerRequest
from kubesched.snapshot.world import World
from kubesched.web.page import WebPage
from kubesched.web.rates import Rates, RateSample
from kubesched.web.source import LiveSource, SnapshotSource, Source
from kubesched.web.state import PageState
from kubesched.web.world_state import WorldState
from tests.support.worlds import world_of

NOW = 1_800_000_000.0
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Reply:
    """What came back."""

    answer: ServerAnswer

    @property
    def code(self) -> int:
        return self.answer.code

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.answer.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])

    @property
    def headers(self) -> dict[str, str]:
        return dict(self.answer.headers)


class Ask(Protocol):
    """Asks a page something."""

    def __call__(
        self,
        target: str,
        method: str = "GET",
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        gone: asyncio.Event | None = None,
    ) -> Awaitable[Reply]: ...


def request(
    target: str,
    method: str = "GET",
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    gone: asyncio.Event | None = None,
) -> ServerRequest:
    """A request whose client stays until it is `gone`."""
    path, _, query = target.partition("?")
    sent = {"Host": "127.0.0.1:1", **(headers or {})}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(k.lower().encode(), v.encode()) for k, v in sent.items()],
    }
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop(0)
        await (gone or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    return ServerRequest(scope, receive)


def still(world: World) -> Source:
    """A snapshot to be shown."""
    return SnapshotSource(
        WorldState(world), title="test", taken_at=NOW, scheduler_names=world.frameworks
    )


def living(state: PageState) -> Source:
    """A cluster that may change."""
    clock = VirtualClock(NOW)
    return LiveSource(
        "cluster",
        state,
        Rates(clock, lambda at: RateSample(at, 0)),
        clock=clock,
        title=lambda: "test",
        scheduler_names=lambda: ["default-scheduler"],
        stale=lambda: None,
    )


def page_of(*objects: Node | Pod) -> WebPage:
    """A page of a snapshot."""
    return WebPage(still(world_of(*objects)))


@asynccontextmanager
async def asked(page: WebPage) -> AsyncIterator[Ask]:
    """Open a page."""

    async def ask(target: str, method: str = "GET", **rest: Any) -> Reply:
        return Reply(await page.answer(request(target, method, **rest)))

    async with page:
        yield ask
