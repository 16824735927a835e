"""The HTTPS server: creates, starts and stops its parts.

    async with SecureServer(serving, authentication, authorization, sources):
        ...                                 # serves while this runs

start: certificates, authorities, socket ──> look up the cluster's authorities ──> serve
stop:  no new connections ──> requests in flight, 5 s at most ──> clients
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Self

import uvicorn

from kubesched import logs
from kubesched.clock import Clock, RealClock
from kubesched.errors import ConfigError
from kubesched.server.app import ServerApp
from kubesched.server.authentication import Authenticator
from kubesched.server.authorization import AllowedPaths, Authorizer
from kubesched.server.certificates import serving_pair
from kubesched.server.guest_server import GuestServer
from kubesched.server.listening import address_of, listen
from kubesched.server.options import AuthenticationOptions, AuthorizationOptions, ServingOptions
from kubesched.server.protocol import ServingProtocol
from kubesched.server.review_client import review_client
from kubesched.server.reviews import AccessReviews, TokenReviews
from kubesched.server.routes import Routes
from kubesched.server.sources import Sources
from kubesched.server.tls_front import NamedPair, TlsFront
from kubesched.server.tls_settings import TlsSettings
from kubesched.server.trust import Trust, TrustKeeper

_log, _lines = logging.getLogger(__name__), logs.get_logger(__name__)

GRACE_S = 5
_KEEP_ALIVE_S = 90
_RELOAD_PERIOD_S = 1.0
_NO_LOOKUP = (
    "No authentication-kubeconfig provided in order to lookup %s in "
    "configmap/extension-apiserver-authentication in kube-system, so %s won't work."
)


class SecureServer:
    """The endpoints on their port; an async context manager.

    The constructor reads all files and opens the port; raises ConfigError if that fails. With port
    0, and no socket given, it serves nothing.
    """

    def __init__(
        self,
        serving: ServingOptions,
        authentication: AuthenticationOptions,
        authorization: AuthorizationOptions,
        sources: Sources,
        *,
        clock: Clock | None = None,
        listener: socket.socket | None = None,
        reload_period_s: float = _RELOAD_PERIOD_S,
    ) -> None:
        """``listener`` is an open socket to use instead of the options' address."""
        self._parts: _ServerParts | None = None
        self._reload_period_s = reload_period_s
        self._tasks: list[asyncio.Task[None]] = []
        self._serving: asyncio.Task[None] | None = None
        self._server: GuestServer | None = None
        if serving.secure_port != 0 or listener is not None:
            self._parts = _ServerParts(
                serving,
                authentication,
                authorization,
                sources,
                clock=clock or RealClock(),
                listener=listener,
            )

    @property
    def port(self) -> int:
        """The port, 0 if it does not listen."""
        return int(self._parts.listener.getsockname()[1]) if self._parts else 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start serving; raises ClientError if the lookup of authorities fails and must not."""
        parts = self._parts
        if parts is None:
            return
        try:
            await parts.trust.look_up()
        except BaseException:
            await parts.aclose()
            raise
        self._tasks = [
            _eternal("certificate reload", lambda: self._reload(parts)),
            _eternal("certificate authorities", parts.trust.follow),
        ]
        self._server = GuestServer(_uvicorn_config(parts))
        self._serving = asyncio.create_task(self._server.serve(sockets=[parts.listener]))
        await _first_of(self._server.listening.wait(), self._serving)
        host, port = parts.listener.getsockname()[:2]
        _log.info("Serving securely on %s:%d", f"[{host}]" if ":" in host else host, port)

    async def stop(self) -> None:
        """Let requests in flight finish, for a few seconds; then close everything."""
        parts, server, serving = self._parts, self._server, self._serving
        if parts is None:
            return
        self._parts = self._server = self._serving = None
        parts.routes.profiler.stop()
        if server is not None and serving is not None:
            server.stopping.set()
            await serving
            _lines.info("[graceful-termination] secure server has stopped listening")
            await server.end_connections()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await parts.aclose()
        _lines.info("[graceful-termination] secure server is exiting")

    async def _reload(self, parts: _ServerParts) -> None:
        while True:
            await asyncio.sleep(self._reload_period_s)
            parts.tls.reload()
            parts.trust.reload()


class _ServerParts:
    """The parts of a server."""

    def __init__(
        self,
        serving: ServingOptions,
        authentication: AuthenticationOptions,
        authorization: AuthorizationOptions,
        sources: Sources,
        *,
        clock: Clock,
        listener: socket.socket | None,
    ) -> None:
        own_address = address_of(serving)
        allowed_paths = AllowedPaths(authorization.always_allow_paths)
        self.tls = TlsFront(
            TlsSettings.of(serving),
            serving_pair(serving),
            [NamedPair(each) for each in serving.tls_sni_cert_key],
            own_address=str(own_address or ""),
        )
        observe = sources.observe_requests
        asks_who = review_client(
            authentication.kubeconfig, purpose="authentication", observe=observe
        )
        may_they = review_client(authorization.kubeconfig, purpose="authorization", observe=observe)
        self._clients = [each for each in (asks_who, may_they) if each is not None]
        _warn(authentication, asks_who is not None, may_they is not None)
        self.trust = TrustKeeper(authentication, asks_who, on_change=self._on_trust)
        self.tls.trust(self.trust.current.pem)
        reviews = None
        self._tokens: TokenReviews | None = None
        if asks_who is not None:
            ttl_s = authentication.token_cache_ttl_s
            self._tokens = TokenReviews(
                asks_who, ttl_s=ttl_s, clock=clock, observer=sources.observe_tokens
            )
        if may_they is not None:
            reviews = AccessReviews(may_they, authorization, clock=clock)
        self.routes = Routes(sources, started=process_started(), clock=clock)
        self.app = ServerApp(
            self.routes,
            Authenticator(lambda: self.trust.current, self._tokens, clock=clock),
            Authorizer(allowed_paths, reviews),
            sources.observe_callers,
        )
        self.listener = listener or listen(serving)

    def _on_trust(self, trust: Trust) -> None:
        try:
            self.tls.trust(trust.pem)
        except ConfigError as error:
            _log.error("%s; those before stay in use", error)

    async def aclose(self) -> None:
        """Close the parts."""
        self.listener.close()
        if self._tokens is not None:
            await self._tokens.aclose()
        for client in self._clients:
            await client.aclose()


def _uvicorn_config(parts: _ServerParts) -> uvicorn.Config:
    config = uvicorn.Config(
        parts.app,
        http=ServingProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,  # set by the loop that is replaced; the app sends it
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    config.load()
    config.ssl = parts.tls.context
    return config


async def _first_of(event: Coroutine[Any, Any, object], task: asyncio.Task[None]) -> None:
    """Wait for an event, or raise the failure of the task that should set it."""
    waiting = asyncio.create_task(event)
    await asyncio.wait((waiting, task), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        await task


def _warn(options: AuthenticationOptions, asks_who: bool, may_they: bool) -> None:
    """Warn about features that do not work without a kubeconfig."""
    if not asks_who and not options.skip_lookup:
        if not options.client_ca_file:
            _log.warning(_NO_LOOKUP, "client-ca-file", "client certificate authentication")
        if not options.requestheader_client_ca_file:
            what = "request-header client certificate authentication"
            _log.warning(_NO_LOOKUP, "requestheader-client-ca-file", what)
    if not may_they:
        _log.warning(
            "No authorization-kubeconfig provided, "
            "so SubjectAccessReview of authorization tokens won't work."
        )


def process_started() -> float:
    """Return when this process started, in seconds since the epoch; now, if unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        lines = Path("/proc/stat").read_text().splitlines()
        booted = next(line for line in lines if line.startswith("btime "))
        # The 22nd field, counted from 1; the first two are before the bracket.
        return int(booted.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.time()


def _eternal(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
    """Start a task that should not fail; log it if it does."""

    async def guarded() -> None:
        try:
            await work()
        except Exception:  # noqa: BLE001 (the server goes on without it; logged)
            _log.exception("the server's %s stopped working", name)

    return asyncio.create_task(guarded(), name=name)
