"""The ASGI application: every request passes the same filters before its endpoint.

request ──> authentication ──> authorization ──> endpoint ──> response
                 401                403           404, …      an exception anywhere: 500, and logged
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from email.utils import formatdate

from kubesched.go_text import quoted
from kubesched.server import answers
from kubesched.server.answers import ServerAnswer
from kubesched.server.authentication import AuthenticationFailure, Authenticator
from kubesched.server.authorization import AccessDecision, Authorizer
from kubesched.server.request import Receive, Scope, Send, ServerRequest
from kubesched.server.routes import Routes
from kubesched.server.sources import CallerObserver
from kubesched.server.users import User

_log = logging.getLogger(__name__)

_CACHE_CONTROL = (b"cache-control", b"no-cache, private")
#: A client that does not read a chunk within this time is disconnected.
_STALL_TIMEOUT_S = 60.0


class ServerApp:
    """Authenticates, authorizes and answers."""

    def __init__(
        self,
        routes: Routes,
        authenticator: Authenticator,
        authorizer: Authorizer,
        observer: CallerObserver | None = None,
    ) -> None:
        self._routes = routes
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._observer = observer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        began = time.perf_counter()
        request = ServerRequest(scope, receive)
        answer = await self._answer_or_apology(request)
        try:
            await send_answer(send, answer, bodiless=request.method == "HEAD")
        except asyncio.CancelledError:
            # The server stops. Without a proper end, the client knows that the response is
            # incomplete.
            return
        except TimeoutError:
            _log.debug("%s %s: the client takes nothing", request.method, quoted(request.path))
            request.hang_up()
            return
        except Exception:  # noqa: BLE001 (the response has already begun)
            _log.exception("%s %s failed half-way", request.method, quoted(request.path))
        _log.debug(
            '"HTTP" verb="%s" URI=%s latency="%.3fms" userAgent=%s contentType=%s '
            'srcIP="%s" resp=%d',
            request.method,
            quoted(request.uri),
            (time.perf_counter() - began) * 1000,
            quoted(request.header("user-agent")),
            quoted(request.header("content-type")),
            request.client,
            answer.code,
        )

    async def _answer_or_apology(self, request: ServerRequest) -> ServerAnswer:
        try:
            return await self._answer(request)
        except asyncio.CancelledError:
            # Only the server's shutdown cancels a request.
            return answers.plain_error("the server is shutting down", 503)
        except Exception:  # noqa: BLE001 (a bug must not close the connection)
            _log.exception("%s %s failed", request.method, quoted(request.path))
            message = "This request caused an error in the server. Look in the logs for details."
            return answers.plain_error(message, 500)

    async def _answer(self, request: ServerRequest) -> ServerAnswer:
        user = await self._authenticate(request)
        if isinstance(user, AuthenticationFailure):
            _log.error("Unable to authenticate the request: %s", user.reason)
            return answers.unauthorized(request)
        verb = request.method.lower()
        decision = await self._decide(user, verb, request.path)
        if decision.allowed:
            return await self._routes.answer(request)
        if decision.failure:
            # The caller has no permissions so far, so it must not see the reason.
            _log.error("cannot authorize %s %s: %s", verb, quoted(request.path), decision.failure)
            return answers.plain_error(_undecided(request), 500)
        return answers.forbidden(request, _refused(user.username, verb, request, decision.reason))

    async def _authenticate(self, request: ServerRequest) -> User | AuthenticationFailure:
        began = time.perf_counter()
        user = await self._authenticator.authenticate(request)
        if self._observer is not None:
            name = "" if isinstance(user, AuthenticationFailure) else user.username
            self._observer.on_authenticated(name, duration_s=time.perf_counter() - began)
        return user

    async def _decide(self, user: User, verb: str, path: str) -> AccessDecision:
        began = time.perf_counter()
        decision = await self._authorizer.decide(user, verb, path)
        if self._observer is not None:
            self._observer.on_authorized(
                allowed=decision.allowed,
                failed=bool(decision.failure),
                duration_s=time.perf_counter() - began,
            )
        return decision


def _undecided(request: ServerRequest) -> str:
    uri = quoted(request.uri)
    return answers.harmless(f"Internal Server Error: {uri}: the authorization cannot be checked")


def _refused(name: str, verb: str, request: ServerRequest, reason: str) -> str:
    what = answers.harmless(f"User {quoted(name)} cannot {verb} path {quoted(request.path)}")
    return f"forbidden: {what}" + (f": {reason}" if reason else "")


async def send_answer(send: Send, answer: ServerAnswer, *, bodiless: bool) -> None:
    """Send a response; stream the rest as fast as the client reads."""
    own = {name for name, _ in answer.headers}
    headers = [
        (b"date", formatdate(usegmt=True).encode("ascii")),
        *(() if "cache-control" in own else (_CACHE_CONTROL,)),
        (b"content-type", answer.content_type.encode("latin-1")),
        *((name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers),
    ]
    if answer.pieces is None:
        headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.code, "headers": headers})
    if answer.pieces is not None and not bodiless:
        await _send_pieces(send, answer.pieces)
    await send({"type": "http.response.body", "body": answer.body})


async def _send_pieces(send: Send, pieces: AsyncIterator[bytes]) -> None:
    try:
        async for piece in pieces:
            async with asyncio.timeout(_STALL_TIMEOUT_S):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        # The producer of chunks must learn immediately that the client is gone.
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
