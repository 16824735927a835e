"""Vocabularies and lookups: values as ids, functions of values as tables."""

from __future__ import annotations

import numpy as np

from kubesched.cluster.vocabulary import STALE_VALUES, Lookup, ValueColumn, Vocabulary


def test_the_first_values_have_the_first_ids() -> None:
    vocabulary = Vocabulary(None, "a")
    assert vocabulary.find(None) == 0
    assert vocabulary.find("a") == 1
    assert len(vocabulary) == 2


def test_an_id_never_changes_its_meaning() -> None:
    vocabulary: Vocabulary[str] = Vocabulary()
    first = vocabulary.id_of("x")
    vocabulary.id_of("y")
    assert vocabulary.id_of("x") == first
    assert vocabulary.values[first] == "x"


def test_finding_does_not_add() -> None:
    vocabulary: Vocabulary[str] = Vocabulary()
    assert vocabulary.find("x") is None
    assert len(vocabulary) == 0


def _column(*values: str) -> ValueColumn[str]:
    column = ValueColumn("", len(values))
    for row, value in enumerate(values):
        column.put(row, value)
    return column


def test_a_column_has_the_value_of_each_row() -> None:
    column = _column("a", "b", "a")
    column.put(0, "c")
    assert [column.at(row) for row in range(3)] == ["c", "b", "a"]
    column.grow(4)
    assert column.at(3) == "", "absent"


def test_a_column_forgets_values_that_no_row_has() -> None:
    column = _column("steady", "busy")
    for number in range(1000):
        column.put(1, str(number))
        assert len(column.vocabulary) <= 2 * STALE_VALUES
        assert (column.at(0), column.at(1)) == ("steady", str(number))
    assert column.vocabulary.values[0] == "", "the id of absence stays"


def test_a_lookup_gathers_the_function_s_values() -> None:
    lookup = Lookup(_column("bcd", "", "a", "bcd"), len, np.int64)
    assert lookup(slice(0, 4)).tolist() == [3, 0, 1, 3]
    assert lookup(np.array([2, 0])).tolist() == [1, 3]


def test_a_lookup_asks_once_for_each_value_and_grows_with_the_vocabulary() -> None:
    column = _column("a", "a")
    asked: list[str] = []

    def is_b(value: str) -> bool:
        asked.append(value)
        return value == "b"

    lookup = Lookup(column, is_b, np.bool_)
    assert lookup(slice(0, 2)).tolist() == [False, False]
    column.put(0, "b")
    column.put(1, "c")
    assert lookup(slice(0, 2)).tolist() == [True, False]
    assert lookup(slice(0, 1)).tolist() == [True]
    assert asked == ["", "a", "b", "c"]


def test_a_lookup_follows_a_column_that_has_forgotten() -> None:
    column = _column("steady", "x")
    before = column.vocabulary
    lookup = Lookup(column, lambda value: value == "steady", np.bool_)
    assert lookup(slice(0, 2)).tolist() == [True, False]
    number = 0
    while column.vocabulary is before:
        column.put(0, str(number))
        number += 1
    column.put(1, "steady")
    assert lookup(slice(0, 2)).tolist() == [False, True]
