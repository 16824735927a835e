"""Events as JSON."""

from __future__ import annotations

import re

import msgspec
import pytest

from kubesched.client.event_wire import (
    CoreV1,
    EventsV1,
    Occurrence,
    Series,
    event_name,
    fit_note,
)
from kubesched.client.meta import ObjectReference

TIME_NS = 1_700_000_000_123_456_789
POD = ObjectReference(
    kind="Pod", namespace="ns", name="pod", uid="u", api_version="v1", resource_version="7"
)
SCHEDULED = Occurrence(
    name="pod.1797b0b5a5a5a515",
    time_ns=TIME_NS,
    type="Normal",
    reason="Scheduled",
    action="Binding",
    note="Successfully assigned ns/pod to node",
    controller="default-scheduler",
    instance="default-scheduler-host",
    regarding=POD,
)
POD_JSON = {
    "kind": "Pod",
    "namespace": "ns",
    "name": "pod",
    "uid": "u",
    "apiVersion": "v1",
    "resourceVersion": "7",
}


def _json(value: msgspec.Struct) -> object:
    return msgspec.json.decode(msgspec.json.encode(value))


def test_events_k8s_io() -> None:
    assert _json(EventsV1().create(SCHEDULED, None)) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "pod.1797b0b5a5a5a515", "namespace": "ns"},
        "eventTime": "2023-11-14T22:13:20.123456Z",
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": "Successfully assigned ns/pod to node",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "regarding": POD_JSON,
    }


def test_a_series() -> None:
    series = Series(2, TIME_NS + 1_000_000_000)
    body = {"count": 2, "lastObservedTime": "2023-11-14T22:13:21.123456Z"}

    created = _json(EventsV1().create(SCHEDULED, series))

    assert isinstance(created, dict)
    assert created["series"] == body
    assert _json(EventsV1().patch(series)) == {"series": body}


def test_core() -> None:
    assert _json(CoreV1().create(SCHEDULED, None)) == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "pod.1797b0b5a5a5a515", "namespace": "ns"},
        "involvedObject": POD_JSON,
        "reason": "Scheduled",
        "message": "Successfully assigned ns/pod to node",
        "type": "Normal",
        "source": {"component": "default-scheduler"},
        "firstTimestamp": "2023-11-14T22:13:20Z",
        "lastTimestamp": "2023-11-14T22:13:20Z",
        "count": 1,
        "reportingComponent": "default-scheduler",
        "reportingInstance": "",
    }
    assert _json(CoreV1().patch(Series(3, TIME_NS + 60_000_000_000))) == {
        "count": 3,
        "lastTimestamp": "2023-11-14T22:14:20Z",
    }


def test_objects_without_a_namespace_have_their_events_in_default() -> None:
    node = msgspec.structs.replace(SCHEDULED, regarding=ObjectReference(kind="Node", name="n"))

    assert node.namespace == "default"


class TestNames:
    def test_object_and_time(self) -> None:
        assert event_name("pod-1", 255) == "pod-1.ff"

    @pytest.mark.parametrize("name", ["UPPER", "under_score", "x" * 252, "", "-a"])
    def test_a_name_that_does_not_fit_is_replaced(self, name: str) -> None:
        uuid = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

        assert uuid.fullmatch(event_name(name, 1))


class TestNotes:
    def test_short_notes_stay(self) -> None:
        assert fit_note("x" * 1024) == "x" * 1024

    def test_long_notes_are_cut_visibly(self) -> None:
        assert fit_note("x" * 1025) == "x" * 1020 + " ..."

    def test_the_limit_is_in_bytes_and_characters_stay_whole(self) -> None:
        cut = fit_note("ü" * 1000)

        assert len(cut.encode()) <= 1024
        assert cut == "ü" * 510 + " ..."

    def test_what_cannot_be_encoded_does_not_matter(self) -> None:
        assert fit_note("a\ud800b") == "a?b"
