"""Vocabularies and lookups: values as ids, functions of values as tables."""

from __future__ import annotations

import numpy as np

from kubesched.cluster.vocabulary import Lookup, Vocabulary


def _ids(*ids: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(ids, dtype=np.int32)


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


def test_a_lookup_gathers_the_function_s_values() -> None:
    vocabulary = Vocabulary("", "a", "bcd")
    lookup = Lookup(vocabulary, len, np.int64)
    assert lookup(_ids(2, 0, 1, 2)).tolist() == [3, 0, 1, 3]


def test_a_lookup_asks_once_for_each_value_and_grows_with_the_vocabulary() -> None:
    vocabulary = Vocabulary("a")
    asked: list[str] = []

    def is_b(value: str) -> bool:
        asked.append(value)
        return value == "b"

    lookup = Lookup(vocabulary, is_b, np.bool_)
    assert lookup(_ids(0, 0)).tolist() == [False, False]
    vocabulary.id_of("b")
    vocabulary.id_of("c")
    assert lookup(_ids(2, 1, 0)).tolist() == [False, True, False]
    assert lookup(_ids(1)).tolist() == [True]
    assert asked == ["a", "b", "c"]
