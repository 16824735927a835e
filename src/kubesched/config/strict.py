"""Strict decoding of a JSON tree by a message of the schema.

Tree in, plain dict out: only known fields, every value of its type; null is like absent. Errors are
reported as Go's decoder does: unknown and duplicate fields together; a value of the wrong type only
if no worse error follows; an invalid text (of a duration) ends decoding immediately.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from typing import Final

from kubesched.config.documents import Json, Members, NumberText
from kubesched.config.durations import Duration
from kubesched.config.field_errors import shown
from kubesched.config.schema import Field, Form, ListOf, MapOf, Message, Scalar, WireType
from kubesched.errors import ConfigError

_MAX_STRICT_ERRORS: Final = 100
_INT_BITS: Final = {"int32": 32, "int64": 64}


class _NoValue:
    """Marks a value that is absent, null, or of the wrong type."""


_NOTHING: Final = _NoValue()


def decode(tree: Members, message: Message) -> tuple[dict[str, Json], list[str]]:
    """Decode an object; returns its fields and the strict errors, raises for worse errors."""
    decoder = _Decoder()
    fields = decoder.message(tree, message, _Place())
    if decoder.type_error:
        raise ConfigError(decoder.type_error)
    return fields, decoder.strict_errors


def go_kind(value: object) -> str:
    """Return Go's name of the kind of a JSON value."""
    match value:
        case Members():
            return "object"
        case list():
            return "array"
        case bool():
            return "bool"
        case int() | NumberText():
            return "number"
        case _:
            return "string"


class _Place:
    """The current path: with indexes, and without them as in Go's messages."""

    __slots__ = ("fields", "owner", "path")

    def __init__(self, path: str = "", owner: str = "", fields: tuple[str, ...] = ()) -> None:
        self.path = path
        self.owner = owner
        self.fields = fields

    def member(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def field(self, message: Message, field: Field) -> _Place:
        inlined = (field.embedded,) if field.embedded else ()
        return _Place(self.member(field.name), message.name, (*self.fields, *inlined, field.name))

    def item(self, index: int) -> _Place:
        return _Place(f"{self.path}[{index}]", self.owner, self.fields)

    def key(self, key: str) -> _Place:
        return _Place(self.member(key), self.owner, self.fields)


class _Decoder:
    def __init__(self) -> None:
        self.strict_errors: list[str] = []
        self.type_error = ""

    def message(self, tree: Members, message: Message, place: _Place) -> dict[str, Json]:
        known = {field.name: field for field in message.fields}
        decoded: dict[str, Json] = {}
        seen = set()
        for name, value in tree:
            field = known.get(name)
            if field is None:
                self._strict(f"unknown field {shown(place.member(name))}")
                continue
            if name in seen:
                self._strict(f"duplicate field {shown(place.member(name))}")
            seen.add(name)
            result = self._field(value, field, place.field(message, field))
            if not isinstance(result, _NoValue):
                decoded[name] = result
        for field in message.fields:
            if field.filled and field.name not in decoded:
                decoded[field.name] = _zero(field.type)
        return decoded

    def _field(self, value: object, field: Field, place: _Place) -> Json:
        # Only a pointer can be null for Duration, which reads null as the empty text otherwise.
        is_duration = isinstance(field.type, Scalar) and field.type.form is Form.DURATION
        if value is None and (field.pointer or not is_duration):
            return _NOTHING
        return self._value(value, field.type, place)

    def _value(self, value: object, wire_type: WireType, place: _Place) -> Json:
        match wire_type:
            case Scalar():
                return self._scalar(value, wire_type, place)
            case Message() if isinstance(value, Members):
                return self.message(value, wire_type, place)
            case MapOf() if isinstance(value, Members):
                return self._map(value, wire_type, place)
            case ListOf() if isinstance(value, list) and not isinstance(value, Members):
                return [
                    self._item(item, wire_type.item, place.item(index))
                    for index, item in enumerate(value)
                ]
        return self._wrong(go_kind(value), wire_type.go, place)

    def _item(self, value: object, wire_type: WireType, place: _Place) -> Json:
        decoded = _NOTHING if value is None else self._value(value, wire_type, place)
        return _zero(wire_type) if isinstance(decoded, _NoValue) else decoded

    def _map(self, value: Members, wire_type: MapOf, place: _Place) -> dict[str, Json]:
        decoded: dict[str, Json] = {}
        for key, item in value:
            if key in decoded:
                self._strict(f"duplicate field {shown(place.member(key))}")
            decoded[key] = self._item(item, wire_type.item, place.key(key))
        return decoded

    def _scalar(self, value: Json, scalar: Scalar, place: _Place) -> Json:
        match scalar.form, go_kind(value):
            case (Form.RAW, _) | (Form.STRING, "string") | (Form.BOOL, "bool"):
                return value
            case (Form.DURATION, _):
                return self._duration(value, scalar, place)
            case (Form.BASE64, "string"):
                return self._bytes(value)
            case (Form.INTEGER | Form.FLOAT, "number"):
                return self._number(value, scalar, place)
        return self._wrong(go_kind(value), scalar.go, place)

    def _duration(self, value: Json, scalar: Scalar, place: _Place) -> Duration:
        if value is None:
            return Duration.parse("")
        if go_kind(value) != "string":
            raise ConfigError(_type_error(go_kind(value), scalar.go, place))
        return Duration.parse(value)

    def _bytes(self, text: str) -> bytes | _NoValue:
        try:
            return base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
        except binascii.Error:
            self._remember(f"illegal base64 data at input byte {_first_bad_byte(text)}")
            return _NOTHING

    def _number(self, value: int | NumberText, scalar: Scalar, place: _Place) -> Json:
        if scalar.form is Form.FLOAT:
            if _fits_float32(value):
                return float(value)
        elif isinstance(value, int) and _fits(value, _INT_BITS[scalar.go]):
            return value
        return self._wrong(f"number {value}", scalar.go, place)

    def _wrong(self, found: str, wanted: str, place: _Place) -> _NoValue:
        self._remember(_type_error(found, wanted, place))
        return _NOTHING

    def _remember(self, error: str) -> None:
        self.type_error = self.type_error or error

    def _strict(self, error: str) -> None:
        if len(self.strict_errors) < _MAX_STRICT_ERRORS and error not in self.strict_errors:
            self.strict_errors.append(error)


def _type_error(found: str, wanted: str, place: _Place) -> str:
    field = ".".join((place.owner, *place.fields))
    return f"json: cannot unmarshal {found} into Go struct field {field} of type {wanted}"


def _zero(wire_type: WireType) -> Json:
    match wire_type:
        case ListOf():
            return []
        case MapOf():
            return {}
        case Message():
            return {f.name: _zero(f.type) for f in wire_type.fields if f.filled}
    zeros: dict[Form, Json] = {
        Form.STRING: "",
        Form.BOOL: False,
        Form.INTEGER: 0,
        Form.FLOAT: 0.0,
        Form.DURATION: Duration(),
        Form.BASE64: b"",
    }
    return zeros.get(wire_type.form)


def _fits(value: int, bits: int) -> bool:
    limit = 1 << (bits - 1)
    return -limit <= value < limit


def _fits_float32(value: int | NumberText) -> bool:
    try:
        number = float(value)
        struct.pack("<f", number)
    except OverflowError:
        return False
    return math.isfinite(number)


def _first_bad_byte(text: str) -> int:
    alphabet = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\r\n")
    for index, char in enumerate(text):
        if char not in alphabet and not (char == "=" and set(text[index:]) <= set("=\r\n")):
            return index
    return len(text) - len(text) % 4
