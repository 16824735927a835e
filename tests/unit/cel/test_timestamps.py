"""Timestamps and durations as Go reads and writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel.timestamps import format_timestamp, parse_duration, parse_timestamp
from kubesched.cel.values import Timestamp


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0", 0),
        ("1s", 10**9),
        ("-1.5h", -5400 * 10**9),
        ("1h2m3s4ms5us6ns", 3723004005006),
        (".5s", 5 * 10**8),
        ("1.s", 10**9),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("9223372036854775808ns", None),
        ("1d", None),
        ("1", None),
        ("", None),
        (".s", None),
        ("1h" * 1000, None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_durations(text: str, want: int | None) -> None:
    parsed = parse_duration(text)

    assert (None if parsed is None else parsed.nanos) == want


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-02T03:04:05Z", "2020-01-02T03:04:05.123456789Z", "2020-01-02T03:04:05.1+05:30",
        "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z",
    ],
)  # fmt: skip
def test_timestamps_are_written_as_they_were_read(text: str) -> None:
    parsed = parse_timestamp(text)

    assert parsed is not None
    assert format_timestamp(parsed) == text


@pytest.mark.parametrize(
    "text",
    ["", "2020-13-01T00:00:00Z", "2020-02-30T00:00:00Z", "2020-01-01", "2020-01-01T24:00:00Z"],
)
def test_texts_that_are_no_timestamp(text: str) -> None:
    assert parse_timestamp(text) is None


@given(st.integers(-62135596800 * 10**9, 253402300799 * 10**9))
def test_every_timestamp_can_be_read_back(nanos: int) -> None:
    parsed = parse_timestamp(format_timestamp(Timestamp(nanos)))

    assert parsed is not None
    assert parsed.nanos == nanos
