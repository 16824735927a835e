"""``"%s is %d".format([x, y])``: the clauses, and how values are spelled in them.

The same clauses are checked against static types at compile time: see ``validators.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Final

from kubesched.cel import conversions
from kubesched.cel.limits import check_characters, check_elements
from kubesched.cel.types import Kind, Type
from kubesched.cel.values import Err, Map, Value, type_of
from kubesched.go_text import quoted, quoted_bytes

_DEFAULT_PRECISION: Final = 6
_MAX_GO_PRECISION: Final = 1_000_000
_SUPERSCRIPTS: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_PRECISION: Final = re.compile(r"\.([0-9]*)")

_TEXT_KINDS: Final = frozenset(
    {Kind.LIST, Kind.MAP, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.BOOL, Kind.STRING,
     Kind.TIMESTAMP, Kind.BYTES, Kind.DURATION, Kind.TYPE, Kind.NULL}
)  # fmt: skip
_INTEGERS: Final = frozenset({Kind.INT, Kind.UINT})
_NUMBER_TEXTS: Final = frozenset({"NaN", "Infinity", "-Infinity"})


class FormatError(Exception):
    """A format that cannot be applied; the text is upstream's."""


class Clause:
    """A clause such as %.3f: how it is spelled, and which types it is for."""

    def __init__(
        self, kinds: frozenset[Kind], complaint: str, render: Callable[[Value, int], str]
    ) -> None:
        self.kinds = kinds
        self._complaint = complaint
        self._render = render

    def refusal(self, type_: Type) -> str:
        """Return why a value of this type cannot be formatted."""
        return f"{self._complaint}, was given {type_.name}"

    def render(self, value: Value, precision: int) -> str:
        """Return the text of a value."""
        if type_of(value).kind not in self.kinds:
            raise FormatError(f"error during formatting: {self.refusal(type_of(value))}")
        try:
            return self._render(value, precision)
        except FormatError as error:
            raise FormatError(f"error during formatting: {error}") from None


def format_string(template: str, args: Value) -> Value:
    """Return the template with its clauses replaced by the arguments."""
    parts, length = [], 0
    try:
        for part in clauses(template):
            text = part if isinstance(part, str) else _applied(part, args)
            length += len(text)
            check_characters(length)
            parts.append(text)
    except FormatError as error:
        return Err(str(error))
    return "".join(parts)


def clauses(template: str) -> list[str | tuple[int, Clause | FormatError, int]]:
    """Return texts and clauses of a template: (number, clause or what is wrong with it, precision).

    What follows a clause that is wrong is left out: it is never looked at.
    """
    found: list[str | tuple[int, Clause | FormatError, int]] = []
    at = number = 0
    while at < len(template):
        start = template.find("%", at)
        if start < 0:
            found.append(template[at:])
            break
        if start > at:
            found.append(template[at:start])
        if template[start + 1 : start + 2] == "%":
            found.append("%")
            at = start + 2
            continue
        clause, precision, at = _clause(template, start + 1)
        found.append((number, clause, precision))
        if isinstance(clause, FormatError):
            break
        number += 1
    return found


def _clause(template: str, at: int) -> tuple[Clause | FormatError, int, int]:
    if at >= len(template):
        return FormatError("unexpected end of string"), 0, at
    precision = _DEFAULT_PRECISION
    match = _PRECISION.match(template, at)
    if match:
        at = match.end()
        wrong = "could not parse formatting clause: error while parsing precision: "
        if at >= len(template):
            return FormatError(f"{wrong}could not find end of precision specifier"), 0, at
        if not match[1] or len(match[1]) > 18:
            reason = "invalid syntax" if not match[1] else "value out of range"
            detail = f"strconv.Atoi: parsing {quoted(match[1])}: {reason}"
            text = f"{wrong}error while converting precision to integer: {detail}"
            return FormatError(text), 0, at
        precision = int(match[1])
    char = template[at]
    clause = CLAUSES.get(char)
    if clause is None:
        # Upstream looks at a byte, so it shows the first byte of a character.
        shown = char if char.isascii() else chr(char.encode()[0])
        text = f'could not parse formatting clause: unrecognized formatting clause "{shown}"'
        return FormatError(text), 0, at
    return clause, precision, at + 1


def _applied(part: tuple[int, Clause | FormatError, int], args: Value) -> str:
    number, clause, precision = part
    if number >= len(args):
        raise FormatError(f"index {number} out of range")
    if isinstance(clause, FormatError):
        raise clause
    return clause.render(args[number], precision)


# -- how values are spelled ---------------------------------------------------------------------


