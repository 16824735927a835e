"""Lists: those of CEL's extension library and those of Kubernetes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

from kubesched.cel.arithmetic import add
from kubesched.cel.equality import compare, contains, equals, is_comparable
from kubesched.cel.functions import Function, Overload, member
from kubesched.cel.go_types import displayed
from kubesched.cel.limits import check_elements
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
)
from kubesched.cel.values import (
    CLASSES,
    NO_SUCH_OVERLOAD,
    AccumulatorMap,
    CelDuration,
    Err,
    Map,
    Uint,
    Value,
    is_list,
    type_of,
)

_T, _A, _K, _V = param("T"), param("A"), param("K"), param("V")
_LIST = list_of(_T)
_MAP = map_of(_K, _V)
_MAX_RANGE: Final = 1_000_000

_COMPARABLE: Final = {
    "int": INT, "uint": UINT, "double": DOUBLE, "bool": BOOL, "duration": DURATION,
    "timestamp": TIMESTAMP, "string": STRING, "bytes": BYTES,
}  # fmt: skip
_ZEROS: Final = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": CelDuration(0)}


# -- the extension library ----------------------------------------------------------------------


def _slice(values: Value, start: int, end: int) -> Value:
    if start < 0 or end < 0:
        return Err(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return Err(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if len(values) < end:
        return Err(f"cannot slice({start}, {end}), list is length {len(values)}")
    check_elements(end - start)
    return [values[index] for index in range(start, end)]


def _flatten(values: Value, depth: Value = 1) -> Value:
    if not is_list(values):
        return Err(f"no such overload: {type_of(values).name}.flatten()")
    if type(depth) is not int:
        return Err(f"no such overload: {type_of(values).name}.flatten({type_of(depth).name})")
    if depth < 0:
        return Err("level must be non-negative")
    result: list[Value] = []
    pending = [(iter(values), depth)]
    while pending:
        elements, level = pending[-1]
        for element in elements:
            if level > 0 and is_list(element):
                pending.append((iter(element), level - 1))
                break
            result.append(element)
            check_elements(len(result))
        else:
            pending.pop()
    return result


def _range(size: int) -> Value:
    if size < 0:
        return Err(f"lists.range: size must be non-negative, got {size}")
    if size > _MAX_RANGE:
        return Err(f"lists.range: size {size} exceeds maximum allowed ({_MAX_RANGE})")
    return list(range(size))


def _reverse(values: Value) -> Value:
    check_elements(len(values))
    return list(values)[::-1]


def _distinct(values: Value) -> Value:
    unique: list[Value] = []
    for value in values:
        if not any(equals(value, other) is True for other in unique):
            unique.append(value)
    return unique


def _sort(values: Value) -> Value:
    return _sort_by_keys(values, values)


def _sort_by_keys(values: Value, keys: Value) -> Value:
    if len(values) != len(keys):
        return Err(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(values)} and {len(keys)} elements respectively"
        )
    if not len(keys):
        return values
    if not is_comparable(keys[0]):
        return Err("list elements must be comparable")
    wanted = type_of(keys[0])
    if len(keys) > 1 and any(type_of(key) != wanted for key in keys):
        return Err("list elements must have the same type")

    def order(left: tuple[Value, Value], right: tuple[Value, Value]) -> int:
        result = compare(left[0], right[0])
        return result if isinstance(result, int) else 0

    pairs = sorted(zip(keys, values, strict=True), key=functools.cmp_to_key(order))
    return [value for _, value in pairs]


# -- Kubernetes' library ------------------------------------------------------------------------


def _is_sorted(values: Value) -> Value:
    before = None
    for value in values:
        if not is_comparable(value):
            return NO_SUCH_OVERLOAD
        if before is not None and compare(before, value) == 1:
            return False
        before = value
    return True


def _sum(zero: Value) -> Callable[[Value], Value]:
    def call(values: Value) -> Value:
        total = zero
        for value in values:
            total = add(total, value)
            if type(total) is Err:
                return total
        return total

    return call


def _extreme(name: str, worse: int) -> Callable[[Value], Value]:
    def call(values: Value) -> Value:
        best = None
        for value in values:
            if not is_comparable(value):
                return NO_SUCH_OVERLOAD
            if best is None:
                best = value
                continue
            if compare(best, value) == worse:
                best = value
        return Err(f"{name} called on empty list") if best is None else best

    return call


def _index_of(values: Value, wanted: Value) -> Value:
    for index, value in enumerate(values):
        if equals(value, wanted) is True:
            return index
    return -1


def _last_index_of(values: Value, wanted: Value) -> Value:
    for index in range(len(values) - 1, -1, -1):
        if equals(values[index], wanted) is True:
            return index
    return -1


def _includes(target: Value, wanted: Value) -> Value:
    return contains(target, wanted) if is_list(target) else equals(target, wanted) is True


# -- map building, for transformMap -------------------------------------------------------------


def _insert(target: Map, key: Value, value: Value) -> Value:
    if isinstance(target, AccumulatorMap):
        result: Map | None = target if target.insert(key, value) else None
    else:
        result = target.inserted(key, value)
    return Err(f"insert failed: key {displayed(key)} already exists") if result is None else result


def _insert_all(target: Map, update: Map) -> Value:
    for key, value in update.items():
        result = _insert(target, key, value)
        if isinstance(result, Err):
            return result
        target = result
    return target


def _for_each(
    types: dict[str, Type], overload: Callable[[str, Type], Overload]
) -> tuple[Overload, ...]:
    return tuple(overload(name, type_) for name, type_ in types.items())


_SUMMABLE: Final = {name: _COMPARABLE[name] for name in _ZEROS}

FUNCTIONS: Final = [
    Function("slice", (member("list_slice", (_LIST, INT, INT), _LIST, _slice),)),
    Function(
        "flatten",
        (
            member("list_flatten", (list_of(_LIST),), _LIST, _flatten),
            member("list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten),
        ),
        checks_itself=True,
    ),
    Function(
        "sort",
        tuple(
            Overload(f"list_{type_.name}_sort", (list_of(type_),), list_of(type_), is_member=True)
            for type_ in _COMPARABLE.values()
        ),
        operator=_sort,
        accepts=CLASSES[Kind.LIST],
    ),
    Function(
        "@sortByAssociatedKeys",
        tuple(
            Overload(
                f"list_{type_.name}_sortByAssociatedKeys", (_LIST, list_of(type_)), _LIST,
                is_member=True,
            )
            for type_ in _COMPARABLE.values()
        ),
        operator=_sort_by_keys,
        accepts=CLASSES[Kind.LIST],
    ),
    Function("lists.range", (Overload("lists_range", (INT,), list_of(INT), _range),)),
    Function("reverse", (member("list_reverse", (_LIST,), _LIST, _reverse),)),
    Function("distinct", (member("list_distinct", (_LIST,), _LIST, _distinct),)),
    Function(
        "isSorted",
        _for_each(
            _COMPARABLE,
            lambda name, it: member(
                f"list_{name}_is_sorted_bool", (list_of(it),), BOOL, _is_sorted
            ),
        ),
    ),
    Function(
        "sum",
        _for_each(
            _SUMMABLE,
            lambda name, it: member(
                f"list_{name}_sum_{name}", (list_of(it),), it, _sum(_ZEROS[name])
            ),
        ),
    ),
    Function(
        "max",
        _for_each(
            _COMPARABLE,
            lambda name, it: member(
                f"list_{name}_max_{name}", (list_of(it),), it, _extreme("max", -1)
            ),
        ),
    ),
    Function(
        "min",
        _for_each(
            _COMPARABLE,
            lambda name, it: member(
                f"list_{name}_min_{name}", (list_of(it),), it, _extreme("min", 1)
            ),
        ),
    ),
    Function("indexOf", (member("list_a_index_of_int", (list_of(_A), _A), INT, _index_of),)),
    Function(
        "lastIndexOf",
        (member("list_a_last_index_of_int", (list_of(_A), _A), INT, _last_index_of),),
    ),
    Function("includes", (member("list_includes_dyn_dyn", (DYN, DYN), BOOL, _includes),)),
    Function(
        "cel.@mapInsert",
        (
            Overload("@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, _insert),
            Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all),
        ),
    ),
]  # fmt: skip
