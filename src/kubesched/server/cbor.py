"""Encodes plain values as CBOR (RFC 8949), as Kubernetes does.

Deterministic encoding, preceded by the self-described CBOR tag. All text is encoded as byte
strings, because Go strings need not be valid Unicode.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

#: Self-described CBOR, tag 55799.
SELF_DESCRIBED: Final = b"\xd9\xd9\xf7"

_UNSIGNED, _NEGATIVE, _BYTES, _ARRAY, _MAP = (major << 5 for major in (0, 1, 2, 4, 5))
_FALSE, _TRUE, _NULL = b"\xf4", b"\xf5", b"\xf6"
#: Numbers up to this are in the first byte; larger ones follow it.
_LARGEST_INLINE: Final = 23


def encode(value: object) -> bytes:
    """Encode mappings with text as keys, lists, text, integers, booleans and None."""
    return SELF_DESCRIBED + _item(value)


def _item(value: object) -> bytes:
    match value:
        case None:
            return _NULL
        case bool():
            return _TRUE if value else _FALSE
        case int():
            return _head(_UNSIGNED, value) if value >= 0 else _head(_NEGATIVE, -1 - value)
        case str():
            text = value.encode()
            return _head(_BYTES, len(text)) + text
        case list() | tuple():
            return _head(_ARRAY, len(value)) + b"".join(map(_item, value))
        case Mapping():
            pairs = sorted((_item(key), _item(each)) for key, each in value.items())
            return _head(_MAP, len(pairs)) + b"".join(key + each for key, each in pairs)
    raise TypeError(f"cannot encode {type(value).__name__} as CBOR")


def _head(major: int, number: int) -> bytes:
    if number <= _LARGEST_INLINE:
        return bytes([major | number])
    for more, form in enumerate((">B", ">H", ">I", ">Q"), start=1):
        size = struct.calcsize(form)
        if number < 1 << 8 * size:
            return bytes([major | (_LARGEST_INLINE + more)]) + struct.pack(form, number)
    raise OverflowError(f"{number} does not fit into 64 bits")
