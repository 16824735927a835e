"""The standard library of CEL: operators, conversions, strings, times."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import datetime
from typing import Final

from kubesched.cel import arithmetic, conversions, timestamps
from kubesched.cel.equality import compare, contains
from kubesched.cel.functions import Function, Overload, member
from kubesched.cel.library.regex import matches
from kubesched.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Kind,
    Type,
    list_of,
    map_of,
    param,
    type_of,
)
from kubesched.cel.values import (
    CLASSES,
    NO_SUCH_OVERLOAD,
    CelDuration,
    Err,
    Map,
    Timestamp,
    Value,
    is_list,
    size_of,
)
from kubesched.cel.values import type_of as type_of_value

_A, _B = param("A"), param("B")
_LIST, _MAP = list_of(_A), map_of(_A, _B)
_ORDERED: Final = frozenset(
    {Kind.BOOL, Kind.BYTES, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.STRING, Kind.TIMESTAMP,
     Kind.UINT}
)  # fmt: skip
_SHORT: Final = {INT: "int64", UINT: "uint64", TIMESTAMP: "timestamp", DURATION: "duration"}


def _name(type_: Type) -> str:
    return _SHORT.get(type_, type_.name)


def _of_kind(*kinds: Kind) -> frozenset[type]:
    return frozenset(class_ for kind in kinds for class_ in CLASSES[kind])


# -- operators ----------------------------------------------------------------------------------


def _arithmetic(
    name: str, word: str, signatures: list[tuple[Type, Type, Type]], call: Callable[..., Value]
) -> Function:
    kinds = {left.kind for left, _, _ in signatures}
    overloads = tuple(
        Overload(_overload_id(word, left, right), (left, right), result)
        for left, right, result in signatures
    )
    return Function(name, overloads, operator=call, accepts=_of_kind(*kinds))


def _overload_id(word: str, left: Type, right: Type) -> str:
    if left is _LIST:
        return f"{word}_list"
    if {left, right} <= {TIMESTAMP, DURATION}:
        return f"{word}_{_name(left)}_{_name(right)}"
    return f"{word}_{_name(left)}"


def _relation(name: str, word: str, holds: Callable[[Value, Value], bool]) -> Function:
    def call(left: Value, right: Value) -> Value:
        if type(left) is int and type(right) is int:
            return holds(left, right)
        order = compare(left, right)
        return order if type(order) is Err else holds(order, 0)

    # The order matters where a type is not known yet: the first that fits determines it.
    numbers = {INT: (INT, DOUBLE, UINT), UINT: (UINT, DOUBLE, INT), DOUBLE: (DOUBLE, INT, UINT)}
    pairs = [
        (BOOL, BOOL),
        *((left, right) for left, others in numbers.items() for right in others),
        *((type_, type_) for type_ in (STRING, BYTES, TIMESTAMP, DURATION)),
    ]
    overloads = [
        Overload(
            f"{word}_{_name(left)}" if left == right else f"{word}_{_name(left)}_{_name(right)}",
            (left, right),
            BOOL,
        )
        for left, right in pairs
    ]
    accepts = _of_kind(*_ORDERED)
    return Function(name, tuple(overloads), operator=call, accepts=accepts)


def _not(value: Value) -> Value:
    return (not value) if type(value) is bool else NO_SUCH_OVERLOAD


def _in(element: Value, container: Value) -> Value:
    if is_list(container):
        return contains(container, element)
    if isinstance(container, Map):
        return container.look_up(element)[1]
    return NO_SUCH_OVERLOAD


def _not_strictly_false(value: Value) -> Value:
    return value if type(value) is bool else True


_SAME: Final = [(type_, type_, type_) for type_ in (DOUBLE, INT, UINT)]

_OPERATORS: Final = [
    Function("_?_:_", (Overload("conditional", (BOOL, _A, _A), _A),)),
    Function("_&&_", (Overload("logical_and", (BOOL, BOOL), BOOL),)),
    Function("_||_", (Overload("logical_or", (BOOL, BOOL), BOOL),)),
    Function("!_", (Overload("logical_not", (BOOL,), BOOL),), operator=_not),
    Function(
        "@not_strictly_false",
        (Overload("not_strictly_false", (BOOL,), BOOL, _not_strictly_false),),
        takes_errors=True,
    ),
    Function("_==_", (Overload("equals", (_A, _A), BOOL),)),
    Function("_!=_", (Overload("not_equals", (_A, _A), BOOL),)),
    _arithmetic(
        "_+_", "add",
        [
            (BYTES, BYTES, BYTES), (DOUBLE, DOUBLE, DOUBLE), (DURATION, DURATION, DURATION),
            (DURATION, TIMESTAMP, TIMESTAMP), (TIMESTAMP, DURATION, TIMESTAMP), (INT, INT, INT),
            (_LIST, _LIST, _LIST), (STRING, STRING, STRING), (UINT, UINT, UINT),
        ],
        arithmetic.add,
    ),
    _arithmetic(
        "_-_", "subtract",
        [
            (DOUBLE, DOUBLE, DOUBLE), (DURATION, DURATION, DURATION), (INT, INT, INT),
            (TIMESTAMP, DURATION, TIMESTAMP), (TIMESTAMP, TIMESTAMP, DURATION), (UINT, UINT, UINT),
        ],
        arithmetic.subtract,
    ),
    _arithmetic("_*_", "multiply", _SAME, arithmetic.multiply),
    _arithmetic("_/_", "divide", _SAME, arithmetic.divide),
    _arithmetic("_%_", "modulo", _SAME[1:], arithmetic.modulo),
    Function(
        "-_",
        (Overload("negate_double", (DOUBLE,), DOUBLE), Overload("negate_int64", (INT,), INT)),
        operator=arithmetic.negate,
        accepts=_of_kind(Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT),
    ),
    _relation("_<_", "less", operator.lt),
    _relation("_<=_", "less_equals", operator.le),
    _relation("_>_", "greater", operator.gt),
    _relation("_>=_", "greater_equals", operator.ge),
    Function(
        "_[_]",
        (Overload("index_list", (_LIST, INT), _A), Overload("index_map", (_MAP, _A), _B)),
    ),
    Function(
        "@in",
        (Overload("in_list", (_A, _LIST), BOOL), Overload("in_map", (_A, _MAP), BOOL)),
        operator=_in,
    ),
    Function(
        "size",
        tuple(
            Overload(f"size_{_name(type_)}", (type_,), INT)
            for type_ in (BYTES, _LIST, _MAP, STRING)
        )
        + tuple(
            Overload(f"{_name(type_)}_size", (type_,), INT, is_member=True)
            for type_ in (BYTES, _LIST, _MAP, STRING)
        ),
        operator=size_of,
        accepts=_of_kind(Kind.BYTES, Kind.LIST, Kind.MAP, Kind.STRING),
    ),
]  # fmt: skip


# -- conversions --------------------------------------------------------------------------------


def _same(value: Value) -> Value:
    return value


def _parsed(parse: Callable[[str], Value], target: Type) -> Callable[[str], Value]:
    def call(text: str) -> Value:
        value = parse(text)
        return conversions.failed("string", target) if value is None else value

    return call


def _conversion(name: str, target: Type, sources: dict[Type, Callable[..., Value]]) -> Function:
    overloads = tuple(
        Overload(f"{_name(source)}_to_{_name(target)}", (source,), target, call)
        for source, call in sources.items()
    )
    return Function(name, overloads)


_CONVERSIONS: Final = [
    Function("type", (Overload("type", (_A,), type_of(_A)),), operator=type_of_value),
    Function("dyn", (Overload("to_dyn", (_A,), DYN),), operator=_same),
    _conversion(
        "bool", BOOL, {BOOL: _same, STRING: _parsed(conversions.string_to_bool, BOOL)}
    ),
    _conversion("bytes", BYTES, {BYTES: _same, STRING: str.encode}),
    _conversion(
        "double", DOUBLE,
        {
            DOUBLE: _same, INT: float,
            STRING: _parsed(conversions.string_to_double, DOUBLE), UINT: float,
        },
    ),
    _conversion(
        "duration", DURATION,
        {DURATION: _same, STRING: _parsed(timestamps.parse_duration, DURATION)},
    ),
    _conversion(
        "int", INT,
        {
            INT: _same, DOUBLE: conversions.double_to_int, DURATION: lambda span: span.nanos,
            STRING: _parsed(conversions.string_to_int, INT),
            TIMESTAMP: lambda at: at.nanos // 10**9, UINT: conversions.uint_to_int,
        },
    ),
    _conversion(
        "string", STRING,
        {
            STRING: _same, BOOL: conversions.to_string, BYTES: conversions.bytes_to_string,
            DOUBLE: conversions.to_string, DURATION: conversions.to_string,
            INT: conversions.to_string, TIMESTAMP: conversions.to_string,
            UINT: conversions.to_string,
        },
    ),
    _conversion(
        "timestamp", TIMESTAMP,
        {
            TIMESTAMP: _same, INT: conversions.int_to_timestamp,
            STRING: _parsed(conversions.string_to_timestamp, TIMESTAMP),
        },
    ),
    _conversion(
        "uint", UINT,
        {
            UINT: _same, DOUBLE: conversions.double_to_uint, INT: conversions.int_to_uint,
            STRING: _parsed(conversions.string_to_uint, UINT),
        },
    ),
]  # fmt: skip


# -- strings and times --------------------------------------------------------------------------


def _string_test(name: str, id_: str, test: Callable[[str, str], bool]) -> Function:
    def call(text: Value, part: Value) -> Value:
        if type(text) is str and type(part) is str:
            return test(text, part)
        return NO_SUCH_OVERLOAD

    return Function(name, (member(id_, (STRING, STRING), BOOL, call),), checks_itself=True)


def _calendar(
    name: str, id_: str, part: Callable[[datetime], int],
    of_duration: Callable[[CelDuration], int] | None = None,
) -> Function:  # fmt: skip
    def in_zone(at: Timestamp, zone: str) -> Value:
        try:
            return part(timestamps.local_time(at, zone))
        except timestamps.ZoneError as error:
            return Err(str(error))

    overloads = [
        member(id_, (TIMESTAMP,), INT, lambda at: part(timestamps.local_time(at))),
        member(f"{id_}_with_tz", (TIMESTAMP, STRING), INT, in_zone),
    ]
    if of_duration is not None:
        duration_id = id_.replace("timestamp", "duration")
        overloads.append(member(duration_id, (DURATION,), INT, of_duration))
    return Function(name, tuple(overloads))


def _whole(unit: int) -> Callable[[CelDuration], int]:
    return lambda span: abs(span.nanos) // unit * (-1 if span.nanos < 0 else 1)


_TEXTS_AND_TIMES: Final = [
    _string_test("contains", "contains_string", lambda text, part: part in text),
    _string_test("startsWith", "starts_with_string", str.startswith),
    _string_test("endsWith", "ends_with_string", str.endswith),
    Function(
        "matches",
        (
            Overload("matches", (STRING, STRING), BOOL),
            Overload("matches_string", (STRING, STRING), BOOL, is_member=True),
        ),
        operator=matches,
        accepts=_of_kind(Kind.STRING),
    ),
    _calendar("getFullYear", "timestamp_to_year", lambda at: at.year),
    _calendar("getMonth", "timestamp_to_month", lambda at: at.month - 1),
    _calendar("getDayOfYear", "timestamp_to_day_of_year", lambda at: at.timetuple().tm_yday - 1),
    _calendar("getDayOfMonth", "timestamp_to_day_of_month", lambda at: at.day - 1),
    _calendar("getDate", "timestamp_to_day_of_month_1_based", lambda at: at.day),
    _calendar("getDayOfWeek", "timestamp_to_day_of_week", lambda at: at.isoweekday() % 7),
    _calendar("getHours", "timestamp_to_hours", lambda at: at.hour, _whole(3600 * 10**9)),
    _calendar("getMinutes", "timestamp_to_minutes", lambda at: at.minute, _whole(60 * 10**9)),
    _calendar("getSeconds", "timestamp_to_seconds", lambda at: at.second, _whole(10**9)),
    _calendar(
        "getMilliseconds", "timestamp_to_milliseconds", lambda at: at.microsecond // 1000,
        _whole(10**6),
    ),
]  # fmt: skip

FUNCTIONS: Final = [*_OPERATORS, *_CONVERSIONS, *_TEXTS_AND_TIMES]
