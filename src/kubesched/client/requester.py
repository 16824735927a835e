"""One request with everything that can come between: rate limit, credentials, come-back-later.

    request ──limiter──> credentials ──> transport ──> 2xx: Response
                ^             ^                          401: other credentials, once more
                └─────────────┴────── wait ──────────────429, 5xx with Retry-After: again

All of it, except the wait for the rate limit, happens within the request's time-out.
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

#: Retries of an answer with Retry-After, as in client-go.
_MAX_RETRIES = 10


class RequestObserver(Protocol):
    """Hears of every answer, e.g. to count them."""

    def on_answer(
        self, method: str, code: int, duration_s: float | None, *, sizes: tuple[int, int] = (0, 0)
    ) -> None:
        """An answer came after that long; code 0: none came, duration None: it goes on coming.

        `sizes` are those of what was sent and of what came, in bytes.
        """

    def on_limited(self, method: str, waited_s: float) -> None:
        """The rate limiter lets a request go after that long."""


class _Identity(NamedTuple):
    """As whom a request is sent."""

    authorization: str | None
    #: of the credentials: which client certificate
    generation: int


class Requester:
    """Sends requests until there is an answer to be had."""

    def __init__(
        self,
        access: ClusterAccess,
        transport: Transport,
        limiter: RateLimiter,
        *,
        observer: RequestObserver | None = None,
        may_write: Callable[[], bool] | None = None,
    ) -> None:
        #: asked before every request that changes something; None: always
        self._may_write = may_write
        self._credentials = access.credentials
        #: as whom the last request was sent
        self._identity = _Identity(None, access.credentials.generation)
        self._transport = transport
        self._limiter = limiter
        self._observer = observer
        #: the line made of it
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
        """The answer with a 2xx status; others are raised as ApiError.

        A refusal may not be the last word: sign in again, or come back later. A request may wait
        for its turn for seconds: `still_wanted` is asked right before it leaves, each time, and
        WithdrawnError raised if it says no.
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
        """Take one of the turns that the rate limit gives; return how long to wait for it."""
        if self._limiter.unlimited:
            return 0.0
        delay_s = self._limiter.reserve()
        if self._observer is not None:
            self._observer.on_limited(method, delay_s)
        return delay_s

    def _check_may_send(self, method: str, path: str) -> None:
        """Raise NotLeadingError for what must not be sent; nothing is awaited in between."""
        if self._may_write is not None and method != "GET" and not self._may_write():
            what = request_name(method, path)
            raise NotLeadingError(f"{what}: not sent, another replica may be in charge by now")

    async def _come_back(
        self, method: str, path: str, response: Response, deadline: float, retries: int
    ) -> bool:
        """Wait as long as the server asks for; False if it does not, or there is no time."""
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

    async def _sign_in_again(self, refused: _Identity) -> bool:
        """Whether there are other credentials to try than those that were refused."""
        if self._identity == refused:  # else another request has found better ones meanwhile
            if not self._credentials.invalidate(refused.authorization):
                return False
            await self._authorize()
        return self._identity != refused

    @asynccontextmanager
    async def stream(
        self, path: str, *, inactivity_timeout_s: float
    ) -> AsyncIterator[StreamResponse]:
        """An answer that is read while it comes; not rate limited, as watches are not."""
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
        """The Authorization header line; new connections after a new client certificate."""
        value = await self._credentials.authorization_header()
        generation = self._credentials.generation
        before = self._identity
        if value != before.authorization or generation != before.generation:
            self._identity = _Identity(value, generation)
            self._authorization_line = f"Authorization: {value}\r\n" if value else ""
            if generation != before.generation:
                self._transport.renew()
        return self._authorization_line


def _delay(response: Response, retries: int, *, time_left_s: float) -> float | None:
    """How long the server asked to wait, None if it did not or there is no time for it."""
    if response.status != 429 and response.status < 500:
        return None
    delay_s = retry_after(response.header("Retry-After"))
    if delay_s is None or delay_s >= time_left_s or retries >= _MAX_RETRIES:
        return None
    return delay_s
