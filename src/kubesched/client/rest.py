"""The API server's verbs: typed objects in and out, failures as exceptions.

get · post · put · patch · delete   one request, see requester.py
list_pages                          page by page, undecodable objects set aside
watch                               events as they arrive, see watch.py
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Self, TypeVar, overload
from urllib.parse import urlencode

import msgspec

from kubesched.api.decoding import decoder_of
from kubesched.client.access import ClusterAccess
from kubesched.client.connection import Response
from kubesched.client.limiter import RateLimiter
from kubesched.client.listing import ListPage, ListResponse, decode_list
from kubesched.client.meta import UNREADABLE, ApiObject, BadObject
from kubesched.client.requester import Requester, RequestObserver, RequestTracer
from kubesched.client.transport import JSON, Transport
from kubesched.client.watch import WatchDecoder, WatchStream
from kubesched.clock import Clock
from kubesched.errors import ClientError, GoneError

T = TypeVar("T")
ObjectT = TypeVar("ObjectT", bound=ApiObject)

#: Query parameters; None values are left out.
Params = Mapping[str, str | int | bool | None]

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_encode = msgspec.json.Encoder().encode


class ApiClient:
    """A client of one API server: connection pool, rate limit, and the verbs.

    ``body`` is JSON bytes, or anything msgspec can encode. Without ``type`` the response is not
    decoded: a binding, for one, is answered with a Status.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        qps: float = 0,
        burst: int = 1,
        user_agent: str = "kubesched",
        max_connections: int = 64,
        timeout_s: float = 30.0,
        clock: Clock | None = None,
        observer: RequestObserver | None = None,
        may_write: Callable[[], bool] | None = None,
        tracer: RequestTracer | None = None,
    ) -> None:
        """Create a client; `may_write` is called before every write."""
        #: address and credentials of the server
        self.access = access
        self._timeout_s = timeout_s
        self._transport = Transport(access, user_agent=user_agent, max_connections=max_connections)
        self._requester = Requester(
            access,
            self._transport,
            RateLimiter(qps, burst, clock=clock),
            observer=observer,
            may_write=may_write,
            tracer=tracer,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections; requests in flight fail."""
        await self._transport.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = JSON,
        params: Params | None = None,
        timeout_s: float | None = None,
        still_wanted: Callable[[], bool] | None = None,
    ) -> Response:
        """Send any request; a response that is not 2xx is raised as ApiError.

        `still_wanted` is called right before it is sent; WithdrawnError is raised if it returns
        False.
        """
        return await self._requester.request(
            method,
            with_query(path, params) if params else path,
            body=None if body is None else _to_bytes(body),
            content_type=content_type,
            timeout_s=timeout_s or self._timeout_s,
            still_wanted=still_wanted,
        )

    async def get(
        self,
        path: str,
        type: type[T],  # noqa: A002 - as in msgspec
        *,
        params: Params | None = None,
        timeout_s: float | None = None,
    ) -> T:
        """Read an object."""
        response = await self.request("GET", path, params=params, timeout_s=timeout_s)
        return _decode(response, type, what=f"GET {path}")

    @overload
    async def post(
        self,
        path: str,
        body: object,
        *,
        timeout_s: float | None = ...,
        still_wanted: Callable[[], bool] | None = ...,
    ) -> None: ...
    @overload
    async def post(
        self, path: str, body: object, *, type: type[T], timeout_s: float | None = ...
    ) -> T: ...
    async def post(
        self,
        path: str,
        body: object,
        *,
        type: type[T] | None = None,  # noqa: A002 - as in msgspec
        timeout_s: float | None = None,
        still_wanted: Callable[[], bool] | None = None,
    ) -> T | None:
        """Create an object, or call a subresource."""
        response = await self._requester.request(
            "POST",
            path,
            body=_to_bytes(body),
            timeout_s=timeout_s or self._timeout_s,
            still_wanted=still_wanted,
        )
        return None if type is None else _decode(response, type, what=f"POST {path}")

    @overload
    async def put(self, path: str, body: object, *, timeout_s: float | None = ...) -> None: ...
    @overload
    async def put(
        self, path: str, body: object, *, type: type[T], timeout_s: float | None = ...
    ) -> T: ...
    async def put(
        self,
        path: str,
        body: object,
        *,
        type: type[T] | None = None,  # noqa: A002 - as in msgspec
        timeout_s: float | None = None,
    ) -> T | None:
        """Replace an object."""
        response = await self._requester.request(
            "PUT", path, body=_to_bytes(body), timeout_s=timeout_s or self._timeout_s
        )
        return None if type is None else _decode(response, type, what=f"PUT {path}")

    @overload
    async def patch(
        self,
        path: str,
        body: object,
        *,
        content_type: str = ...,
        timeout_s: float | None = ...,
        still_wanted: Callable[[], bool] | None = ...,
    ) -> None: ...
    @overload
    async def patch(
        self,
        path: str,
        body: object,
        *,
        content_type: str = ...,
        type: type[T],
        timeout_s: float | None = ...,
        still_wanted: Callable[[], bool] | None = ...,
    ) -> T: ...
    async def patch(
        self,
        path: str,
        body: object,
        *,
        content_type: str = MERGE_PATCH,
        type: type[T] | None = None,  # noqa: A002 - as in msgspec
        timeout_s: float | None = None,
        still_wanted: Callable[[], bool] | None = None,
    ) -> T | None:
        """Change parts of an object."""
        response = await self.request(
            "PATCH",
            path,
            body=body,
            content_type=content_type,
            timeout_s=timeout_s,
            still_wanted=still_wanted,
        )
        return None if type is None else _decode(response, type, what=f"PATCH {path}")

    async def delete(
        self,
        path: str,
        body: object = None,
        *,
        timeout_s: float | None = None,
        still_wanted: Callable[[], bool] | None = None,
    ) -> None:
        """Delete an object; ``body`` are delete options, such as preconditions."""
        await self.request(
            "DELETE", path, body=body, timeout_s=timeout_s, still_wanted=still_wanted
        )

    async def list_pages(
        self,
        path: str,
        item_type: type[T],
        *,
        limit: int = 500,
        max_page_bytes: int = 16 << 20,
        resource_version: str | None = None,
        field_selector: str | None = None,
        label_selector: str | None = None,
        on_bad_object: Callable[[BadObject], None] | None = None,
    ) -> AsyncGenerator[ListPage[T], None]:
        """Yield a list in slices. If it expires midway, a new one follows, its start is ``first``.

        `limit` is the number of objects of the first request. Those of the next ones are as large
        as `max_page_bytes` allow: the API server goes through all objects behind a request's first
        one, so a list in small pages would cost it many times as much.
        """
        selection: dict[str, str | int | bool | None] = {
            "fieldSelector": field_selector or None,
            "labelSelector": label_selector or None,
        }
        start: Params = {**selection, "limit": limit, "resourceVersion": resource_version}
        first = True
        # The next page is requested while the caller handles the current one.
        coming = asyncio.ensure_future(self.request("GET", path, params=start))
        try:
            while True:
                try:
                    response = await coming
                except GoneError:
                    if first:
                        raise
                    whole = {**start, "limit": None}
                    coming = asyncio.ensure_future(self.request("GET", path, params=whole))
                    first = True
                    continue
                listed = _decode_list(response, what=f"GET {path}")
                next_page = listed.metadata.next_page
                if next_page:
                    # A continued list has its own version: naming one is an error.
                    query = {
                        **selection,
                        "limit": _next_limit(limit, response, listed, max_page_bytes),
                        "continue": next_page,
                    }
                    coming = asyncio.ensure_future(self.request("GET", path, params=query))
                for page in listed.pages(item_type, first=first):
                    if on_bad_object is not None:
                        for bad in page.bad:
                            on_bad_object(bad)
                    yield page
                if not next_page:
                    return
                first = False
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    @asynccontextmanager
    async def watch(
        self,
        path: str,
        item_type: type[ObjectT],
        *,
        resource_version: str,
        timeout_s: int,
        stall_timeout_s: float | None = None,
        field_selector: str | None = None,
        label_selector: str | None = None,
        extra: Params | None = None,
    ) -> AsyncIterator[WatchStream[ObjectT]]:
        """Watch changes after a version; the server ends the watch after ``timeout_s``."""
        query: Params = {
            "watch": True,
            "allowWatchBookmarks": True,
            "resourceVersion": resource_version,
            "timeoutSeconds": timeout_s,
            "fieldSelector": field_selector or None,
            "labelSelector": label_selector or None,
            **(extra or {}),
        }
        stall_timeout_s = timeout_s + 30.0 if stall_timeout_s is None else stall_timeout_s
        decoder = WatchDecoder(item_type, resource_version=resource_version)
        async with self._requester.stream(
            with_query(path, query), inactivity_timeout_s=stall_timeout_s
        ) as response:
            yield WatchStream(response, decoder)


def _to_bytes(body: object) -> bytes:
    return body if isinstance(body, bytes) else _encode(body)


def with_query(path: str, params: Params) -> str:
    """A path with its query."""
    pairs = [(key, _query_value(value)) for key, value in params.items() if value is not None]
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _query_value(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _decode(response: Response, object_type: type[T], *, what: str) -> T:
    try:
        return decoder_of(object_type).decode(response.body)
    except UNREADABLE as error:
        name = getattr(object_type, "__name__", str(object_type))
        raise ClientError(f"{what}: the answer is not a {name}: {error}") from error


def _decode_list(response: Response, *, what: str) -> ListResponse:
    try:
        return decode_list(response.body)
    except UNREADABLE as error:
        raise ClientError(f"{what}: the answer is not a list: {error}") from error


def _next_limit(limit: int, response: Response, listed: ListResponse, max_bytes: int) -> int:
    """Return how many objects fit into a page, if they are as large as those of the last one."""
    count = len(listed.items or ())
    return max(limit, max_bytes * count // len(response.body))
