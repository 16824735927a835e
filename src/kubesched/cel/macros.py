"""Macros: calls that stand for other expressions, expanded while parsing.

A macro is known by its name, the number of its arguments and whether it has a target. Nodes that
a macro makes point to the parenthesis of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesched.cel.syntax import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    copied,
)

#: The accumulator of earlier versions; still no name for a variable.
_FORMER_ACCUMULATOR: Final = "__result__"
_UNUSED: Final = "#unused"
_SORT_INPUT: Final = "@__sortBy_input__"


class MacroError(Exception):
    """A macro that is given arguments it cannot take."""

    def __init__(self, at: Expr, message: str) -> None:
        super().__init__(message)
        self.offset = at.offset


def expand(offset: int, name: str, args: list[Expr], target: Expr | None) -> Expr | None:
    """Return what a call stands for, or None if it is no macro."""
    if target is None:
        return _has(offset, args[0]) if (name, len(args)) == ("has", 1) else None
    macro = _MACROS.get((name, len(args)))
    return None if macro is None else macro(offset, target, args)


def _has(offset: int, arg: Expr) -> Expr:
    if not isinstance(arg, Select):
        raise MacroError(arg, "invalid argument to has() macro")
    return Select(offset, arg.operand, arg.field, test_only=True)


# -- quantifiers --------------------------------------------------------------------------------

_Variables = tuple[str, str | None]


def _all(offset: int, target: Expr, variables: _Variables, predicate: Expr) -> Expr:
    accu = _accumulator(offset)
    return _fold(
        offset, target, variables, Literal(offset, True),
        condition=Call(offset, "@not_strictly_false", [accu()]),
        step=Call(offset, "_&&_", [accu(), predicate]),
    )  # fmt: skip


def _exists(offset: int, target: Expr, variables: _Variables, predicate: Expr) -> Expr:
    accu = _accumulator(offset)
    return _fold(
        offset, target, variables, Literal(offset, False),
        condition=Call(offset, "@not_strictly_false", [Call(offset, "!_", [accu()])]),
        step=Call(offset, "_||_", [accu(), predicate]),
    )  # fmt: skip


def _exists_one(offset: int, target: Expr, variables: _Variables, predicate: Expr) -> Expr:
    accu = _accumulator(offset)
    count = Call(offset, "_+_", [accu(), Literal(offset, 1)])
    return _fold(
        offset, target, variables, Literal(offset, 0),
        step=Call(offset, "_?_:_", [predicate, count, accu()]),
        result=Call(offset, "_==_", [accu(), Literal(offset, 1)]),
    )  # fmt: skip


def _quantifier(make: Callable[[int, Expr, _Variables, Expr], Expr]) -> _Macro:
    def one_variable(offset: int, target: Expr, args: list[Expr]) -> Expr:
        variable = _variable(args[0], "argument must be a simple name")
        return make(offset, target, (variable, None), args[1])

    def two_variables(offset: int, target: Expr, args: list[Expr]) -> Expr:
        return make(offset, target, _two_variables(args), args[2])

    def either(offset: int, target: Expr, args: list[Expr]) -> Expr:
        return (one_variable if len(args) == 2 else two_variables)(offset, target, args)

    return either


# -- lists and maps -----------------------------------------------------------------------------


def _map(offset: int, target: Expr, args: list[Expr]) -> Expr:
    variable = _variable(args[0], "argument is not an identifier")
    return _collect(offset, target, (variable, None), args[1:])


def _filter(offset: int, target: Expr, args: list[Expr]) -> Expr:
    variable = _variable(args[0], "argument is not an identifier")
    return _collect(offset, target, (variable, None), [args[1], args[0]])


def _transform_list(offset: int, target: Expr, args: list[Expr]) -> Expr:
    return _collect(offset, target, _two_variables(args), args[2:])


def _collect(offset: int, target: Expr, variables: _Variables, rest: list[Expr]) -> Expr:
    """A list of transformed elements; ``rest`` is [predicate,] transform."""
    accu = _accumulator(offset)
    step: Expr = Call(offset, "_+_", [accu(), ListExpr(offset, [rest[-1]])])
    if len(rest) == 2:
        step = Call(offset, "_?_:_", [rest[0], step, accu()])
    return _fold(offset, target, variables, ListExpr(offset, []), step=step)


def _transform_map(offset: int, target: Expr, args: list[Expr]) -> Expr:
    variables = _two_variables(args)
    return _insert(offset, target, variables, args[2:-1], [Ident(offset, variables[0]), args[-1]])


def _transform_map_entry(offset: int, target: Expr, args: list[Expr]) -> Expr:
    return _insert(offset, target, _two_variables(args), args[2:-1], [args[-1]])


def _insert(
    offset: int, target: Expr, variables: _Variables, predicate: list[Expr], entry: list[Expr]
) -> Expr:
    accu = _accumulator(offset)
    step: Expr = Call(offset, "cel.@mapInsert", [accu(), *entry])
    if predicate:
        step = Call(offset, "_?_:_", [*predicate, step, accu()])
    return _fold(offset, target, variables, MapExpr(offset, []), step=step)


def _sort_by(offset: int, target: Expr, args: list[Expr]) -> Expr:
    if not isinstance(target, ListExpr | Select | Ident | Comprehension | Call):
        message = (
            "sortBy can only be applied to a list, identifier, comprehension, call or "
            "select expression"
        )
        raise MacroError(target, message)
    keys = _map(offset, Ident(offset, _SORT_INPUT), args)
    ordered = Call(offset, "@sortByAssociatedKeys", [keys], Ident(offset, _SORT_INPUT))
    return _bind(offset, _SORT_INPUT, target, ordered)


# -- bindings and optionals ---------------------------------------------------------------------


def _cel_bind(offset: int, target: Expr, args: list[Expr]) -> Expr | None:
    if not (isinstance(target, Ident) and target.name == "cel"):
        return None
    if not isinstance(args[0], Ident):
        raise MacroError(args[0], "cel.bind() variable names must be simple identifiers")
    return _bind(offset, args[0].name, args[1], args[2])


def _opt_map(offset: int, target: Expr, args: list[Expr]) -> Expr:
    return _if_present("optMap", offset, target, args, lambda it: Call(offset, "optional.of", [it]))


def _opt_flat_map(offset: int, target: Expr, args: list[Expr]) -> Expr:
    return _if_present("optFlatMap", offset, target, args, lambda it: it)


def _if_present(
    macro: str, offset: int, target: Expr, args: list[Expr], wrap: Callable[[Expr], Expr]
) -> Expr:
    if not isinstance(args[0], Ident):
        raise MacroError(args[0], f"{macro}() variable name must be a simple identifier")
    has_value = Call(offset, "hasValue", [], target)
    value = Call(offset, "value", [], copied(target))
    mapped = wrap(_bind(offset, args[0].name, value, args[1]))
    return Call(offset, "_?_:_", [has_value, mapped, Call(offset, "optional.none", [])])


def _bind(offset: int, name: str, value: Expr, result: Expr) -> Expr:
    """A fold over nothing, whose accumulator is the bound variable."""
    return Comprehension(
        offset, ListExpr(offset, []), _UNUSED, None, name,
        init=value, condition=Literal(offset, False), step=Ident(offset, name), result=result,
    )  # fmt: skip


# -- parts --------------------------------------------------------------------------------------


def _fold(
    offset: int,
    target: Expr,
    variables: _Variables,
    init: Expr,
    *,
    step: Expr,
    condition: Expr | None = None,
    result: Expr | None = None,
) -> Expr:
    return Comprehension(
        offset, target, *variables, ACCUMULATOR,
        init=init,
        condition=condition or Literal(offset, True),
        step=step,
        result=result or Ident(offset, ACCUMULATOR),
    )  # fmt: skip


def _accumulator(offset: int) -> Callable[[], Expr]:
    return lambda: Ident(offset, ACCUMULATOR)


def _variable(arg: Expr, otherwise: str) -> str:
    if not isinstance(arg, Ident):
        raise MacroError(arg, otherwise)
    if arg.name in (ACCUMULATOR, _FORMER_ACCUMULATOR):
        raise MacroError(arg, "iteration variable overwrites accumulator variable")
    return arg.name


def _two_variables(args: list[Expr]) -> tuple[str, str]:
    for arg in args[:2]:
        if not isinstance(arg, Ident):
            raise MacroError(arg, "argument must be a simple name")
    first, second = args[0], args[1]
    assert isinstance(first, Ident)  # noqa: S101 - checked above
    assert isinstance(second, Ident)  # noqa: S101
    if first.name == second.name:
        raise MacroError(second, f"duplicate variable name: {first.name}")
    return _variable(first, ""), _variable(second, "")


_Macro = Callable[[int, Expr, list[Expr]], Expr | None]

_MACROS: Final[dict[tuple[str, int], _Macro]] = {
    ("all", 2): _quantifier(_all),
    ("all", 3): _quantifier(_all),
    ("exists", 2): _quantifier(_exists),
    ("exists", 3): _quantifier(_exists),
    ("exists_one", 2): _quantifier(_exists_one),
    ("exists_one", 3): _quantifier(_exists_one),
    ("existsOne", 3): _quantifier(_exists_one),
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry,
    ("transformMapEntry", 4): _transform_map_entry,
    ("sortBy", 2): _sort_by,
    ("bind", 3): _cel_bind,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
}
