"""CBOR as RFC 8949 has it, text as byte strings, as Kubernetes does."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.server import cbor
from kubesched.server.cbor import SELF_DESCRIBED


@pytest.mark.parametrize(
    ("value", "wanted"),
    # Numbers, booleans and null are examples of RFC 8949, appendix A.
    [
        (0, "00"),
        (23, "17"),
        (24, "1818"),
        (255, "18ff"),
        (256, "190100"),
        (1_000_000, "1a000f4240"),
        (1_000_000_000_000, "1b000000e8d4a51000"),
        (-1, "20"),
        (-1000, "3903e7"),
        (False, "f4"),
        (True, "f5"),
        (None, "f6"),
        ("", "40"),
        ("ü", "42c3bc"),
        ("a" * 24, "5818" + "61" * 24),
        ([], "80"),
        ([1, [2, 3]], "8201820203"),
        ((1,), "8101"),
        ({}, "a0"),
    ],
)
def test_values(value: Any, wanted: str) -> None:
    assert cbor.encode(value) == SELF_DESCRIBED + bytes.fromhex(wanted)


def test_keys_are_in_the_order_of_their_bytes() -> None:
    assert cbor.encode({"aa": 1, "b": 2, "a": 3}) == SELF_DESCRIBED + bytes.fromhex(
        "a3 4161 03 4162 02 426161 01"
    )


@pytest.mark.parametrize(("value", "error"), [(1.5, TypeError), (1 << 64, OverflowError)])
def test_what_it_does_not_know_is_an_error(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        cbor.encode(value)
