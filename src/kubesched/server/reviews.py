"""Token reviews and subject access reviews, through the API server.

    token ──> cache ──> TokenReview ──────────────────────> User | None
    user, verb, path ──> cache ──> SubjectAccessReview ──> AccessVerdict

Results are cached for as long as the flags say. Concurrent lookups of a token share one request.
Failures are not cached, and retried a few times where that may help.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import random
import secrets
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import msgspec

from kubesched.api.meta import ApiStruct
from kubesched.client import resources
from kubesched.client.rest import ApiClient
from kubesched.clock import Clock
from kubesched.errors import ApiError, ClientError, RequestTimeoutError
from kubesched.server.expiring_cache import ExpiringCache
from kubesched.server.options import AuthorizationOptions
from kubesched.server.users import User

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]

TIMEOUT_S = 10.0
_PAUSES_S = (0.5, 0.75, 1.125, 1.6875)
_JITTER = 0.2
#: Response codes after which a retry may help.
_TRANSIENT = frozenset({429, 500, 504})
_TOKENS = 4096
_DECISIONS = 8192
#: Longer paths are not cached.
_LONGEST_CACHED_PATH = 10_000


class _TokenReviewSpec(ApiStruct, frozen=True):
    token: str = ""


class _TokenReviewStatus(ApiStruct, frozen=True):
    authenticated: bool = False
    user: User = User()
    error: str = ""


class _TokenReview(ApiStruct, frozen=True, omit_defaults=False):
    spec: _TokenReviewSpec
    api_version: str = "authentication.k8s.io/v1"
    kind: str = "TokenReview"


class _TokenReviewed(ApiStruct, frozen=True):
    status: _TokenReviewStatus = _TokenReviewStatus()


class _NonResourceAttributes(ApiStruct, frozen=True):
    path: str = ""
    verb: str = ""


class _AccessReviewSpec(ApiStruct, frozen=True):
    non_resource_attributes: _NonResourceAttributes
    user: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, tuple[str, ...]] | None = None


class _AccessReview(ApiStruct, frozen=True, omit_defaults=False):
    spec: _AccessReviewSpec
    api_version: str = "authorization.k8s.io/v1"
    kind: str = "SubjectAccessReview"


class AccessVerdict(ApiStruct, frozen=True):
    """The result of a SubjectAccessReview."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""


class _AccessReviewed(ApiStruct, frozen=True):
    status: AccessVerdict = AccessVerdict()


class TokenCacheObserver(Protocol):
    """Receives cache hits of tokens, and durations of lookups."""

    def on_answered(self, *, known: bool, duration_s: float) -> None:
        """A lookup of a token ended, with a result or an error."""

    def on_asked(self, *, ok: bool) -> None:
        """A request about a token ended; an error in its result counts, too."""

    def on_waiting(self, *, callers: int, questions: int) -> None:
        """So many callers wait now, for so many requests."""


class _NullReviewObserver:
    def on_answered(self, *, known: bool, duration_s: float) -> None:
        pass

    def on_asked(self, *, ok: bool) -> None:
        pass

    def on_waiting(self, *, callers: int, questions: int) -> None:
        pass


