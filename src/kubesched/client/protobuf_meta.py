"""Changes the finalizers of an object in its protobuf encoding, and no other byte.

    "k8s\\0" · Unknown { 2: object { 1: metadata { 6: resourceVersion, 14: finalizers } } }

In JSON the API server does not preserve the whitespace of a driver's opaque parameters, and then
rejects an update as a change of immutable fields. The protobuf encoding preserves it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubesched.errors import ClientError

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\x00"
_RAW, _METADATA, _RESOURCE_VERSION, _FINALIZERS = 2, 1, 6, 14
#: Wire type of length-delimited fields.
_BYTES: Final = 2


def with_finalizers(message: bytes, finalizers: Sequence[str]) -> bytes:
    """Return the object with these finalizers; raises ClientError if it cannot be decoded."""
    unknown = _body(message)
    raw = _only(unknown, _RAW)
    metadata = _only(raw, _METADATA)
    kept = b"".join(part for number, part, _ in _fields(metadata) if number != _FINALIZERS)
    added = b"".join(_field(_FINALIZERS, each.encode()) for each in finalizers)
    return _MAGIC + _replaced(unknown, _RAW, _replaced(raw, _METADATA, kept + added))


def resource_version(message: bytes) -> str:
    """Return the resource version of an object; raises ClientError if it cannot be decoded."""
    return _only(_only(_only(_body(message), _RAW), _METADATA), _RESOURCE_VERSION).decode()


def _body(message: bytes) -> bytes:
    if not message.startswith(_MAGIC):
        raise ClientError("the API server's answer is not in protobuf form")
    return message[len(_MAGIC) :]


def _only(message: bytes, number: int) -> bytes:
    for found, _, content in _fields(message):
        if found == number:
            return content
    raise ClientError(f"the API server's answer lacks field {number}")


def _replaced(message: bytes, number: int, content: bytes) -> bytes:
    return b"".join(
        _field(number, content) if found == number else part for found, part, _ in _fields(message)
    )


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Return number, bytes and content of each field; only fields with a length have content."""
    at = 0
    while at < len(message):
        start = at
        tag, at = _varint(message, at)
        content = b""
        match tag & 7:
            case 0:
                _, at = _varint(message, at)
            case 1:
                at += 8
            case 2:
                length, at = _varint(message, at)
                content = message[at : at + length]
                at += length
            case 5:
                at += 4
            case _:
                raise ClientError("the API server's answer cannot be read")
        if at > len(message):
            raise ClientError("the API server's answer ends too early")
        yield tag >> 3, message[start:at], content


def _field(number: int, content: bytes) -> bytes:
    return _encoded(number << 3 | _BYTES) + _encoded(len(content)) + content


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            return value, at
    raise ClientError("the API server's answer ends too early")


def _encoded(value: int) -> bytes:
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
