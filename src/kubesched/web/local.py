"""Serves the page on loopback, to users who have its token.

    GET /ui/?token=…  ──>  a cookie, and a redirect to /ui/
    anything else     ──>  the cookie, or 401; and Host must be this address

Other users of the machine, and pages of other sites in the same browser, can connect to loopback,
too. The token keeps out the former. The latter have neither token nor cookie, which is never sent
cross-site; and a foreign name that resolves to 127.0.0.1 is not an allowed Host.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import logging
import secrets
import socket
from collections.abc import Iterator
from typing import Final, Self

import uvicorn
from msgspec.structs import replace

from kubesched.errors import UsageError
from kubesched.server.answers import ServerAnswer
from kubesched.server.app import send_answer
from kubesched.server.guest_server import GuestServer
from kubesched.server.protocol import ServingProtocol
from kubesched.server.request import Receive, Scope, Send, ServerRequest
from kubesched.web.page import HEADERS, WebPage
from kubesched.web.problems import PREFIX, for_reader, problem

_log = logging.getLogger(__name__)

LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 128
_GRACE_S: Final = 2


class Door:
    """The ASGI application: requires the token."""

    def __init__(self, page: WebPage, port: int) -> None:
        self._page = page
        self.token = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        # Cookies are shared by all ports of a host.
        self._cookie = f"kubesched-{port}"
        self._hosts = {f"{host}:{port}" for host in (LOOPBACK, "localhost", "[::1]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        request = ServerRequest(scope, receive)
        try:
            answer = await self._answer(request)
        except asyncio.CancelledError:
            answer = problem("the server is shutting down", 503)
        except Exception:  # noqa: BLE001 (a bug must not close the connection)
            _log.exception("%s %r failed", request.method, request.path)
            answer = problem("this failed unexpectedly: the terminal says more", 500)
        if not any(name == "content-security-policy" for name, _ in answer.headers):
            answer = replace(for_reader(request, answer), headers=(*HEADERS, *answer.headers))
        try:
            await send_answer(send, answer, bodiless=request.method == "HEAD")
        except asyncio.CancelledError:
            # The server stops. Without a proper end, the client knows that the response is
            # incomplete.
            return
        except TimeoutError:
            request.hang_up()

    async def _answer(self, request: ServerRequest) -> ServerAnswer:
        if request.header("host").lower() not in self._hosts:
            return problem("this address is served by another name", 421)
        if request.path == PREFIX and request.query.get("token"):
            return self._enter(request)
        if not self._is_known(request):
            message = "open the address that the command printed: it holds the token"
            return problem(message, 401)
        if request.path == "/":
            return ServerAnswer(code=303, headers=(("location", PREFIX),))
        if request.path == "/ui" or request.path.startswith(PREFIX):
            return await self._page.answer(request)
        return problem(f"there is nothing at {request.path}", 404)

    def _enter(self, request: ServerRequest) -> ServerAnswer:
        if request.method != "GET" or not _same(request.query["token"][0], self.token):
            return problem("this is not the token of this page: it was started anew", 401)
        cookie = f"{self._cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict"
        headers = (("set-cookie", cookie),)
        if request.header("sec-fetch-site") == "cross-site":
            # The browser would not send the cookie on a redirect from another site's link.
            return ServerAnswer(headers=(*headers, ("refresh", f"0; url={PREFIX}")))
        return ServerAnswer(code=303, headers=(*headers, ("location", PREFIX)))

    def _is_known(self, request: ServerRequest) -> bool:
        scheme, _, token = request.header("authorization").partition(" ")
        if scheme.lower() == "bearer" and _same(token, self.token):
            return True
        return any(
            _same(shown, self._session)
            for header in request.header_values("cookie")
            for shown in _cookies(header, self._cookie)
        )


def _same(shown: str, known: str) -> bool:
    return hmac.compare_digest(shown.encode(), known.encode())


def _cookies(header: str, name: str) -> Iterator[str]:
    for pair in header.split(";"):
        key, _, value = pair.strip().partition("=")
        if key == name:
            yield value


class LocalServer:
    """Serves a page on loopback; an async context manager."""

    def __init__(self, page: WebPage, *, port: int = 0) -> None:
        """Bind the port, 0 for any free one; raises UsageError if it is not available."""
        self._page = page
        self._listener = _listen(port)
        self.port = int(self._listener.getsockname()[1])
        self._door = Door(page, self.port)
        self._server = GuestServer(_config(self._door))
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address to open, with the token."""
        return f"http://{LOOPBACK}:{self.port}{PREFIX}?token={self._door.token}"

    async def __aenter__(self) -> Self:
        await self._page.__aenter__()
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        await self._server.listening.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._page.__aexit__()
        self._server.stopping.set()
        if self._serving is not None:
            await self._serving
        await self._server.end_connections()
        self._listener.close()


def _config(door: Door) -> uvicorn.Config:
    return uvicorn.Config(
        door,
        http=ServingProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=90,
        timeout_graceful_shutdown=_GRACE_S,
    )


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except (OSError, OverflowError) as failed:
        listener.close()
        in_use = isinstance(failed, OSError) and failed.errno == errno.EADDRINUSE
        why = "the port is in use" if in_use else str(failed).rstrip(".")
        raise UsageError(
            f"cannot serve the page on {LOOPBACK}:{port}: {why}; choose another port"
        ) from None
    return listener
