"""A response to a list, decoded in slices: its objects, and those that cannot be decoded.

A response may have thousands of objects: it is cut into objects at once, which is fast, and each
slice is decoded when the caller takes it. A malformed object affects only itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from kubesched.api.decoding import decoder_of
from kubesched.client.meta import UNREADABLE, BadObject, ListMeta, WireStruct
from kubesched.client.watch import describe_bad_object

T = TypeVar("T")

#: Objects decoded, and then handled, before the event loop runs other tasks.
SLICE_OBJECTS = 500


class ListPage(Struct, Generic[T], frozen=True, kw_only=True):
    """A slice of a list; ``first`` marks the start, also when the list had to start over."""

    items: list[T]
    bad: list[BadObject]
    #: number of objects behind it that have arrived
    waiting: int
    #: version of the collection: the same on all pages of a list
    resource_version: str
    #: whether to discard earlier pages
    first: bool


class ListResponse(WireStruct, frozen=True):
    """One response, cut into objects."""

    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[Raw] | None = None

    def pages(self, object_type: type[T], *, first: bool) -> Iterator[ListPage[T]]:
        """Decode slice by slice; there is at least one."""
        raws = self.items or []
        for start in range(0, max(len(raws), 1), SLICE_OBJECTS):
            items, bad = self._decode(raws[start : start + SLICE_OBJECTS], object_type)
            yield ListPage(
                items=items,
                bad=bad,
                waiting=max(len(raws) - start - SLICE_OBJECTS, 0),
                resource_version=self.metadata.resource_version,
                first=first and not start,
            )

    def _decode(self, raws: list[Raw], object_type: type[T]) -> tuple[list[T], list[BadObject]]:
        decode = decoder_of(object_type).decode
        items: list[T] = []
        bad: list[BadObject] = []
        for raw in raws:
            try:
                items.append(decode(raw))
            except UNREADABLE as error:
                described = describe_bad_object(raw, error)
                if not described.kind:  # a list omits the kind of each object
                    kind = self.kind.removesuffix("List")
                    described = msgspec.structs.replace(described, kind=kind)
                bad.append(described)
        return items, bad


#: Cuts a response into objects; raises msgspec.DecodeError if it is not a list.
decode_list = msgspec.json.Decoder(ListResponse).decode
