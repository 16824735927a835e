"""Requests in protobuf, written here by hand."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.embedded.protobuf import decode_object
from kubesched.embedded.refusals import StatusError


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def data(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def message(api_version: str, kind: str, raw: bytes) -> bytes:
    type_meta = data(1, api_version) + data(2, kind)
    return b"k8s\0" + data(1, type_meta) + data(2, raw) + data(3, "") + data(4, "")


def meta(name: str, *rest: bytes) -> bytes:
    """Return metadata as Go writes it: what is not set is there, and empty."""
    unset = data(2, "") + data(3, "") + data(5, "") + number(7, 0) + data(8, b"")
    return data(1, data(1, name) + unset + b"".join(rest))


def test_a_namespace() -> None:
    raw = meta("team", data(11, data(1, "a") + data(2, "b"))) + data(2, b"") + data(3, data(1, ""))

    assert decode_object(message("v1", "Namespace", raw)) == {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": "team", "labels": {"a": "b"}},
    }


def test_numbers_booleans_bytes_and_times() -> None:
    time = data(6, number(1, 1767323045) + number(2, 678901000))
    secret = meta("s") + data(2, data(1, "k") + data(2, b"\x00\xff")) + number(5, 0)
    lease = meta("l") + data(2, data(1, "me") + number(2, 15) + data(3, time[2:]))

    assert decode_object(message("v1", "Secret", secret)) == {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {"name": "s"},
        "data": {"k": "AP8="},
        "immutable": False,
    }
    found = decode_object(message("coordination.k8s.io/v1", "Lease", lease))
    assert found["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-02T03:04:05.678901Z",
    }


def test_nested_lists_quantities_and_inlined_fields() -> None:
    amount = data(1, "cpu") + data(2, data(1, "500m"))
    container = data(1, "c") + data(2, "image") + data(8, data(2, amount))
    volume = data(1, "v") + data(2, data(2, data(1, "")))
    spec = data(1, volume) + data(2, container) + number(4, 0) + data(3, "Never")

    found = decode_object(message("v1", "Pod", meta("p") + data(2, spec)))

    assert found["spec"] == {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [{"name": "c", "image": "image", "resources": {"requests": {"cpu": "500m"}}}],
        "terminationGracePeriodSeconds": 0,
        "restartPolicy": "Never",
    }


def test_a_negative_number_and_a_number_or_text() -> None:
    value = meta("c") + number(2, -5)
    budget = meta("b") + data(2, data(1, number(1, 1) + number(2, 0) + data(3, "50%")))
    other = meta("b") + data(2, data(1, number(1, 0) + number(2, 3) + data(3, "")))

    def spec(raw: bytes) -> object:
        return decode_object(message("policy/v1", "PodDisruptionBudget", raw))["spec"]

    priority = decode_object(message("scheduling.k8s.io/v1", "PriorityClass", value))
    assert priority["value"] == -5
    assert spec(budget) == {"minAvailable": "50%"}
    assert spec(other) == {"minAvailable": 3}


def test_the_same_name_in_two_groups() -> None:
    """A core Event and an events.k8s.io Event have different fields."""
    core = decode_object(message("v1", "Event", meta("e") + data(4, "hello")))
    new = decode_object(message("events.k8s.io/v1", "Event", meta("e") + data(10, "hello")))

    assert core["message"] == "hello"
    assert new["note"] == "hello"


def test_delete_options() -> None:
    raw = number(1, 0) + data(2, data(1, "uid")) + data(5, "All")

    assert decode_object(message("v1", "DeleteOptions", raw)) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "uid"},
        "dryRun": ["All"],
    }


def test_unknown_fields_are_left_out() -> None:
    raw = meta("x") + data(99, "new") + number(100, 1) + varint(101 << 3 | 1) + struct.pack("d", 1)

    assert decode_object(message("v1", "ConfigMap", raw)) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "x"},
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"k8s\0\xff",
        message("v1", "Unheard", b""),
        message("v1", "Pod", b"\x0a\x7f"),
        message("v1", "Pod", number(1, 5)),
        message("v1", "Pod", meta("p") + data(2, data(4, "x"))),
        message("v1", "Pod", data(1, data(1, b"\xff\xfe"))),
        message("v1", "Pod", data(1, data(8, number(1, 1 << 62)))),
    ],
)
def test_what_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(StatusError) as caught:
        decode_object(body)

    assert caught.value.code == 400


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        found = decode_object(message("v1", "Pod", raw))
    except StatusError as refusal:
        found = {"kind": "Pod", "code": refusal.code}

    assert found["kind"] == "Pod"
