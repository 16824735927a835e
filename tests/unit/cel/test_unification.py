"""Whether one type can stand for another, and what type variables must be for that."""

from __future__ import annotations

import pytest

from kubesched.cel.types import (
    BOOL,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    Type,
    list_of,
    map_of,
    param,
    type_of,
)
from kubesched.cel.unification import Substitution, most_general

A, B = param("A"), param("B")


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        (INT, INT, True),
        (INT, STRING, False),
        (DYN, INT, True),
        (INT, DYN, True),
        (list_of(INT), list_of(DYN), True),
        (list_of(INT), list_of(STRING), False),
        (map_of(STRING, INT), list_of(INT), False),
        (NULL, DURATION, True),
        (NULL, INT, False),
        (type_of(INT), type_of(STRING), True),
    ],
)
def test_types_go_together_or_not(left: Type, right: Type, want: bool) -> None:
    assert Substitution().unify([left], [right]) is want


def test_a_variable_takes_the_first_type_that_is_offered() -> None:
    known = Substitution()
    assert known.unify([INT], [A])
    assert known.substitute(list_of(A)) == list_of(INT)
    assert not known.unify([STRING], [A])


def test_the_more_general_type_wins() -> None:
    known = Substitution()
    assert known.unify([list_of(INT), list_of(DYN)], [A, A])
    assert known.substitute(A) == list_of(DYN)
    assert most_general(INT, DYN) == DYN
    assert most_general(list_of(DYN), list_of(INT)) == list_of(DYN)


def test_a_question_that_is_answered_with_no_leaves_no_trace() -> None:
    known = Substitution()
    assert not known.unify([INT, STRING], [A, BOOL])
    assert known.substitute(A) == A
    assert known.unify([STRING], [A])


def test_a_type_is_not_part_of_itself() -> None:
    assert not Substitution().unify([list_of(A)], [A])


def test_free_variables_may_become_dyn() -> None:
    known = Substitution()
    assert known.unify([INT], [A])
    assert known.substitute(map_of(A, B), free_to_dyn=True) == map_of(INT, DYN)


def test_lists_of_types_have_the_same_length() -> None:
    assert not Substitution().unify([INT], [INT, INT])
