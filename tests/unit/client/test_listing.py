"""A response to a list: cut into slices, and a malformed object affects only itself."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.client import listing
from kubesched.client.listing import ListPage, decode_list
from kubesched.client.meta import BadObject

from .objects import Thing, thing, thing_list


def pages(body: bytes, *, first: bool = True) -> list[ListPage[Thing]]:
    return list(decode_list(body).pages(Thing, first=first))


def names(page: ListPage[Thing]) -> list[str]:
    return [item.metadata.name for item in page.items]


def test_a_short_list_is_one_page() -> None:
    body = msgspec.json.encode(
        thing_list(thing("a", version=3), thing("b"), version=9, next_page="more")
    )

    (page,) = pages(body)

    assert names(page) == ["a", "b"]
    assert (page.resource_version, page.waiting, page.first) == ("9", 0, True)
    assert page.bad == []
    assert decode_list(body).metadata.next_page == "more"


@pytest.mark.parametrize("first", [True, False])
def test_a_long_one_comes_in_slices(monkeypatch: pytest.MonkeyPatch, first: bool) -> None:
    monkeypatch.setattr(listing, "SLICE_OBJECTS", 2)
    body = msgspec.json.encode(thing_list(*(thing(name) for name in "abcde"), version=9))

    found = pages(body, first=first)

    assert [names(page) for page in found] == [["a", "b"], ["c", "d"], ["e"]]
    assert [page.waiting for page in found] == [3, 1, 0]
    assert [page.first for page in found] == [first, False, False]
    assert {page.resource_version for page in found} == {"9"}


def test_slices_are_decoded_when_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SLICE_OBJECTS", 1)
    monkeypatch.setattr(listing, "describe_bad_object", _never)
    body = msgspec.json.encode(thing_list(thing("a"), thing("bad", replicas="x")))

    coming = decode_list(body).pages(Thing, first=True)

    assert names(next(coming)) == ["a"]
    with pytest.raises(AssertionError, match="decoded"):
        next(coming)


def _never(*_: object) -> BadObject:
    raise AssertionError("decoded")


@pytest.mark.parametrize("items", [b"null", b"[]"])
def test_an_empty_list_may_be_null(items: bytes) -> None:
    (page,) = pages(b'{"metadata":{},"items":' + items + b"}")

    assert (page.items, page.bad, page.first) == ([], [], True)


def test_a_bad_object_is_set_aside_and_named() -> None:
    body = msgspec.json.encode(
        thing_list(thing("a"), thing("bad", replicas="x", version=4), thing("c"), version=9)
    )
    body = body.replace(b'"kind":"Thing",', b"")  # lists do not repeat it

    (page,) = pages(body, first=False)

    assert names(page) == ["a", "c"]
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
        decode_list(body)
