"""The value of an expression as the answer of a selector."""

from __future__ import annotations

from typing import Final

from kubesched.cel.types import Kind
from kubesched.cel.values import Err, Optional, Value, type_of

#: How upstream refuses to take a value for a bool, by the kind of its type.
_REFUSALS: Final = {
    Kind.STRING: "unsupported native conversion from string to 'bool'",
    Kind.INT: "unsupported type conversion from 'int' to bool",
    Kind.UINT: "unsupported type conversion from 'uint' to bool",
    Kind.DOUBLE: "type conversion error from Double to 'bool'",
    Kind.NULL: "type conversion error from 'null_type' to 'bool'",
    Kind.BYTES: "type conversion error from Bytes to 'bool'",
    Kind.LIST: "type conversion error from list to 'bool'",
    Kind.MAP: "type conversion error from map to 'bool'",
    Kind.TIMESTAMP: "type conversion error from 'Timestamp' to 'bool'",
    Kind.DURATION: "type conversion error from 'Duration' to 'bool'",
    Kind.TYPE: "type conversion not supported for 'type'",
}


def as_bool(value: Value) -> bool | Err:
    """Return a bool, or the error that the value is none; an optional counts as what it holds."""
    if value is True or value is False or isinstance(value, Err):
        return value
    inner = value
    while isinstance(inner, Optional) and inner.has_value:
        inner = inner.value
    if inner is True or inner is False:
        return inner
    return Err(
        f"CEL result of type {type_of(value).name} could not be converted to bool: "
        f"{_refusal(inner)}"
    )


def _refusal(value: Value) -> str:
    if isinstance(value, Optional):
        return "optional.none() dereference"
    found = type_of(value)
    if found.kind in _REFUSALS:
        return _REFUSALS[found.kind]
    name = found.name.rpartition(".")[2].removeprefix("Named")
    return f"type conversion error from '{name}' to 'bool'"
