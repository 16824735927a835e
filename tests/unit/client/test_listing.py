"""Pages of a list: quickly if all is well, object by object if not."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.client.listing import decode_page
from kubesched.client.meta import BadObject

from .objects import Thing, thing, thing_list


def test_a_page() -> None:
    body = msgspec.json.encode(
        thing_list(thing("a", version=3), thing("b"), version=9, next_page="more")
    )

    page = decode_page(body, Thing, first=True)

    assert [item.metadata.name for item in page.items] == ["a", "b"]
    assert (page.resource_version, page.next_page, page.first) == ("9", "more", True)
    assert page.bad == []


@pytest.mark.parametrize("items", [b"null", b"[]"])
def test_an_empty_list_may_be_null(items: bytes) -> None:
    page = decode_page(b'{"metadata":{},"items":' + items + b"}", Thing, first=True)

    assert (page.items, page.bad) == ([], [])


def test_a_bad_object_is_set_aside_and_named() -> None:
    body = msgspec.json.encode(
        thing_list(thing("a"), thing("bad", replicas="x", version=4), thing("c"), version=9)
    )
    body = body.replace(b'"kind":"Thing",', b"")  # lists do not repeat it

    page = decode_page(body, Thing, first=False)

    assert [item.metadata.name for item in page.items] == ["a", "c"]
    assert page.bad == [
        BadObject(
            kind="Thing",
            namespace="ns",
            name="bad",
            resource_version="4",
            error="Expected `int`, got `str` - at `$.spec.replicas`",
        )
    ]
    assert page.resource_version == "9"


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"items":7}', b"<html>"])
def test_what_is_no_list_is_an_error(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_page(body, Thing, first=True)
