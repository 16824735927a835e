"""Functions: how they are declared, and how a call finds the code for its arguments.

The checker knows which overloads of a function the static types allow. If that is a single one, it
is called, after a look at the actual types, which may differ where a static type is ``dyn``.
Otherwise the actual types choose. An operator has one implementation for all of its overloads
(``operator``), and is for values of certain classes (``accepts``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kubesched.cel.types import Kind, Type
from kubesched.cel.values import (
    CLASSES,
    NO_SUCH_OVERLOAD,
    Err,
    Map,
    Value,
    is_list,
    type_of,
)

Implementation = Callable[..., Value]
_Guard = Callable[[Value], bool]

#: Types that upstream asks once more when an operator does not apply, to the same effect but for
#: the error's text.
_RECEIVERS: Final = frozenset({Kind.STRING, Kind.TIMESTAMP, Kind.DURATION})


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function; of a method, the first argument is the target."""

    id: str
    args: tuple[Type, ...]
    result: Type
    call: Implementation | None = None
    is_member: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function with all its overloads, in the order in which they are tried."""

    name: str
    overloads: tuple[Overload, ...]
    #: one implementation for all overloads
    operator: Implementation | None = None
    #: of an operator: the classes of values that it applies to, as the first argument
    accepts: frozenset[type] | None = None
    #: whether overloads look at the types of their arguments themselves
    checks_itself: bool = False
    #: whether errors are passed in as arguments
    takes_errors: bool = False


@dataclass(frozen=True, slots=True)
class CallImplementation:
    """The code of a call: what to call, and how arguments that are errors are treated."""

    call: Implementation
    #: whether evaluation stops at the first argument that is an error, before the next is looked at
    stops_at_error: bool
    takes_errors: bool = False


def member(id_: str, args: tuple[Type, ...], result: Type, call: Implementation) -> Overload:
    """Return an overload that is called as a method."""
    return Overload(id_, args, result, call, is_member=True)


def merged(functions: list[Function]) -> dict[str, Function]:
    """Return functions by name; overloads that several libraries declare are joined."""
    table: dict[str, Function] = {}
    for function in functions:
        known = table.get(function.name)
        if known is not None:
            function = Function(  # noqa: PLW2901
                known.name, known.overloads + function.overloads, known.operator, known.accepts,
                known.checks_itself, known.takes_errors,
            )  # fmt: skip
        table[function.name] = function
    return table


def bind(function: Function, overload_ids: tuple[str, ...], count: int) -> CallImplementation:
    """Return the code for a call with ``count`` arguments to which these overloads may apply."""
    if function.operator is not None:
        return CallImplementation(_operator(function), stops_at_error=count > 2)
    bound = [overload for overload in function.overloads if overload.call is not None]
    chosen = [overload for overload in bound if (overload.id,) == overload_ids]
    if not chosen and len(bound) == 1:
        chosen = bound
    if chosen:
        call = _guarded(function, chosen[0])
        return CallImplementation(
            call, stops_at_error=count > 2, takes_errors=function.takes_errors
        )
    return CallImplementation(_dispatcher(function, bound), stops_at_error=True)


def no_such_overload(name: str, args: tuple[Value, ...]) -> Err:
    """Return the error of a call that no overload can take."""
    for arg in args:
        if type(arg) is Err:
            return arg
    return Err(f"no such overload: {name}({', '.join(type_of(arg).name for arg in args)})")


def guard(type_: Type) -> _Guard:
    """Return a function that says whether a value can be passed where the type is declared."""
    if type_.kind in (Kind.DYN, Kind.PARAM):
        return lambda value: type(value) is not Err
    if type_.kind is Kind.LIST:
        element = guard(type_.parameters[0])
        return lambda value: is_list(value) and (not len(value) or element(value[0]))
    if type_.kind is Kind.MAP:
        key, item = map(guard, type_.parameters)
        return lambda value: isinstance(value, Map) and _fits_first_entry(value, key, item)
    classes = CLASSES.get(type_.kind)
    if classes is not None and len(classes) == 1:
        (only,) = classes
        return lambda value: type(value) is only
    name = type_.name
    return lambda value: type_of(value).name == name


def _fits_first_entry(value: Map, key: _Guard, item: _Guard) -> bool:
    first = next(iter(value.items()), None)
    return first is None or (key(first[0]) and item(first[1]))


def _operator(function: Function) -> Implementation:
    call, accepts, name = function.operator, function.accepts, function.name
    assert call is not None  # noqa: S101 - the caller looked
    if accepts is None:
        return call

    def checked(first: Value, *rest: Value) -> Value:
        if type(first) in accepts:
            return call(first, *rest)
        if type_of(first).kind in _RECEIVERS:
            return NO_SUCH_OVERLOAD
        return Err(f"no such overload: {name}")

    return checked


def _guarded(function: Function, overload: Overload) -> Implementation:
    call, name = overload.call, function.name
    assert call is not None  # noqa: S101 - the caller looked
    if function.checks_itself or function.takes_errors:
        return call
    guards = tuple(map(guard, overload.args))
    if len(guards) == 1:
        first = guards[0]

        def unary(arg: Value) -> Value:
            return call(arg) if first(arg) else no_such_overload(name, (arg,))

        return unary

    if len(guards) == 2:
        first, second = guards

        def binary(left: Value, right: Value) -> Value:
            if first(left) and second(right):
                return call(left, right)
            return no_such_overload(name, (left, right))

        return binary

    def checked(*args: Value) -> Value:
        for test, arg in zip(guards, args, strict=True):
            if not test(arg):
                return no_such_overload(name, args)
        return call(*args)

    return checked


def _dispatcher(function: Function, overloads: list[Overload]) -> Implementation:
    candidates = [
        (tuple(map(guard, overload.args)), overload.call)
        for overload in overloads
        if overload.call is not None
    ]
    checks_itself, name = function.checks_itself, function.name

    def dispatched(*args: Value) -> Value:
        for guards, call in candidates:
            if len(guards) == len(args) and (
                checks_itself or all(test(arg) for test, arg in zip(guards, args, strict=True))
            ):
                return call(*args)
        return no_such_overload(name, args)

    return dispatched
