"""Named values of a log line, quoted as klog quotes them.

Text is quoted by Go's rules, or printed as a block if it has several lines. References to objects
are ``"namespace/name"``. Numbers, lists and mappings are JSON. Anything else is its ``str()``.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from kubesched.go_text import quoted, quoted_ascii

#: Escaped by Go's JSON encoder, to be safe in a script element.
_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_LARGEST_PLAIN: Final = 1e21
_SMALLEST_PLAIN: Final = 1e-6


class ObjectRef(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The name of an API object; in JSON it stays an object."""

    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def ref(namespace: str, name: str) -> ObjectRef:
    """Name an object; the namespace of a cluster-wide one is empty."""
    return ObjectRef(name, namespace)


def klog_line(message: str, /, **fields: object) -> str:
    """Format a message and its values as klog does, without the line header."""
    return line(message, fields)


def line(message: str, fields: Mapping[str, object]) -> str:
    """Format a message and a mapping of values as klog does."""
    return quoted(message) + "".join(f" {key}{_text(value)}" for key, value in fields.items())


def json_value(value: object) -> object:
    """Convert a value to its form in a JSON log line."""
    if value is None or isinstance(value, str | int | float | list | tuple | dict | ObjectRef):
        return value
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return str(value)


def _text(value: object) -> str:
    """Format ``=value``, or the block of a multi-line text."""
    if isinstance(value, str):
        return _text_of_string(value)
    if isinstance(value, ObjectRef):
        return f'="{value}"'
    if isinstance(value, bytes):
        return f"={quoted_ascii(value)}"
    plain = json_value(value)
    return _text_of_string(plain) if isinstance(plain, str) else f"={_json(plain)}"


def _text_of_string(text: str) -> str:
    if "\n" not in text:
        return f"={quoted(text)}"
    lines = text.removesuffix("\n").split("\n")
    return "=<\n" + "".join(f"\t{each}\n" for each in lines) + " >"


def _json(value: object) -> str:
    if isinstance(value, float):
        return _go_float(value)
    if isinstance(value, list | tuple) and any(isinstance(each, ObjectRef) for each in value):
        return f"[{','.join(_text(each)[1:] for each in value)}]"
    encoded = msgspec.json.encode(value, enc_hook=_as_json).decode()
    return encoded.translate(_HTML)


def _as_json(value: Any) -> object:  # noqa: ANN401 (any type that msgspec does not know)
    return json_value(value)


def _go_float(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 (only NaN is not itself)
        return '"<internal error: json: unsupported value>"'
    if value and (abs(value) < _SMALLEST_PLAIN or abs(value) >= _LARGEST_PLAIN):
        mantissa, _, exponent = repr(value).partition("e")
        return f"{mantissa}e{int(exponent):+d}"
    return f"{Decimal(repr(value)):f}".removesuffix(".0")
