"""What calls cost.

Cost stands for the work that a call may do: mostly 1, else a tenth of the characters that it looks
at, or the elements. The formulas are upstream's, chosen by the overload if the checker found a single
one, and by the name of the function else. An argument may be an error, which counts as of size 1.

Almost all costs depend on arguments alone, so they are charged before the call is made, and a call
that costs too much is not made at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from kubesched.cel.go_types import go_type
from kubesched.cel.library.formats import Format
from kubesched.cel.types import Kind
from kubesched.cel.values import (
    Aborted,
    Map,
    Object,
    Optional,
    Value,
    is_list,
    size_of,
    type_of,
)

#: What an evaluation may cost.
COST_LIMIT: Final = 1_000_000

IDENT: Final = 1
QUALIFIER: Final = 1
LIST: Final = 10
MAP: Final = 30

_PER_CHARACTER: Final = 0.1
_PER_PATTERN_CHARACTER: Final = 0.25
_CALL: Final = 1

_Formula = Callable[..., int]

_ADDABLE: Final = frozenset(
    {Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.STRING, Kind.BYTES, Kind.TIMESTAMP, Kind.DURATION}
)


class Cost(NamedTuple):
    """The cost of a call: a number, or a formula of its arguments, or of its result as well."""

    fixed: int | None = None
    of_args: _Formula | None = None
    of_result: _Formula | None = None


def call_cost(function: str, overload: str) -> Cost:
    """Return the cost of a call; ``overload`` is empty unless the checker found a single one."""
    return (
        _OF_LIST_OVERLOADS.get(overload)
        or _OF_FUNCTIONS.get(function)
        or _of_overload(overload)
    )


def _of_overload(overload: str) -> Cost:
    if overload in _COMPARED:
        return Cost(of_args=comparison)
    return _OF_OVERLOADS.get(overload, Cost(_CALL))


def size(value: Value) -> int:
    """Return the size that costs are computed from; 1 of what has none."""
    found = size_of(value)
    if found is not None:
        return found
    if isinstance(value, Optional) and value.has_value:
        return size(value.value)
    return 1


def equality(left: Value, right: Value) -> int:
    """The cost of ``==``."""
    return 1 if isinstance(left, Object) else comparison(left, right)


def comparison(left: Value, right: Value) -> int:
    """The cost of comparing two values up to the length of the shorter."""
    return _scan(min(size(left), size(right)))


def _scan(length: float, factor: float = _PER_CHARACTER) -> int:
    return math.ceil(length * factor)


def _own_size(value: Value) -> int:
    """Return a size as Kubernetes' formulas see it: optionals have none."""
    found = size_of(value)
    return 1 if found is None else found


def _traversal(value: Value) -> int:
    """The cost of looking at everything within a value; it stops when it is too much anyway."""
    total = 0
    pending = [value]
    while pending and total <= COST_LIMIT:
        part = pending.pop()
        if isinstance(part, str):
            total += int(len(part.encode()) * _PER_CHARACTER)
        elif isinstance(part, bytes):
            total += int(len(part) * _PER_CHARACTER)
        elif is_list(part):
            if len(part) > COST_LIMIT:
                return len(part)
            pending += part
        elif isinstance(part, Map):
            pending += [item for entry in part.items() for item in entry]
        else:
            total += 1
    return total


def _regex(text: Value, pattern: Value) -> int:
    return _scan(1 + size(text)) * _scan(size(pattern), _PER_PATTERN_CHARACTER)


def _contains(text: Value, part: Value) -> int:
    return _scan(size(text)) * _scan(size(part))


def _contains_ip(network: Value, other: Value, *, is_text: bool) -> int:
    own = _own_size(network)
    return _scan(2 * own) + (_scan(_own_size(other)) if is_text else 0)


def _contains_cidr(network: Value, other: Value, *, is_text: bool) -> int:
    own = _own_size(network)
    return _scan(2 * own) + _scan(own) + 1 + (_scan(_own_size(other)) if is_text else 0)


def _validation(format_: Value, text: Value) -> int:
    if not isinstance(format_, Format):
        return _CALL
    return _scan(1 + _own_size(text)) * _scan(format_.cost_size, _PER_PATTERN_CHARACTER)


def _selector(_target: Value, text: Value) -> int:
    length = _own_size(text)
    return LIST + _scan(length) + _scan(math.ceil(length * 0.5), LIST + 40)


def _set_cost(factor: int) -> Cost:
    return Cost(of_args=lambda left, right: _CALL + size(left) * size(right) * factor)


def _pairwise(values: Value) -> int:
    """The cost of comparing all elements of a list with each other."""
    if not is_list(values):
        raise Aborted(f"internal error: interface conversion: {_not_a_list(values)}")
    if not len(values):
        return _CALL + LIST
    factor = 2.0 + (_PER_CHARACTER if isinstance(values[0], str | bytes) else 0)
    return int(len(values) ** 2 * factor) + _CALL + LIST


