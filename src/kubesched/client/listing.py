"""One page of a list: its objects, and those that cannot be decoded.

The whole page is decoded in one pass. Only if that fails is it decoded object by object, so that a
malformed object affects only itself, and one with nulls only its own second pass.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from kubesched.api.decoding import decoder_of
from kubesched.client.meta import UNREADABLE, BadObject, ListMeta, WireStruct
from kubesched.client.watch import describe_bad_object

T = TypeVar("T")


class ListPage(Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list; ``first`` marks the start, also when the list had to start over."""

    items: list[T]
    bad: list[BadObject]
    #: version of the collection: the same on all pages of a list
    resource_version: str
    #: token of the next page, "" on the last one
    next_page: str
    #: whether to discard earlier pages
    first: bool


class _RawList(WireStruct, frozen=True):
    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[Raw] | None = None


_decode_raw_list = msgspec.json.Decoder(_RawList).decode


_list_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def _list_decoder(object_type: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401 - a type made at run time
    decoder = _list_decoders.get(object_type)
    if decoder is not None:
        return decoder
    list_type = msgspec.defstruct(
        "TypedList",
        [("metadata", ListMeta, ListMeta()), ("items", list[object_type] | None, None)],
        frozen=True,
        gc=False,
    )
    decoder = _list_decoders[object_type] = msgspec.json.Decoder(list_type)
    return decoder


def decode_page(body: bytes, object_type: type[T], *, first: bool) -> ListPage[T]:
    """Decode a list response; raises msgspec.DecodeError if it is not a list."""
    try:
        page = _list_decoder(object_type).decode(body)
    except UNREADABLE:
        return _decode_one_by_one(body, object_type, first=first)
    return ListPage(
        items=page.items or [],
        bad=[],
        resource_version=page.metadata.resource_version,
        next_page=page.metadata.next_page,
        first=first,
    )


def _decode_one_by_one(body: bytes, object_type: type[T], *, first: bool) -> ListPage[T]:
    page = _decode_raw_list(body)
    decode = decoder_of(object_type).decode
    items: list[T] = []
    bad: list[BadObject] = []
    for raw in page.items or ():
        try:
            items.append(decode(raw))
        except UNREADABLE as error:
            bad.append(describe_bad_object(raw, error))
    return ListPage(
        items=items,
        # A list omits the kind of each object.
        bad=[
            item
            if item.kind
            else msgspec.structs.replace(item, kind=page.kind.removesuffix("List"))
            for item in bad
        ],
        resource_version=page.metadata.resource_version,
        next_page=page.metadata.next_page,
        first=first,
    )
