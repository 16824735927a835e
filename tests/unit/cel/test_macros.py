"""Macros stand for comprehensions, and refuse arguments that they cannot take."""

from __future__ import annotations

import pytest

from kubesched.cel.macros import MacroError, expand
from kubesched.cel.syntax import Call, Comprehension, Expr, Ident, ListExpr, Literal, Select

ITEMS = ListExpr(0, [Literal(1, 1)])
X = Ident(5, "x")
TRUE = Literal(8, True)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("all", [X, TRUE]),
        ("exists", [X, TRUE]),
        ("exists_one", [X, TRUE]),
        ("map", [X, TRUE]),
        ("map", [X, TRUE, X]),
        ("filter", [X, TRUE]),
        ("all", [X, Ident(6, "y"), TRUE]),
        ("transformList", [X, Ident(6, "y"), TRUE]),
        ("transformMap", [X, Ident(6, "y"), TRUE, X]),
        ("transformMapEntry", [X, Ident(6, "y"), TRUE]),
        ("sortBy", [X, X]),
    ],
)
def test_macros_of_lists_become_comprehensions(name: str, args: list[Expr]) -> None:
    assert isinstance(expand(3, name, args, ITEMS), Comprehension)


@pytest.mark.parametrize(
    ("name", "args"), [("all", [X]), ("existsOne", [X, TRUE]), ("bind", [X, TRUE, X]), ("f", [])]
)
def test_other_calls_stay_calls(name: str, args: list[Expr]) -> None:
    assert expand(3, name, args, ITEMS) is None


def test_bind_is_a_macro_of_cel_alone() -> None:
    bound = expand(3, "bind", [X, TRUE, X], Ident(0, "cel"))

    assert isinstance(bound, Comprehension)
    assert bound.accumulator == "x"


def test_optional_maps_use_their_target_twice() -> None:
    mapped = expand(3, "optMap", [X, X], Ident(0, "o"))

    assert isinstance(mapped, Call)
    assert mapped.function == "_?_:_"


@pytest.mark.parametrize(
    ("name", "args", "target", "want"),
    [
        ("has", [X], None, "invalid argument to has() macro"),
        ("all", [Select(4, X, "y"), TRUE], ITEMS, "argument must be a simple name"),
        ("map", [TRUE, X], ITEMS, "argument is not an identifier"),
        ("all", [X, X, TRUE], ITEMS, "duplicate variable name: x"),
        ("all", [Ident(5, "__result__"), TRUE], ITEMS, "iteration variable overwrites"),
        ("bind", [TRUE, X, X], Ident(0, "cel"), "cel.bind() variable names must be simple"),
        ("optMap", [TRUE, X], X, "optMap() variable name must be a simple identifier"),
        ("sortBy", [X, X], Literal(0, 1), "sortBy can only be applied to a list"),
    ],
)
def test_arguments_that_are_refused(
    name: str, args: list[Expr], target: Expr | None, want: str
) -> None:
    with pytest.raises(MacroError) as raised:
        expand(3, name, args, target)

    assert str(raised.value).startswith(want)