def _not_a_list(value: Value) -> str:
    """Return what upstream's interpreter panics with, where it takes a value for a list."""
    missing = "Contains" if type_of(value).kind in _ADDABLE else "Add"
    return f"{go_type(value)} is not traits.Lister: missing method {missing}"


def _flattened(values: Value, depth: Value = 1) -> int:
    if type(depth) is not int:
        text = f"interface conversion: ref.Val is {go_type(depth)}, not types.Int"
        raise Aborted(f"internal error: {text}")
    return size(values) * (depth if depth >= 0 else 1) + _CALL + LIST


_FIRST: Final = Cost(of_args=lambda first, *_: _scan(_own_size(first)))
_FIRST_TWICE: Final = Cost(of_args=lambda first, *_: _scan(_own_size(first), 2 * _PER_CHARACTER))
_TRAVERSAL: Final = Cost(of_args=lambda first, *_: _traversal(first))
_RESULT_SIZE: Final = Cost(of_result=lambda result: size(result) + _CALL + LIST)
_REGEX: Final = Cost(of_args=lambda text, pattern, *_: _regex(text, pattern))
_ONE: Final = Cost(1)

_LIST_TYPES: Final = (
    "int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp",
    "string", "bytes",
)  # fmt: skip

_OF_LIST_OVERLOADS: Final = {
    "list_sets_contains_list": _set_cost(1),
    "list_sets_intersects_list": _set_cost(1),
    "list_sets_equivalent_list": _set_cost(2),
    "list_slice": _RESULT_SIZE,
    "lists_range": _RESULT_SIZE,
    "list_reverse": _RESULT_SIZE,
    "list_flatten": Cost(of_args=_flattened),
    "list_flatten_int": Cost(of_args=_flattened),
    "list_distinct": Cost(of_args=_pairwise),
    **{f"list_{name}_sort": Cost(of_args=_pairwise) for name in _LIST_TYPES},
    **{
        f"list_{name}_sortByAssociatedKeys": Cost(of_args=lambda _values, keys: _pairwise(keys))
        for name in _LIST_TYPES
    },
}

_OF_FUNCTIONS: Final = {
    "check": Cost(350_000),
    **dict.fromkeys(
        "serviceAccount path group resource subresource namespace name allowed reason error "
        "errored".split(),
        _ONE,
    ),
    "fieldSelector": Cost(of_args=_selector),
    "labelSelector": Cost(of_args=_selector),
    **dict.fromkeys("isSorted sum max min indexOf lastIndexOf includes".split(), _TRAVERSAL),
    **dict.fromkeys("url lowerAscii upperAscii substring trim".split(), _FIRST),
    **dict.fromkeys("replace split".split(), _FIRST_TWICE),
    "join": Cost(of_result=lambda result: _scan(_own_size(result), 2 * _PER_CHARACTER)),
    "find": _REGEX,
    "findAll": _REGEX,
    **dict.fromkeys("cidr isIP isCIDR".split(), _FIRST),
    "ip": _FIRST,
    "ip.isCanonical": _FIRST_TWICE,
    **dict.fromkeys(
        "masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast "
        "isLinkLocalUnicast isGlobalUnicast".split(),
        _ONE,
    ),
    "containsIP": Cost(of_args=lambda a, b: _contains_ip(a, b, is_text=isinstance(b, str))),
    "containsCIDR": Cost(of_args=lambda a, b: _contains_cidr(a, b, is_text=isinstance(b, str))),
    **dict.fromkeys("quantity isQuantity semver isSemver".split(), _FIRST),
    "validate": Cost(of_args=_validation),
    "format.named": _ONE,
    **dict.fromkeys(
        "sign asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub "
        "major minor patch getScheme getHostname getHost getPort getEscapedPath getQuery".split(),
        _ONE,
    ),
}

_COMPARED: Final = frozenset(
    f"{word}_{type_}"
    for word in ("less", "greater", "less_equals", "greater_equals")
    for type_ in ("string", "bytes")
)
_SIZE_OF_SECOND: Final = Cost(of_args=lambda _text, part: _scan(size(part)))
_SIZE_OF_FIRST: Final = Cost(of_args=lambda text, *_: _scan(size(text)))
_SIZE_OF_BOTH: Final = Cost(of_args=lambda left, right: _scan(size(left) + size(right)))

_OF_OVERLOADS: Final = {
    "starts_with_string": _SIZE_OF_SECOND,
    "ends_with_string": _SIZE_OF_SECOND,
    "string_to_bytes": _SIZE_OF_FIRST,
    "bytes_to_string": _SIZE_OF_FIRST,
    "strings_quote": _SIZE_OF_FIRST,
    "string_format": _SIZE_OF_FIRST,
    "in_list": Cost(of_args=lambda _element, values: size(values)),
    "add_string": _SIZE_OF_BOTH,
    "add_bytes": _SIZE_OF_BOTH,
    "matches": _REGEX,
    "matches_string": _REGEX,
    "contains_string": Cost(of_args=_contains),
    "cidr_ip": _ONE,
}
