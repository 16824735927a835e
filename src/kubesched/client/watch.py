"""Decodes the bytes of a watch to events.

    b'{"type":"ADDED","object":{…}}\\n{"ty' ──feed──> WatchEvent · Bookmark · BadObject
                                                     ERROR raises: GoneError means list again

Sans-IO: ``WatchDecoder`` takes chunks that are cut anywhere. An object that cannot be decoded
becomes a ``BadObject`` and the watch goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Generic, Self, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from kubesched.api.decoding import decoder_of
from kubesched.client.meta import UNREADABLE, ApiObject, BadObject
from kubesched.client.status import error_from_event
from kubesched.client.stream import StreamResponse

T = TypeVar("T", bound=ApiObject)

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"
_OBJECT_EVENTS = frozenset({ADDED, MODIFIED, DELETED})

#: Longest event; objects are at most a few MiB.
MAX_LINE_BYTES = 64 << 20

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchEvent(Struct, Generic[T], frozen=True, gc=False):
    """One change: ADDED, MODIFIED or DELETED, and the new object."""

    type: str
    object: T


class Bookmark(Struct, frozen=True, gc=False):
    """Nothing changed up to this resource version."""

    resource_version: str
    #: whether it ends the initial events
    initial_events_end: bool = False


class _RawEvent(Struct, frozen=True, gc=False):
    type: str
    object: Raw


class _BookmarkMeta(Struct, frozen=True, gc=False, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _BookmarkObject(Struct, frozen=True, gc=False):
    metadata: _BookmarkMeta


_decode_raw_event = msgspec.json.Decoder(_RawEvent).decode
_decode_bookmark = decoder_of(_BookmarkObject).decode


def describe_bad_object(raw: bytes | Raw, error: Exception, *, event_type: str = "") -> BadObject:
    """Return as much of an undecodable object's identity as possible."""
    try:
        tree = msgspec.json.decode(raw)
    except UNREADABLE:
        tree = None
    metadata = tree.get("metadata") if isinstance(tree, dict) else None

    def text(table: Any, key: str) -> str:  # noqa: ANN401 - arbitrary JSON
        value = table.get(key) if isinstance(table, dict) else None
        return value if isinstance(value, str) else ""

    return BadObject(
        event_type=event_type,
        kind=text(tree, "kind"),
        namespace=text(metadata, "namespace"),
        name=text(metadata, "name"),
        resource_version=text(metadata, "resourceVersion"),
        error=str(error),
    )


@cache
def _event_decoder(object_type: type[T]) -> msgspec.json.Decoder[WatchEvent[T]]:
    """Return a cached decoder per type: a watch lasts minutes, and another follows.

    It decodes the event and its object in one pass, a third faster than in two.
    """
    event_type = cast("type[WatchEvent[T]]", WatchEvent[object_type])  # type: ignore[valid-type]  # a type made at run time
    return msgspec.json.Decoder(event_type)


class WatchDecoder(Generic[T]):
    """Splits chunks into lines and decodes them; tracks the resource version."""

    def __init__(
        self,
        object_type: type[T],
        *,
        resource_version: str = "",
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        #: where the next watch would continue
        self.resource_version = resource_version
        self._max_line_bytes = max_line_bytes
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._skipping = False
        self._decode = _event_decoder(object_type).decode
        self._decode_object = decoder_of(object_type).decode

    def feed(self, chunk: bytes) -> Iterator[WatchEvent[T] | Bookmark | BadObject]:
        """Yield the events completed by this chunk; raises the ApiError of an ERROR event."""
        first, *others = chunk.split(b"\n")
        if not others:
            yield from self._keep(first)
            return
        others.insert(0, self._join(first))
        rest = others.pop()
        for line in others:
            if line and not line.isspace():
                yield self._event(line)
        yield from self._keep(rest)

    def _keep(self, piece: bytes) -> Iterator[BadObject]:
        """Buffer an incomplete line, unless it is too long for an event."""
        if not piece or self._skipping:
            return
        self._pending.append(piece)
        self._pending_bytes += len(piece)
        if self._pending_bytes > self._max_line_bytes:
            self._skipping = True
            self._pending.clear()
            self._pending_bytes = 0
            yield BadObject(error=f"an event longer than {self._max_line_bytes} bytes was skipped")

    def _join(self, end: bytes) -> bytes:
        """Return the line that ends with this piece, b"" if it is being skipped."""
        if self._skipping:
            self._skipping = False
            return b""
        if not self._pending:
            return end
        self._pending.append(end)
        line = b"".join(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        return line

    def _event(self, line: bytes) -> WatchEvent[T] | Bookmark | BadObject:
        try:
            event = self._decode(line)
        except UNREADABLE:
            return self._special_event(line)
        if event.type not in _OBJECT_EVENTS:
            return self._special_event(line)
        return self._noted(event)

    def _noted(self, event: WatchEvent[T]) -> WatchEvent[T]:
        self.resource_version = event.object.metadata.resource_version
        return event

    def _special_event(self, line: bytes) -> WatchEvent[T] | Bookmark | BadObject:
        """Decode bookmarks, errors, objects with nulls, and undecodable lines."""
        try:
            raw = _decode_raw_event(line)
        except UNREADABLE as error:
            return BadObject(error=f"not a watch event: {error}")
        if raw.type == "ERROR":
            raise error_from_event(bytes(raw.object))
        bad: BadObject
        try:
            if raw.type == "BOOKMARK":
                return self._bookmark(raw.object)
            if raw.type in _OBJECT_EVENTS:
                return self._noted(WatchEvent(raw.type, self._decode_object(raw.object)))
            unknown = ValueError(f"unknown event type {raw.type!r}")
            bad = describe_bad_object(raw.object, unknown, event_type=raw.type)
        except UNREADABLE as error:
            bad = describe_bad_object(raw.object, error, event_type=raw.type)
        if bad.resource_version:
            self.resource_version = bad.resource_version
        return bad

    def _bookmark(self, raw: Raw) -> Bookmark:
        metadata = _decode_bookmark(raw).metadata
        if metadata.resource_version:
            self.resource_version = metadata.resource_version
        ends_initial = (metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true"
        return Bookmark(metadata.resource_version, initial_events_end=ends_initial)


class WatchStream(Generic[T]):
    """An open watch: yields the events of each chunk."""

    def __init__(self, response: StreamResponse, decoder: WatchDecoder[T]) -> None:
        self._response = response
        self._decoder = decoder

    @property
    def resource_version(self) -> str:
        """Where the next watch would continue."""
        return self._decoder.resource_version

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Iterator[WatchEvent[T] | Bookmark | BadObject]:
        """Return the events of the next chunk; consume them before the next call."""
        return self._decoder.feed(await anext(self._response))

    def hold(self) -> None:
        """Read no more until `release`, or until a lot has come."""
        self._response.hold()

    def release(self) -> None:
        """Read what has come, and what comes."""
        self._response.release()
