"""Types, and how they are spelled."""

from __future__ import annotations

import pytest

from kubesched.cel import types
from kubesched.cel.types import Type, list_of, map_of, optional_of, param, type_of, unwrapped


@pytest.mark.parametrize(
    ("type_", "declared"),
    [
        (types.INT, "int"),
        (types.DYN, "dyn"),
        (list_of(types.STRING), "list(string)"),
        (map_of(types.STRING, list_of(types.DYN)), "map(string, list(dyn))"),
        (types.SEMVER, "kubernetes.Semver"),
        (types.IP, "net.IP"),
        (param("A"), "<A>"),
    ],
)
def test_types_are_spelled_with_their_parameters(type_: Type, declared: str) -> None:
    assert type_.declared == declared


def test_types_are_equal_by_their_parts() -> None:
    assert list_of(types.INT) == list_of(types.INT)
    assert list_of(types.INT) != list_of(types.UINT)
    assert len({list_of(types.INT), list_of(types.INT)}) == 1


def test_the_size_counts_all_parts() -> None:
    assert types.INT.size == 1
    assert map_of(types.STRING, list_of(types.INT)).size == 4


def test_optionals_are_unwrapped_once() -> None:
    inner = optional_of(types.INT)
    assert unwrapped(inner) == (types.INT, True)
    assert unwrapped(optional_of(inner)) == (inner, True)
    assert unwrapped(types.INT) == (types.INT, False)


def test_what_goes_with_everything() -> None:
    assert types.DYN.is_dyn_or_error
    assert not type_of(types.INT).is_dyn_or_error
