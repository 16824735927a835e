"""Shrinking keeps what shows something, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from .shrinking import smallest


@given(st.sets(st.integers(0, 40)), st.data())
def test_only_what_is_needed_is_left(items: set[int], data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.sampled_from(sorted(items)))) if items else set()
    assert set(smallest(sorted(items), lambda some: needed <= set(some))) == needed


def test_one_of_several_is_enough() -> None:
    assert len(smallest(range(30), lambda some: any(each % 7 == 0 for each in some))) == 1


def test_few_questions_are_asked() -> None:
    asked = 0

    def shows(some: list[int]) -> bool:
        nonlocal asked
        asked += 1
        return 17 in some

    assert smallest(range(128), shows) == [17]
    assert asked < 30
