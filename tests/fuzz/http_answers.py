"""Responses of API servers and extenders, as bytes of a connection."""

from __future__ import annotations

import asyncio
import math

from kubesched.client.connection import PooledConnection
from kubesched.client.status import error_from_answer, error_from_event, retry_after
from kubesched.client.stream import StreamConnection
from kubesched.errors import ApiError, ClientError
from tests.support.wire import Wire

from .http_requests import MARK
from .target import FuzzTarget, refused_with

_MAX_BODY_BYTES = 1000
_SOON_S = 5.0


def _ignore(_connection: object) -> None:
    pass


async def _receive(connection: PooledConnection | StreamConnection, data: bytes) -> None:
    for piece in data.split(MARK):
        if connection.closed:
            break
        connection.data_received(piece)
        await asyncio.sleep(0)
    if not connection.lost:
        connection.connection_lost(None)


async def _pooled(data: bytes) -> None:
    connection = PooledConnection("server:443", _ignore, max_body_bytes=_MAX_BODY_BYTES)
    connection.connection_made(Wire())
    deadline = asyncio.get_running_loop().time() + _SOON_S
    request = asyncio.ensure_future(connection.send(b"GET / HTTP/1.1\r\n\r\n", deadline))
    await asyncio.sleep(0)
    await _receive(connection, data)
    with refused_with(ClientError):
        response = await request
        assert len(response.body) <= _MAX_BODY_BYTES
        error = error_from_answer(
            response.status, response.body, what="GET /", header=response.header
        )
        _check(error)


async def _streamed(data: bytes) -> None:
    connection = StreamConnection("server:443", _ignore)
    connection.connection_made(Wire())
    opening = asyncio.ensure_future(connection.open(b"GET / HTTP/1.1\r\n\r\n", timeout_s=_SOON_S))
    await asyncio.sleep(0)
    await _receive(connection, data)
    with refused_with(ClientError):
        response = await opening
        response.header("content-type")
        async for _ in response:
            pass


def _check(error: ApiError) -> None:
    assert error.retry_after_s is None or 0 <= error.retry_after_s < math.inf
    assert isinstance(error.code, int)


def read(data: bytes) -> None:
    """A response is read, or refused with a ClientError; its body is limited."""
    with asyncio.Runner() as runner:
        runner.run(_pooled(data))
        runner.run(_streamed(data))


def read_status(data: bytes) -> None:
    """The body of a failure, or an ERROR event, becomes an exception with a text."""
    _check(error_from_answer(500, data, what="GET /", header=lambda _: None))
    _check(error_from_event(data))
    seconds = retry_after(data.decode("latin-1"))
    assert seconds is None or 0 <= seconds < math.inf


TARGETS = (
    FuzzTarget(
        name="http-answer",
        run=read,
        seeds=(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            (
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\n"
                b"Content-Length: 0\r\n\r\n"
            ),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"
            + MARK
            + b"0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
            (
                b"HTTP/1.1 500 No\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n"
                b"Content-Length: 41\r\n"
                b'\r\n{"message":"a","details":{"retryAfterSeconds":1}}'
            ),
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        ),
        words=(
            MARK,
            b"\r\n",
            b"HTTP/1.1 ",
            b"Content-Length: ",
            b"Transfer-Encoding: chunked\r\n",
            b"0\r\n\r\n",
            b"Connection: close\r\n",
            b"Retry-After: ",
            b"ffffffffffffffff\r\n",
        ),
        brief=300,
    ),
    FuzzTarget(
        name="status",
        run=read_status,
        seeds=(
            (
                b'{"kind":"Status","code":410,"reason":"Expired","message":"too old",'
                b'"details":{"retryAfterSeconds":5}}'
            ),
            b"upstream connect error",
            b"Wed, 21 Oct 2015 07:28:00 GMT",
            b"120",
        ),
        words=(b"-", b"1e400", b"nan", b"inf", b"+9999", b"0001", b"GMT", b"31 Dec 9999"),
        brief=800,
    ),
)