def _text(value: Value, _precision: int = 0) -> str:
    kind = type_of(value).kind
    if kind is Kind.LIST:
        return f"[{_joined(map(_nested, value))}]"
    if kind is Kind.MAP:
        return _map_text(value)
    if kind is Kind.NULL:
        return "null"
    if kind is Kind.TYPE:
        name: str = value.name
        return name
    if kind is Kind.BYTES:
        decoded = conversions.bytes_to_string(value)
        if isinstance(decoded, Err):
            raise FormatError(f'could not convert argument "{decoded.message}" to string')
        return str(decoded)
    return conversions.to_string(value)


def _nested(value: Value) -> str:
    """Return a value as it would be written in an expression."""
    kind = type_of(value).kind
    if kind is Kind.STRING:
        return quoted(value)
    if kind is Kind.BYTES:
        return "b" + quoted_bytes(value)
    if kind is Kind.DOUBLE:
        if math.isfinite(value):
            return f"{value:.6f}"
        return quoted("NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf")
    if kind in (Kind.TIMESTAMP, Kind.DURATION):
        name = "timestamp" if kind is Kind.TIMESTAMP else "duration"
        return f"{name}({quoted(conversions.to_string(value))})"
    if kind not in _TEXT_KINDS:
        raise FormatError(f"no formatting function for {type_of(value).name}")
    return _text(value)


def _map_text(value: Map) -> str:
    entries = []
    for key, item in value.items():
        kind = type_of(key).kind
        if kind not in (Kind.STRING, Kind.BOOL, Kind.INT, Kind.UINT):
            raise FormatError(f"no formatting function for map key of type {type_of(key).name}")
        entries.append((_nested(key), _nested(item)))
    return "{" + _joined(f"{key}:{item}" for key, item in sorted(entries)) + "}"


def _joined(texts: Iterable[str]) -> str:
    """Join the texts of elements, unless they are too many or too long."""
    parts, length = [], 0
    for text in texts:
        parts.append(text)
        length += len(text)
        check_elements(len(parts))
        check_characters(length)
    return ", ".join(parts)


def _decimal(value: Value, _precision: int) -> str:
    return str(int(value))


def _fixed(value: Value, precision: int) -> str:
    number = _number(value)
    if not math.isfinite(number):
        return _special(number)
    if precision > _MAX_GO_PRECISION:
        return "%!(BADPREC)" + f"{number:,.6f}"
    return f"{number:,.{precision}f}"


def _scientific(value: Value, precision: int) -> str:
    """Spell a number as Go's printer of localized text does: with a power of ten.

    Upstream passes the precision as a width, so that the digits are always six.
    """
    number = _number(value)
    if not math.isfinite(number):
        return _special(number).rjust(precision)
    mantissa, _, exponent = f"{number:.6e}".partition("e")
    power = f"{int(exponent):03d}" if int(exponent) < 0 else f"{int(exponent):02d}"
    return f"{mantissa}\u202f\u00d7\u202f10{power.translate(_SUPERSCRIPTS)}".rjust(
        min(precision, _MAX_GO_PRECISION)
    )


def _number(value: Value) -> float:
    if isinstance(value, float):
        return value
    if value not in _NUMBER_TEXTS:
        raise FormatError("fixed-point clause can only be used on doubles, was given string")
    return float(value)


def _special(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _binary(value: Value, _precision: int) -> str:
    return f"{int(value):b}"


def _octal(value: Value, _precision: int) -> str:
    return f"{int(value):o}"


def _hexadecimal(value: Value, _precision: int) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, str):
        return value.encode().hex()
    return f"{int(value):x}"


def _upper_hexadecimal(value: Value, precision: int) -> str:
    return _hexadecimal(value, precision).upper()


_HEX: Final = "only integers, byte buffers, and strings can be formatted as hex"
_HEX_KINDS: Final = _INTEGERS | {Kind.STRING, Kind.BYTES}
_DOUBLES: Final = frozenset({Kind.DOUBLE, Kind.STRING})

CLAUSES: Final = {
    "s": Clause(
        _TEXT_KINDS,
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
        "types, durations, and timestamps",
        _text,
    ),
    "d": Clause(_INTEGERS, "decimal clause can only be used on integers", _decimal),
    "f": Clause(_DOUBLES, "fixed-point clause can only be used on doubles", _fixed),
    "e": Clause(_DOUBLES, "scientific clause can only be used on doubles", _scientific),
    "b": Clause(
        _INTEGERS | {Kind.BOOL}, "only integers and bools can be formatted as binary", _binary
    ),
    "x": Clause(_HEX_KINDS, _HEX, _hexadecimal),
    "X": Clause(_HEX_KINDS, _HEX, _upper_hexadecimal),
    "o": Clause(_INTEGERS, "octal clause can only be used on integers", _octal),
}