class TokenReviews:
    """Authenticates tokens."""

    def __init__(
        self,
        client: ApiClient,
        *,
        ttl_s: float,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
        observer: TokenCacheObserver | None = None,
    ) -> None:
        self._client = client
        self._ttl_s = ttl_s
        self._clock = clock
        self._sleep = sleep
        self._observer = observer or _NullReviewObserver()
        #: callers that wait for a result
        self._waiting = 0
        self._known: ExpiringCache[bytes, _TokenReviewStatus] = ExpiringCache(_TOKENS, clock)
        self._asking: dict[bytes, asyncio.Task[_TokenReviewStatus]] = {}
        # Only a hash of the token is cached.
        self._secret = secrets.token_bytes(32)

    async def user_of(self, token: str) -> User | None:
        """Return a token's user, None if it is invalid; raises ClientError if that is unknown."""
        started = self._clock.monotonic()
        key = hmac.digest(self._secret, token.encode(), hashlib.sha256)
        status = self._known.get(key)
        known = status is not None
        try:
            if status is None:
                status = await self._wait_for(key, token)
        finally:
            took_s = self._clock.monotonic() - started
            self._observer.on_answered(known=known, duration_s=took_s)
        if not status.authenticated:
            if status.error:
                raise ClientError(status.error)
            return None
        return status.user

    async def aclose(self) -> None:
        """Cancel pending requests."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _wait_for(self, key: bytes, token: str) -> _TokenReviewStatus:
        asking = self._ask_once(key, token)
        self._count_waiting(1)
        try:
            # The request goes on if this caller is cancelled: others may wait for it.
            return await asyncio.shield(asking)
        finally:
            self._count_waiting(-1)

    def _count_waiting(self, more: int) -> None:
        self._waiting += more
        self._observer.on_waiting(callers=self._waiting, questions=len(self._asking))

    def _ask_once(self, key: bytes, token: str) -> asyncio.Task[_TokenReviewStatus]:
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.create_task(self._ask(key, token))
            asking.add_done_callback(lambda _: self._asked(key))
        return asking

    def _asked(self, key: bytes) -> None:
        del self._asking[key]
        self._count_waiting(0)

    async def _ask(self, key: bytes, token: str) -> _TokenReviewStatus:
        path = resources.TOKEN_REVIEWS.collection()
        review = _TokenReview(spec=_TokenReviewSpec(token=token))

        async def post() -> _TokenReviewed:
            return await self._client.post(path, review, type=_TokenReviewed)

        ok = False
        try:
            status = (await _patiently(post, self._sleep)).status
            ok = not status.error
        finally:
            self._observer.on_asked(ok=ok)
        if ok:
            self._known.put(key, status, self._ttl_s)
        return status


class AccessReviews:
    """Authorizes users."""

    def __init__(
        self,
        client: ApiClient,
        options: AuthorizationOptions,
        *,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._client = client
        self._options = options
        self._sleep = sleep
        self._known: ExpiringCache[bytes, AccessVerdict] = ExpiringCache(_DECISIONS, clock)

    async def verdict(self, user: User, verb: str, path: str) -> AccessVerdict:
        """Return the API server's verdict; raises ClientError if there is none."""
        spec = _AccessReviewSpec(
            user=user.username,
            groups=user.groups,
            uid=user.uid,
            extra=user.extra,
            non_resource_attributes=_NonResourceAttributes(path=path, verb=verb),
        )
        key = msgspec.json.encode(spec)
        verdict = self._known.get(key)
        if verdict is None:
            verdict = await self._ask(spec)
            if len(path) + len(verb) < _LONGEST_CACHED_PATH:
                options = self._options
                ttl_s = options.allow_cache_ttl_s if verdict.allowed else options.deny_cache_ttl_s
                self._known.put(key, verdict, ttl_s)
        return verdict

    async def _ask(self, spec: _AccessReviewSpec) -> AccessVerdict:
        path = resources.SUBJECT_ACCESS_REVIEWS.collection()

        async def post() -> _AccessReviewed:
            return await self._client.post(path, _AccessReview(spec=spec), type=_AccessReviewed)

        return (await _patiently(post, self._sleep)).status


async def _patiently(ask: Callable[[], Awaitable[T]], sleep: Sleep) -> T:
    """Retry after a pause if the failure is temporary."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            for pause_s in _PAUSES_S:
                try:
                    return await ask()
                except ApiError as error:
                    if error.code not in _TRANSIENT:
                        raise
                await sleep(pause_s * random.uniform(1, 1 + _JITTER))  # noqa: S311 (jitter)
            return await ask()
    except TimeoutError:
        raise RequestTimeoutError(f"no review within {TIMEOUT_S:g} s") from None
