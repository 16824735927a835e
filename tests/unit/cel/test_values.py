"""Values: lists that share parts, maps with keys of many types."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel.values import (
    Accumulator,
    DefaultMap,
    Joined,
    ListValue,
    Map,
    Rope,
    StringMap,
    Uint,
    joined,
)


@given(st.lists(st.lists(st.integers(), max_size=3), max_size=8))
def test_a_rope_is_the_list_of_its_parts(parts: list[list[int]]) -> None:
    rope: ListValue = []
    for part in parts:
        rope = Rope(rope, part)
    flat = [element for part in parts for element in part]

    assert len(rope) == len(flat)
    assert list(rope) == flat
    assert [rope[index] for index in range(len(flat))] == flat


def test_short_lists_are_copied_and_long_ones_shared() -> None:
    assert isinstance(joined([1], [2]), Joined)
    assert isinstance(joined(list(range(900)), list(range(900))), Rope)


def test_a_list_joined_with_nothing_is_itself() -> None:
    one = [1]

    assert joined(one, []) is one
    assert joined([], one) is one


def test_an_accumulator_is_added_to_in_place() -> None:
    accumulator = Accumulator()

    assert joined(accumulator, [1]) is accumulator
    assert accumulator == [1]


def test_keys_of_different_types_are_different_keys() -> None:
    keys = [1, Uint(1), 1.0, True, "1"]
    values = Map((key, index) for index, key in enumerate(keys))

    assert len(values) == 5
    assert [values.look_up(key) for key in keys] == [(index, True) for index in range(5)]


def test_numbers_are_found_by_their_value() -> None:
    values = Map([(1, "one")])

    assert values.look_up(Uint(1)) == ("one", True)
    assert values.look_up(1.0) == ("one", True)
    assert values.look_up(1.5) == (None, False)
    assert values.look_up(True) == (None, False)


def test_only_an_index_sees_the_default_of_a_map() -> None:
    values = DefaultMap({"a": StringMap({"x": 1})})

    assert values.find("b")[1]
    assert not values.look_up("b")[1]
    assert len(values) == 1
    assert list(values) == ["a"]
