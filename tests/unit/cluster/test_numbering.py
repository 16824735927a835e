"""Numbers that stand for values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.cluster.numbering import Numbering


def test_equal_values_have_one_number_and_the_first_is_as_asked_for() -> None:
    numbers: Numbering[str] = Numbering(first=3)
    assert [numbers(each) for each in ("a", "b", "a")] == [3, 4, 3]


@given(values=st.lists(st.integers(0, 5)), limit=st.integers(1, 3))
def test_a_number_never_stands_for_two_values_however_many_are_forgotten(
    values: list[int], limit: int
) -> None:
    numbers: Numbering[int] = Numbering(limit=limit)
    meanings: dict[int, set[int]] = {}
    for value in values:
        meanings.setdefault(numbers(value), set()).add(value)
    assert all(len(each) == 1 for each in meanings.values())
