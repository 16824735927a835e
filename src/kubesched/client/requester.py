"""One request with its rate limit, credentials and retries.

    request ──limiter──> credentials ──> transport ──> 2xx: Response
                ^             ^                          401: other credentials, once more
                └─────────────┴────── wait ──────────────429, 5xx with Retry-After: retry

The request's timeout covers everything except the wait for the rate limit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol

from kubesched.client.access import ClusterAccess
from kubesched.client.connection import Response
from kubesched.client.limiter import RateLimiter
from kubesched.client.status import error_from_answer, retry_after
from kubesched.client.stream import StreamResponse
from kubesched.client.transport import JSON, Transport, request_name
from kubesched.errors import NotLeadingError, WithdrawnError

_log = logging.getLogger(__name__)

#: Retries after a response with Retry-After, as in client-go.
_MAX_RETRIES = 10


class RequestObserver(Protocol):
    """Receives every response, e.g. to count it."""

    def on_answer(
        self, method: str, code: int, duration_s: float | None, *, sizes: tuple[int, int] = (0, 0)
    ) -> None:
        """Handle a response; code 0: there was none, duration None: it is a stream.

        `sizes` are those of the request and of the response, in bytes.
        """

    def on_limited(self, method: str, waited_s: float) -> None:
        """Handle the end of a wait for the rate limiter."""


class SentRequest(Protocol):
    """A request that is traced."""

    @property
    def header(self) -> str:
        """A header line for it."""

    def end(self, code: int) -> None:
        """Record the end; code 0: there was no answer."""


class RequestTracer(Protocol):
    """Traces requests."""

    def begin_request(self, method: str, path: str) -> SentRequest | None:
        """Begin the trace of a request, or return None."""


class _Credentials(NamedTuple):
    """The credentials of a request."""

    authorization: str | None
    #: generation of the credentials, i.e. of the client certificate
    generation: int


class Requester:
    """Sends requests, with retries."""

    def __init__(
        self,
        access: ClusterAccess,
        transport: Transport,
        limiter: RateLimiter,
        *,
        observer: RequestObserver | None = None,
        may_write: Callable[[], bool] | None = None,
        tracer: RequestTracer | None = None,
    ) -> None:
        #: None: nothing is traced
        self._tracer = tracer
        #: called before every write; None: always allowed
        self._may_write = may_write
        self._credentials = access.credentials
        #: the credentials of the last request
        self._identity = _Credentials(None, access.credentials.generation)
        self._transport = transport
        self._limiter = limiter
        self._observer = observer
        #: the header line for them
        self._authorization_line = ""

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_s: float,
        still_wanted: Callable[[], bool] | None = None,
    ) -> Response:
        """Return a 2xx response; others are raised as ApiError.

        A 401 is retried with new credentials, a Retry-After after a wait. A request may wait for
        seconds: `still_wanted` is called right before each time it is sent, and WithdrawnError
        raised if it returns False.
        """
        if delay_s := self._take_turn(method):
            await self._limiter.wait(delay_s)
        deadline = time.monotonic() + timeout_s
        retries, may_sign_in = 0, True
        while True:
            headers = await self._authorize()
            self._check_may_send(method, path)
            if still_wanted is not None and not still_wanted():
                self._limiter.give_back()
                raise WithdrawnError(f"{request_name(method, path)}: not sent, no longer wanted")
            identity = self._identity
            response: Response | None = None
            traced = None if self._tracer is None else self._tracer.begin_request(method, path)
            if traced is not None:
                headers += traced.header
            started = time.monotonic()
            try:
                response = await self._transport.request(
                    method,
                    path,
                    body=body,
                    content_type=content_type,
                    timeout_s=timeout_s,
                    headers=headers,
                )
            finally:
                if traced is not None:
                    traced.end(0 if response is None else response.status)
                if self._observer is not None:
                    sent, code, received = len(body or b""), 0, 0
                    if response is not None:
                        code, received = response.status, len(response.body)
                    took_s = time.monotonic() - started
                    self._observer.on_answer(method, code, took_s, sizes=(sent, received))
            if response.status < 300:
                return response
            if response.status == 401 and may_sign_in:
                may_sign_in = False
                again = await self._sign_in_again(identity)
            else:
                again = await self._come_back(method, path, response, deadline, retries)
                retries += 1
            if not again:
                raise error_from_answer(
                    response.status,
                    response.body,
                    what=request_name(method, path),
                    header=response.header,
                )
            timeout_s = deadline - time.monotonic()

    def _take_turn(self, method: str) -> float:
        """Reserve a token of the rate limit; return how long to wait for it."""
        if self._limiter.unlimited:
            return 0.0
        delay_s = self._limiter.reserve()
        if self._observer is not None:
            self._observer.on_limited(method, delay_s)
        return delay_s

    def _check_may_send(self, method: str, path: str) -> None:
        """Raise NotLeadingError for a write that must not be sent; no ``await`` in between."""
        if self._may_write is not None and method != "GET" and not self._may_write():
            what = request_name(method, path)
            raise NotLeadingError(f"{what}: not sent, another replica may be the leader by now")

    async def _come_back(
        self, method: str, path: str, response: Response, deadline: float, retries: int
    ) -> bool:
        """Wait as long as the server asks for; False if it does not ask, or there is no time."""
        delay_s = _delay(response, retries, time_left_s=deadline - time.monotonic())
        if delay_s is None:
            return False
        _log.debug(
            "%s: %d, trying again in %g s (retry %d of %d)",
            request_name(method, path),
            response.status,
            delay_s,
            retries + 1,
            _MAX_RETRIES,
        )
        await asyncio.sleep(delay_s)
        if turn_s := self._take_turn(method):
            await self._limiter.wait(turn_s)
        return True

    async def _sign_in_again(self, refused: _Credentials) -> bool:
        """Return whether there are other credentials than the rejected ones."""
        if self._identity == refused:  # else another request renewed them meanwhile
            if not self._credentials.invalidate(refused.authorization):
                return False
            await self._authorize()
        return self._identity != refused

    @asynccontextmanager
    async def stream(
        self, path: str, *, inactivity_timeout_s: float
    ) -> AsyncIterator[StreamResponse]:
        """Open a streaming response; not rate limited, as watches are not."""
        headers = await self._authorize()
        identity = self._identity
        async with self._transport.stream(
            "GET", path, headers=headers, inactivity_timeout_s=inactivity_timeout_s
        ) as response:
            if self._observer is not None:
                self._observer.on_answer("GET", response.status, None)
            if response.status >= 300:
                if response.status == 401 and self._identity == identity:
                    self._credentials.invalidate(identity.authorization)
                what = request_name("GET", path)
                body = await response.read()
                raise error_from_answer(response.status, body, what=what, header=response.header)
            yield response

    async def _authorize(self) -> str:
        """Return the Authorization header line; a new client certificate renews the connections."""
        value = await self._credentials.authorization_header()
        generation = self._credentials.generation
        before = self._identity
        if value != before.authorization or generation != before.generation:
            self._identity = _Credentials(value, generation)
            self._authorization_line = f"Authorization: {value}\r\n" if value else ""
            if generation != before.generation:
                self._transport.renew()
        return self._authorization_line


def _delay(response: Response, retries: int, *, time_left_s: float) -> float | None:
    """Return the server's Retry-After, None if there is none or no time for it."""
    if response.status != 429 and response.status < 500:
        return None
    delay_s = retry_after(response.header("Retry-After"))
    if delay_s is None or delay_s >= time_left_s or retries >= _MAX_RETRIES:
        return None
    return delay_s
