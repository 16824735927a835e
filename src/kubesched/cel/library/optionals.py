"""Optional values: ``optional.of``, ``hasValue``, and lists of optionals.

``or`` and ``orValue`` evaluate their argument only if they need it, so the planner does them.
"""

from __future__ import annotations

from typing import Final

from kubesched.cel.functions import Function, Overload, member
from kubesched.cel.types import BOOL, DYN, INT, STRING, Type, list_of, map_of, optional_of, param
from kubesched.cel.values import (
    NONE,
    CelDuration,
    Err,
    Map,
    Optional,
    Timestamp,
    Value,
    is_list,
)

_K, _V = param("K"), param("V")
_OPTIONAL, _LIST, _MAP = optional_of(_V), list_of(_V), map_of(_K, _V)
#: The zero of Go's time: the first second of year 1.
_ZERO_TIME_NANOS: Final = -62135596800 * 10**9


def _of_non_zero(value: Value) -> Value:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Value) -> bool:
    if isinstance(value, Map) or is_list(value):
        return len(value) == 0
    if isinstance(value, CelDuration):
        return value.nanos == 0
    if isinstance(value, Timestamp):
        return value.nanos == _ZERO_TIME_NANOS
    if isinstance(value, Type):
        return False
    return value is None or (isinstance(value, int | float | str | bytes) and not value)


def value_of(optional: Optional) -> Value:
    """Return the value, or the error that there is none."""
    return optional.value if optional.has_value else Err("optional.none() dereference")


def _unwrap(values: Value) -> Value:
    for value in values:
        if not isinstance(value, Optional):
            return Err("value is not optional")
    return [value.value for value in values if value.has_value]


FUNCTIONS: Final = [
    Function("optional.of", (Overload("optional_of", (_V,), _OPTIONAL, Optional),)),
    Function(
        "optional.ofNonZeroValue",
        (Overload("optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero),),
    ),
    Function("optional.none", (Overload("optional_none", (), _OPTIONAL, lambda: NONE),)),
    Function("value", (member("optional_value", (_OPTIONAL,), _V, value_of),)),
    Function(
        "hasValue", (member("optional_hasValue", (_OPTIONAL,), BOOL, lambda it: it.has_value),)
    ),
    Function(
        "or",
        (Overload("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, is_member=True),),
    ),
    Function("orValue", (Overload("optional_orValue_value", (_OPTIONAL, _V), _V, is_member=True),)),
    Function("_?._", (Overload("select_optional_field", (DYN, STRING), _OPTIONAL),)),
    Function(
        "_[?_]",
        (
            Overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
            Overload("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL),
            Overload("map_optindex_optional_value", (_MAP, _K), _OPTIONAL),
            Overload("optional_map_optindex_optional_value", (optional_of(_MAP), _K), _OPTIONAL),
        ),
    ),
    Function(
        "_[_]",
        (
            Overload("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL),
            Overload("optional_map_index_value", (optional_of(_MAP), _K), _OPTIONAL),
        ),
    ),
    Function(
        "last",
        (
            member(
                "list_last",
                (_LIST,),
                _OPTIONAL,
                lambda it: Optional(it[-1 + len(it)]) if len(it) else NONE,
            ),
        ),
    ),
    Function(
        "first",
        (
            member(
                "list_first", (_LIST,), _OPTIONAL, lambda it: Optional(it[0]) if len(it) else NONE
            ),
        ),
    ),
    Function(
        "optional.unwrap", (Overload("optional_unwrap", (list_of(_OPTIONAL),), _LIST, _unwrap),)
    ),
    Function("unwrapOpt", (member("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, _unwrap),)),
]
