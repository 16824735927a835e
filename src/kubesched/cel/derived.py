"""Derived attributes: expressions whose value a claim's constraints compare between devices."""

from __future__ import annotations

from typing import Final

from kubesched.cel import types
from kubesched.cel.costs import COST_LIMIT
from kubesched.cel.device import CelDevice
from kubesched.cel.library.semvers import Semver
from kubesched.cel.selector import Program, checked
from kubesched.cel.types import Kind, Type
from kubesched.cel.values import Err, Optional, Value, is_list, type_of
from kubesched.errors import CelError, CelRuntimeError

_SCALARS: Final = frozenset({types.BOOL, types.INT, types.STRING, types.DYN, types.SEMVER})

#: How Go calls the values of a type, which shows where a value is refused.
_NATIVE: Final = {
    Kind.BOOL: "bool", Kind.INT: "int64", Kind.UINT: "uint64", Kind.DOUBLE: "float64",
    Kind.STRING: "string", Kind.BYTES: "[]uint8", Kind.NULL: "structpb.NullValue",
    Kind.TIMESTAMP: "time.Time", Kind.DURATION: "time.Duration", Kind.LIST: "[]ref.Val",
    Kind.MAP: "map[ref.Val]ref.Val",
}  # fmt: skip
_NATIVE_BY_NAME: Final = {
    "kubernetes.Semver": "semver.Version", "kubernetes.Quantity": "*resource.Quantity",
    "kubernetes.URL": "*url.URL", "net.IP": "netip.Addr", "net.CIDR": "netip.Prefix",
}  # fmt: skip
_WORDS: Final = {"bool": "bool", "int64": "int", "string": "string", "semver.Version": "semver"}


class DerivedAttribute(Program):
    """An expression for a string, an int, a bool, a version, or a list of these."""

    def __init__(self, expression: str, *, cost_limit: int = COST_LIMIT) -> None:
        self.expression = expression
        tree, found = checked(expression)
        if not _is_allowed(found):
            raise CelError(
                "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list "
                f"of these scalars, not {found.declared}"
            )
        super().__init__(tree, cost_limit=cost_limit)

    def value(self, device: CelDevice) -> Value:
        """Return the attribute's value; raises CelRuntimeError with upstream's text."""
        value = _unwrapped(self.evaluate(device))
        problem = value.message if isinstance(value, Err) else _problem(value)
        if problem is not None:
            raise CelRuntimeError(problem)
        return list(value) if is_list(value) else value


def _is_allowed(type_: Type) -> bool:
    if type_.kind is Kind.LIST:
        return type_.parameters[0] in _SCALARS
    return type_ in _SCALARS


def _unwrapped(value: Value) -> Value:
    """Return what an optional holds, and the name of a type."""
    while isinstance(value, Optional) and value.has_value:
        value = value.value
    return value.name if isinstance(value, Type) else value


def _problem(value: Value) -> str | None:
    if isinstance(value, Optional):
        return "unsupported CEL return type: <nil>"
    if isinstance(value, bool | str | Semver) or type(value) is int:
        return None
    if not is_list(value):
        return f"unsupported CEL return type: {_native(value)}"
    wanted = _native(value[0]) if len(value) else "string"
    if wanted not in _WORDS:
        return f"unsupported list element type: {wanted}"
    for index, element in enumerate(value):
        found = _native(element)
        if found != wanted:
            return f"expected list element at index {index} to be {_WORDS[wanted]}, got {found}"
    return None


def _native(value: Value) -> str:
    found = type_of(value)
    return _NATIVE.get(found.kind) or _NATIVE_BY_NAME.get(found.name, found.name)
