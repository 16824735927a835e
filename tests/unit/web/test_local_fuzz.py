"""Whatever comes over a socket, the page stays up, answers what it can, and says no more."""

from __future__ import annotations

import asyncio
import contextlib
import random

from kubesched.web.local import LOOPBACK
from tests.support.event_loops import Run

from .local_page import Target, served

ROUNDS = 150
PIECES = (
    b"GET ",
    b"POST ",
    b"/ui/",
    b"/ui/api/",
    b"overview",
    b"nodes/%2F%00",
    b"pods/%2e%2e/%ff/explanation",
    b"what-if",
    b"stream",
    b"?at=9999999999999999999999&limit=-1",
    b"?token=",
    b" HTTP/1.1\r\n",
    b"\r\n",
    b"\r\n\r\n",
    b"Host: 127.0.0.1\r\n",
    b"Content-Length: 10\r\n",
    b"Content-Length: -1\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Type: application/json\r\n",
    b"Cookie: a=b; ;;=\r\n",
    b"{",
    b"\xff\xfe",
    b"\0",
    b"x" * 70_000,
)


def test_noise_does_no_harm(run_once: Run) -> None:
    rng = random.Random(7)

    async def main() -> None:
        async with served() as target:
            for _ in range(ROUNDS):
                noise = b"".join(rng.choices(PIECES, k=rng.randint(1, 12)))
                if rng.random() < 0.5:
                    noise = _authorized(target) + noise
                await _shout(target, noise)
            reply = await target.ask("/ui/api/overview", Authorization=f"Bearer {target.token}")
            assert reply.code == 200

    run_once(main())


def _authorized(target: Target) -> bytes:
    """The beginning of a request of somebody who may."""
    return (
        f"GET /ui/api/nodes HTTP/1.1\r\nHost: {LOOPBACK}:{target.server.port}\r\n"
        f"Authorization: Bearer {target.token}\r\n"
    ).encode()


async def _shout(target: Target, noise: bytes) -> None:
    reader, writer = await target.connect()
    try:
        with contextlib.suppress(OSError):
            writer.write(noise)
            writer.write_eof()
            async with asyncio.timeout(5):
                received = await reader.read()
            assert b"Traceback" not in received
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def test_a_body_that_does_not_come_is_not_waited_for_at_the_end(run_once: Run) -> None:
    async def main() -> None:
        async with served() as target:
            _, writer = await target.connect()
            writer.write(
                f"POST /ui/api/what-if HTTP/1.1\r\nHost: {LOOPBACK}:{target.server.port}\r\n"
                f"Authorization: Bearer {target.token}\r\nContent-Type: application/json\r\n"
                "Content-Length: 100\r\n\r\n{".encode()
            )
            await asyncio.sleep(0.1)  # the server waits for the rest of the body by then
            reply = await target.ask("/ui/api/overview", Authorization=f"Bearer {target.token}")
            assert reply.code == 200
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    run_once(main())
