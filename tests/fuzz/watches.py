"""Watches and lists of every kind, decoded as the informers do."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.client.listing import ListPage, decode_list
from kubesched.client.meta import UNREADABLE, BadObject
from kubesched.client.watch import Bookmark, WatchDecoder, WatchEvent
from kubesched.errors import ApiError
from kubesched.kinds import KINDS
from tests.support.minimal_objects import MINIMAL

from .http_requests import MARK
from .target import FuzzTarget

_MAX_LINE_BYTES = 2000
_KINDS = tuple(KINDS.values())


def _kind_of(data: bytes) -> tuple[type, bytes]:
    """The first byte chooses the kind."""
    return _KINDS[data[0] % len(_KINDS)].type if data else _KINDS[0].type, data[1:]


def watch(data: bytes) -> None:
    """Every line is an event, a bookmark or a bad object; or the watch ends with an ApiError."""
    object_type, data = _kind_of(data)
    decoder: WatchDecoder[Any] = WatchDecoder(object_type, max_line_bytes=_MAX_LINE_BYTES)
    lines = 0
    try:
        for chunk in data.split(MARK):
            for event in decoder.feed(chunk):
                lines += 1
                _check(event, object_type)
    except ApiError:
        pass
    assert lines <= data.count(b"\n") + 1
    assert isinstance(decoder.resource_version, str)


def _check(event: object, object_type: type) -> None:
    match event:
        case WatchEvent():
            assert isinstance(event.object, object_type)
            again: object = msgspec.json.decode(msgspec.json.encode(event.object), type=object_type)
            assert again == event.object or _has_nan(event.object)
        case BadObject():
            assert event.error
        case _:
            assert isinstance(event, Bookmark)


def _has_nan(obj: object) -> bool:
    return obj != obj  # noqa: PLR0124 (NaN is not itself)


def read_list(data: bytes) -> None:
    """A list has objects and bad objects, or cannot be decoded."""
    object_type, data = _kind_of(data)
    try:
        response = decode_list(data)
    except UNREADABLE:
        return
    pages: list[ListPage[Any]] = list(response.pages(object_type, first=True))
    assert pages[0].first
    for page in pages:
        for obj in page.items:
            assert isinstance(obj, object_type)
        for bad in page.bad:
            assert bad.error


def _samples() -> list[bytes]:
    return [
        msgspec.json.encode({"metadata": {"name": "a"}, **MINIMAL[kind.name]}) for kind in _KINDS
    ]


_WORDS = (
    b"null",
    b"[null]",
    b'{"":null}',
    b'"1"',
    b"1.5",
    b"1e400",
    b"-0",
    b"9" * 30,
    b"\n",
    MARK,
    b'"metadata":',
    b'"spec":',
    b'"resourceVersion":',
    b'"BOOKMARK"',
    b'"ERROR"',
    b'"DELETED"',
    b'"\\ud800"',
    b'"\xff"',
    b"true",
)

TARGETS = (
    FuzzTarget(
        name="watch",
        run=watch,
        seeds=(
            *(
                bytes([number]) + b'{"type":"ADDED","object":' + sample + b"}\n"
                for number, sample in enumerate(_samples())
            ),
            (
                b'\x00{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":'
                b'{"k8s.io/initial-events-end":"true"}}}}\n'
            ),
            b'\x01{"type":"ERROR","object":{"code":410,"message":"gone"}}\n',
            b'\x02{"type":"MODIFIED","object":{"metadata":{"name":null}' + MARK + b"}}\n\n",
        ),
        words=_WORDS,
        max_bytes=8192,
        brief=1500,
    ),
    FuzzTarget(
        name="list",
        run=read_list,
        seeds=tuple(
            bytes([number])
            + b'{"kind":"AList","metadata":{"resourceVersion":"1","continue":"x"},"items":['
            + sample
            + b',null,{"metadata":5}]}'
            for number, sample in enumerate(_samples())
        ),
        words=_WORDS,
        max_bytes=8192,
        brief=1000,
    ),
)
