"""The page on loopback, and requests to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from kubesched.web.local import LOOPBACK, LocalServer
from kubesched.web.page import WebPage
from kubesched.web.streams import Streams
from kubesched.web.world_state import WorldState
from tests.support.objects import node, pod
from tests.support.worlds import world_of

from .harness import living


@dataclass(frozen=True)
class Reply:
    """What came back."""

    code: int
    headers: dict[str, str]
    body: str


@dataclass(frozen=True)
class Target:
    """A running server."""

    server: LocalServer
    streams: Streams

    @property
    def token(self) -> str:
        return self.server.url.partition("token=")[2]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(LOOPBACK, self.server.port)

    async def ask(
        self, target: str, method: str = "GET", *, body: bytes = b"", **headers: str
    ) -> Reply:
        """Make one request over a connection of its own."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"Host": f"{LOOPBACK}:{self.server.port}", "Connection": "close", **named}
        if body:
            sent["Content-Length"] = str(len(body))
        lines = [f"{method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in sent.items())]
        reader, writer = await self.connect()
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            return parse(await reader.read())
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def enter(self) -> str:
        """Open the printed address; return the cookie."""
        reply = await self.ask(f"/ui/?token={self.token}")
        assert reply.code == 303
        return reply.headers["set-cookie"].partition(";")[0]


def parse(received: bytes) -> Reply:
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return Reply(int(first.split(" ")[1]), {k: v for k, _, v in pairs}, body.decode())


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[Target]:
    world = world_of(node("secret-node"), pod("waiting", cpu="9"))
    source = living(WorldState(world))
    streams = Streams(source)
    async with LocalServer(WebPage(source, streams=streams)) as server:
        yield Target(server, streams)
