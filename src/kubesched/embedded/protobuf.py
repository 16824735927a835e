"""Decodes protobuf requests to JSON.

Go programs (``kubectl create namespace`` among them) send objects of built-in kinds in protobuf and
do not fall back to JSON. Responses need no protobuf: the same programs accept JSON.

    "k8s\\0" + Unknown{apiVersion, kind, raw}  ──▶  {"kind": …, "apiVersion": …, "metadata": {…}, …}

``protobuf_fields.txt`` has the fields of each message by number. Go writes unset fields as zero;
they are omitted here where the API omits them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import msgspec

from kubesched.embedded.refusals import StatusError, bad_request

JsonObject = dict[str, Any]

_MAGIC: Final = b"k8s\0"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES: Final = 10
_SCALARS: Final = frozenset("sibdy")


class ProtobufField(NamedTuple):
    """One field of a message."""

    name: str
    #: one of ``_SCALARS``, or the name of a message
    type: str
    #: "*" a list, "%" a map, "~" the fields of the message itself, "" a single value
    shape: str
    #: whether it is present even if zero
    keep: bool


Message = Mapping[int, ProtobufField]


class MalformedError(ValueError):
    """Malformed bytes."""


def decode_object(body: bytes) -> JsonObject:
    """Return an object with kind and apiVersion; raises StatusError 400 if it is malformed."""
    if not body.startswith(_MAGIC):
        raise _refusal("the body does not start as protobuf of the API does")
    try:
        unknown = dict(_fields(body[len(_MAGIC) :]))
        type_meta = dict(_fields(_as_bytes(unknown.get(1, b""))))
        api_version, kind = (_as_bytes(type_meta.get(n, b"")).decode() for n in (1, 2))
        obj = _decode(_as_bytes(unknown.get(2, b"")), _message_of(api_version, kind))
    except (MalformedError, UnicodeDecodeError, msgspec.DecodeError, OverflowError) as error:
        raise _refusal(str(error)) from None
    return {"kind": kind, "apiVersion": api_version, **obj}


def _message_of(api_version: str, kind: str) -> str:
    group = api_version.partition("/")[0].partition(".")[0] if "/" in api_version else ""
    for name in (f"{group}.{kind}", kind):
        if name in _messages():
            return name
    raise MalformedError(f"there is no kind {kind} in {api_version}")


@cache
def _messages() -> Mapping[str, Message]:
    """Return the fields of all messages, loaded once."""
    text = files(__package__).joinpath("protobuf_fields.txt").read_text(encoding="utf-8")
    messages: dict[str, Message] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition(": ")
            messages[name] = dict(map(_field, rest.split()))
    return messages


def _field(text: str) -> tuple[int, ProtobufField]:
    name, _, rest = text.partition("=")
    keep = rest.endswith("!")
    kind = rest.rstrip("!").lstrip("0123456789")
    number = int(rest.rstrip("!")[: len(rest.rstrip("!")) - len(kind)])
    shape = kind[0] if kind[0] in "*%~" else ""
    return number, ProtobufField(name, kind.removeprefix(shape), shape, keep)


# ---------------------------------------------------------------- messages


def _decode(data: bytes, message: str) -> JsonObject:
    known = _messages()[message]
    obj: JsonObject = {}
    for number, raw in _fields(data):
        field = known.get(number)
        if field is None:
            continue
        if field.shape == "~":
            obj.update(_decode(_as_bytes(raw), field.type))
        elif field.shape == "*":
            obj.setdefault(field.name, []).append(_value(raw, field.type))
        elif field.shape == "%":
            entry = dict(_fields(_as_bytes(raw)))
            key = _as_bytes(entry.get(1, b"")).decode()
            obj.setdefault(field.name, {})[key] = _value(entry.get(2, b""), field.type)
        else:
            value = _value(raw, field.type)
            if value is not None and (field.keep or value not in ("", 0, {}, False)):
                obj[field.name] = value
    return obj


def _value(raw: int | bytes, kind: str) -> Any:  # noqa: ANN401  any JSON value
    if kind in _SCALARS:
        return _scalar(raw, kind)
    data = _as_bytes(raw)
    special = _SPECIAL.get(kind)
    return special(data) if special is not None else _decode(data, kind)


def _scalar(raw: int | bytes, kind: str) -> object:
    if kind == "i":
        value = _as_int(raw)
        return value - (1 << 64) if value >= 1 << 63 else value
    if kind == "b":
        return bool(_as_int(raw))
    if kind == "y":
        return base64.b64encode(_as_bytes(raw)).decode()
    return _as_bytes(raw).decode()


def _time(data: bytes) -> str | None:
    return _timestamp(data, "%Y-%m-%dT%H:%M:%SZ")


def _micro_time(data: bytes) -> str | None:
    return _timestamp(data, "%Y-%m-%dT%H:%M:%S.%fZ")


def _timestamp(data: bytes, form: str) -> str | None:
    parts = dict(_fields(data))
    seconds = _scalar(parts.get(1, 0), "i")
    if not isinstance(seconds, int) or (not seconds and 1 not in parts):
        return None
    micro = _as_int(parts.get(2, 0)) // 1000
    try:
        moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=micro)
    except (ValueError, OSError) as error:
        raise MalformedError(f"no moment: {error}") from None
    return None if moment.year <= 1 else moment.strftime(form)


def _quantity(data: bytes) -> str:
    return _as_bytes(dict(_fields(data)).get(1, b"0")).decode() or "0"


def _int_or_string(data: bytes) -> int | str:
    parts = dict(_fields(data))
    if _as_int(parts.get(1, 0)):
        return _as_bytes(parts.get(3, b"")).decode()
    value = _scalar(parts.get(2, 0), "i")
    return value if isinstance(value, int) else 0


def _raw_json(data: bytes) -> Any:  # noqa: ANN401  any JSON value
    raw = _as_bytes(dict(_fields(data)).get(1, b""))
    return msgspec.json.decode(raw) if raw else None


_SPECIAL: Final = {
    "FieldsV1": _raw_json,
    "IntOrString": _int_or_string,
    "MicroTime": _micro_time,
    "Quantity": _quantity,
    "RawExtension": _raw_json,
    "Time": _time,
}


# ---------------------------------------------------------------- the wire


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Return (number, value) of the fields of a message, in their order."""
    place, end = 0, len(data)
    while place < end:
        tag, place = _varint(data, place)
        kind = tag & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, place = _varint(data, place)
        elif kind in {_FIXED64, _FIXED32}:
            size = 8 if kind == _FIXED64 else 4
        else:
            raise MalformedError(f"unknown wire type {kind}")
        if place + size > end:
            raise MalformedError("a field is longer than its message")
        yield tag >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for step, byte in enumerate(data[place : place + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value, place + step + 1
    raise MalformedError("a number does not end")


def _as_bytes(raw: int | bytes) -> bytes:
    if isinstance(raw, int):
        raise MalformedError("a number where bytes belong")
    return raw


def _as_int(raw: int | bytes) -> int:
    if isinstance(raw, bytes):
        raise MalformedError("bytes where a number belongs")
    return raw


def _refusal(why: str) -> StatusError:
    return bad_request(f"the object provided is unrecognized: {why}")
