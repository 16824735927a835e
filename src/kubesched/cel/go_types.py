"""Names of Go types, which show in a few of upstream's errors."""

from __future__ import annotations

from typing import Final

from kubesched.cel.conversions import to_string
from kubesched.cel.types import Kind
from kubesched.cel.values import Err, Map, Value, is_list, type_of

#: Longer lists and maps are cut: an error is to be read.
_SHOWN_ELEMENTS: Final = 1000

_BY_KIND: Final = {
    Kind.BOOL: "types.Bool", Kind.INT: "types.Int", Kind.UINT: "types.Uint",
    Kind.DOUBLE: "types.Double", Kind.STRING: "types.String", Kind.BYTES: "types.Bytes",
    Kind.NULL: "types.Null", Kind.LIST: "*types.baseList", Kind.MAP: "*types.baseMap",
    Kind.TIMESTAMP: "types.Timestamp", Kind.DURATION: "types.Duration", Kind.TYPE: "*types.Type",
}  # fmt: skip
_BY_NAME: Final = {
    "optional_type": "*types.Optional", "kubernetes.NamedFormat": "cel.Format",
}  # fmt: skip


def go_type(value: Value) -> str:
    """Return the Go type that upstream represents a value by."""
    if isinstance(value, Err):
        return "*types.Err"
    found = type_of(value)
    known = _BY_KIND.get(found.kind) or _BY_NAME.get(found.name)
    if known is not None:
        return known
    pointer = "*" if getattr(value, "is_pointer", False) else ""
    return f"{pointer}cel.{found.name.rpartition('.')[2]}"


def displayed(value: Value) -> str:
    """Return a value as upstream's errors show it."""
    if is_list(value):
        shown = [displayed(value[index]) for index in range(min(len(value), _SHOWN_ELEMENTS))]
        return f"[{', '.join(shown)}]"
    if isinstance(value, Map):
        entries = list(value.items())[:_SHOWN_ELEMENTS]
        return "{" + ", ".join(f"{displayed(k)}: {displayed(v)}" for k, v in entries) + "}"
    if isinstance(value, bytes):
        return f"[{' '.join(map(str, value[:_SHOWN_ELEMENTS]))}]"
    return "0" if value is None else to_string(value)
