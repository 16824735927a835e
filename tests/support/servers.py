"""Small HTTP/1.1 servers on loopback that do exactly what a test tells them.

A ``ScriptedServer`` reads requests and asks the test's handler for each answer: bytes to send,
or None if the handler did something of its own with the connection (hang up, reset, be silent).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import msgspec

from kubesched.client.access import ClusterAccess, Server
from tests.support.waiting import settle

JsonObject = dict[str, Any]


class Exchange:
    """One request, and the connection that it came on."""

    def __init__(
        self,
        head: bytes,
        body: bytes,
        writer: asyncio.StreamWriter,
        *,
        connection: int,
        number: int,
    ) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = first.split(" ")
        pairs = [line.split(": ", 1) for line in lines if line]
        self.header_list = [(name.lower(), value) for name, value in pairs]
        self.headers = dict(self.header_list)
        self.body = body
        self.writer = writer
        #: which connection, counted from 0
        self.connection = connection
        #: which request on this connection, counted from 0
        self.number = number

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {key: values[0] for key, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def hang_up(self) -> None:
        """Close in peace: FIN."""
        self.writer.close()

    def reset(self) -> None:
        """Close in anger: RST."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def half_close(self) -> None:
        """Close our direction only."""
        self.writer.write_eof()


Handler = Callable[[Exchange], Awaitable[bytes | None]]


def answer(
    body: bytes | str | JsonObject = b"{}",
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> bytes:
    """A complete answer with a length."""
    if isinstance(body, dict):
        body = msgspec.json.encode(body)
    elif isinstance(body, str):
        body = body.encode()
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def failure(code: int, reason: str, message: str, **headers: str) -> bytes:
    """A Status, as the API server sends it when it refuses."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    spelled = {name.replace("_", "-"): value for name, value in headers.items()}
    return answer(status, status=code, headers=spelled)


CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event_line(event_type: str, obj: JsonObject) -> bytes:
    """A line of a watch."""
    return msgspec.json.encode({"type": event_type, "object": obj}) + b"\n"


class ScriptedServer:
    """Listens on loopback; every request is remembered and given to the handler."""

    def __init__(self, handler: Handler, *, tls: ssl.SSLContext | None = None) -> None:
        self._handler = handler
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams: set[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = set()
        self.requests: list[Exchange] = []
        #: connections that were made, and those that are still there
        self.connections = 0
        self.port = 0

    @property
    def open_connections(self) -> int:
        return sum(
            not (reader.at_eof() or reader.exception() or writer.is_closing())
            for reader, writer in self._streams
        )

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    @property
    def access(self) -> ClusterAccess:
        return ClusterAccess.plain(self.url)

    def tls_access(self, context: ssl.SSLContext, **fields: Any) -> ClusterAccess:
        server = Server.parse(self.url, where="test")
        return ClusterAccess(server=server, ssl_context=context, **fields)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self._tls, limit=1 << 24
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop listening and cut all connections."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for _, writer in self._streams:
            writer.transport.abort()
        await self._server.wait_closed()
        await settle()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._streams.add((reader, writer))
        connection = self.connections
        self.connections += 1
        try:
            await self._converse(reader, writer, connection)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        except asyncio.CancelledError:
            pass  # stop(): the stream machinery would log the cancellation as an error
        finally:
            self._tasks.discard(task)
            self._streams.discard((reader, writer))
            writer.close()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        number = 0
        while not writer.is_closing():
            head = await reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.split(b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            body = await reader.readexactly(length)
            exchange = Exchange(head[:-4], body, writer, connection=connection, number=number)
            number += 1
            self.requests.append(exchange)
            data = await self._handler(exchange)
            if data is not None:
                await exchange.send(data)


class Script:
    """A handler that gives fixed answers by method and path, the last one again and again."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], list[bytes | Handler]] = {}

    def on(self, method: str, path: str, *answers: bytes | Handler) -> Self:
        self._answers[method, path] = list(answers)
        return self

    async def __call__(self, exchange: Exchange) -> bytes | None:
        answers = self._answers.get((exchange.method, exchange.path))
        if not answers:
            return answer("404 page not found", status=404)
        chosen = answers.pop(0) if len(answers) > 1 else answers[0]
        return chosen if isinstance(chosen, bytes) else await chosen(exchange)


def watch_answer(*pieces: bytes | float, hold: bool = False) -> Handler:
    """A chunked answer: bytes are sent as chunks, numbers are pauses in seconds."""

    async def serve(exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD)
        for piece in pieces:
            if isinstance(piece, bytes):
                await exchange.send(chunk(piece))
            else:
                await asyncio.sleep(piece)
        if hold:
            await asyncio.sleep(3600)
        await exchange.send(LAST_CHUNK)

    return serve


def splits(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Cut data at the given places."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in itertools.pairwise(places)]
