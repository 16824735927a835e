"""Sets: lists compared without regard to order and repetition."""

from __future__ import annotations

from typing import Final

from kubesched.cel.equality import contains
from kubesched.cel.functions import Function, Overload
from kubesched.cel.types import BOOL, list_of, param
from kubesched.cel.values import Value

_LIST = list_of(param("T"))


def _contains(values: Value, others: Value) -> bool:
    return all(contains(values, other) for other in others)


def _equivalent(values: Value, others: Value) -> bool:
    return _contains(values, others) and _contains(others, values)


def _intersects(values: Value, others: Value) -> bool:
    return any(contains(others, value) for value in values)


FUNCTIONS: Final = [
    Function(f"sets.{name}", (Overload(f"list_sets_{name}_list", (_LIST, _LIST), BOOL, call),))
    for name, call in (
        ("contains", _contains), ("equivalent", _equivalent), ("intersects", _intersects),
    )
]  # fmt: skip
