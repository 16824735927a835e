"""Names of Go types and values as a few errors show them."""

from __future__ import annotations

import pytest

from kubesched.cel.go_types import displayed, go_type
from kubesched.cel.library import semvers
from kubesched.cel.values import Err, Optional, StringMap, Uint, Value


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (True, "types.Bool"),
        (1, "types.Int"),
        (Uint(1), "types.Uint"),
        ("a", "types.String"),
        (None, "types.Null"),
        ([1], "*types.baseList"),
        (Optional(1), "*types.Optional"),
        (Err("x"), "*types.Err"),
        (semvers.parse("1.0.0"), "cel.Semver"),
    ],
)
def test_types_have_their_name_in_go(value: Value, want: str) -> None:
    assert go_type(value) == want


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ([1, ["a"]], "[1, [a]]"),
        (StringMap({"k": 1}), "{k: 1}"),
        (b"ab", "[97 98]"),
        (None, "0"),
        ("text", "text"),
    ],
)
def test_values_are_shown_plainly(value: Value, want: str) -> None:
    assert displayed(value) == want


def test_long_lists_are_cut() -> None:
    assert len(displayed(list(range(100_000)))) < 10_000
