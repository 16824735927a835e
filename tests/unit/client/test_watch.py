"""Bytes of a watch become events, however they are cut, whatever is in them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.client.meta import BadObject
from kubesched.client.watch import Bookmark, WatchDecoder, WatchEvent
from kubesched.errors import ApiError, GoneError, TooManyRequestsError
from tests.support.servers import JsonObject, event_line, splits

from .objects import Meta, Thing, bookmark, gone, thing


def _feed(
    *pieces: bytes, decoder: WatchDecoder[Thing] | None = None
) -> list[WatchEvent[Thing] | Bookmark | BadObject]:
    decoder = decoder or WatchDecoder(Thing)
    return [event for piece in pieces for event in decoder.feed(piece)]


def test_events_carry_their_objects() -> None:
    decoder = WatchDecoder(Thing, resource_version="1")

    events = _feed(
        event_line("ADDED", thing("a", version=2)) + event_line("DELETED", thing("b", version=3)),
        decoder=decoder,
    )

    assert events == [
        WatchEvent("ADDED", Thing(Meta("a", "ns", "uid-a", "2"))),
        WatchEvent("DELETED", Thing(Meta("b", "ns", "uid-b", "3"))),
    ]
    assert decoder.resource_version == "3"


def test_a_bookmark_moves_the_version_only() -> None:
    decoder = WatchDecoder(Thing, resource_version="1")

    events = _feed(event_line("BOOKMARK", bookmark(77)), decoder=decoder)

    assert events == [Bookmark("77")]
    assert decoder.resource_version == "77"


def test_the_bookmark_that_ends_the_beginning_is_marked() -> None:
    obj = bookmark(5)
    obj["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}

    assert _feed(event_line("BOOKMARK", obj)) == [Bookmark("5", initial_events_end=True)]


def test_410_means_list_again_after_what_came_before() -> None:
    decoder = WatchDecoder(Thing)
    batch = decoder.feed(event_line("ADDED", thing("a", version=9)) + event_line("ERROR", gone()))

    assert isinstance(next(batch), WatchEvent)
    with pytest.raises(GoneError, match="too old resource version") as error:
        next(batch)
    assert error.value.reason == "Expired"
    assert decoder.resource_version == "9"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ({"kind": "Status", "code": 429, "message": "slow down"}, TooManyRequestsError),
        ({"kind": "Status", "code": 500, "message": "etcd"}, ApiError),
        ({"kind": "Status", "message": "no code"}, ApiError),
        ({"kind": "Nonsense"}, ApiError),
    ],
)
def test_other_errors_end_the_watch_too(status: JsonObject, kind: type[ApiError]) -> None:
    with pytest.raises(kind):
        _feed(event_line("ERROR", status))


class Loose(msgspec.Struct):
    """A type that accepts nearly everything, a Status too."""

    metadata: Meta | None = None


def test_an_error_is_an_error_even_if_it_could_be_read_as_an_object() -> None:
    decoder = WatchDecoder(Loose)  # type: ignore[type-var]  # on purpose: its metadata may be None

    with pytest.raises(GoneError):
        list(decoder.feed(event_line("ERROR", gone())))


class TestBadObjects:
    def test_an_object_of_the_wrong_shape_is_named_and_left_out(self) -> None:
        decoder = WatchDecoder(Thing)

        bad, good = _feed(
            event_line("MODIFIED", thing("bad", version=8, replicas="many"))
            + event_line("ADDED", thing("good", version=9)),
            decoder=decoder,
        )

        assert bad == BadObject(
            event_type="MODIFIED",
            kind="Thing",
            namespace="ns",
            name="bad",
            resource_version="8",
            error="Expected `int`, got `str` - at `$.spec.replicas`",
        )
        assert str(bad) == "Thing ns/bad: Expected `int`, got `str` - at `$.spec.replicas`"
        assert isinstance(good, WatchEvent)

    def test_its_version_counts(self) -> None:
        decoder = WatchDecoder(Thing)

        _feed(event_line("MODIFIED", thing("bad", version=8, replicas="x")), decoder=decoder)

        assert decoder.resource_version == "8"

    @pytest.mark.parametrize(
        "line",
        [
            b"not json\n",
            b'{"type":"ADDED"}\n',
            b'{"type":"ADDED","object":{"metadata":{"name":7}}}\n',
            b'{"type":"ADDED","object":[1]}\n',
            b'{"type":"ADDED","object":{"metadata":null}}\n',
            b'{"type":"BOOKMARK","object":{}}\n',
            b'{"type":"BIRTHDAY","object":{"metadata":{"name":"x"}}}\n',
            b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}\n',
            b'{"type":7,"object":{}}\n',
        ],
    )
    def test_whatever_comes_the_watch_goes_on(self, line: bytes) -> None:
        bad, good = _feed(line + event_line("ADDED", thing("good")))

        assert isinstance(bad, BadObject)
        assert bad.error
        assert isinstance(good, WatchEvent)


class TestCutting:
    LINES = b"".join(
        [
            event_line("ADDED", thing("a", version=1)),
            event_line("MODIFIED", thing("ünïcode", version=2)),
            event_line("MODIFIED", thing("bad", version=3, replicas="x")),
            b"\n \n",
            event_line("BOOKMARK", bookmark(4)),
            event_line("DELETED", thing("a", version=5)),
        ]
    )

    @given(cuts=st.lists(st.integers(0, 100_000), max_size=40))
    def test_the_cuts_do_not_matter(self, cuts: list[int]) -> None:
        whole = WatchDecoder(Thing)
        pieces = WatchDecoder(Thing)

        want = _feed(self.LINES, decoder=whole)
        got = _feed(*splits(self.LINES, cuts), decoder=pieces)

        assert got == want
        assert len(want) == 5
        assert pieces.resource_version == whole.resource_version == "5"

    def test_byte_by_byte(self) -> None:
        pieces = [self.LINES[index : index + 1] for index in range(len(self.LINES))]

        assert _feed(*pieces) == _feed(self.LINES)

    def test_an_unfinished_line_is_no_event(self) -> None:
        assert _feed(event_line("ADDED", thing("a"))[:-1]) == []

    def test_an_endless_line_is_skipped_and_said_so(self) -> None:
        decoder = WatchDecoder(Thing, max_line_bytes=200)

        events = _feed(
            b"x" * 150,
            b"x" * 150,
            b"x" * 150,
            b"xx\n",
            event_line("ADDED", thing("a")),
            decoder=decoder,
        )

        assert events[0] == BadObject(error="an event longer than 200 bytes was skipped")
        assert [type(event) for event in events[1:]] == [WatchEvent]
