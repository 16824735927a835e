"""Literals of the text as values: numbers in their ranges, strings without quotes and escapes."""

from __future__ import annotations

import math
import re
from typing import Final

from kubesched.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint

_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<hex>[xX][0-9a-fA-F]{2})|(?P<unicode>u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
    r"|(?P<octal>[0-3][0-7]{2})|(?P<char>.))|(?P<plain>[^\\]+)",
    re.DOTALL,
)
#: The lexer lets no more through; an integer of this length is out of range anyway.
_MAX_DIGITS: Final = 40


class LiteralError(Exception):
    """A literal that stands for no value; the text is upstream's."""


def integer(text: str) -> int:
    """Return the value of an int literal, with its sign."""
    value = _digits(text)
    if value is None or not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def unsigned(text: str) -> Uint:
    """Return the value of a uint literal, which ends in u."""
    value = _digits(text[:-1])
    if value is None or value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def double(text: str) -> float:
    """Return the value of a double literal."""
    value = float(text)
    if math.isinf(value):
        raise LiteralError("invalid double literal")
    return value


def string(text: str) -> str:
    """Return the value of a string literal, in any of its forms."""
    body, is_raw = _body(text)
    if is_raw or "\\" not in body:
        return body
    parts = []
    for match in _ESCAPE.finditer(body):
        if match["plain"] is not None:
            parts.append(match["plain"])
        elif match["char"] is not None:
            parts.append(_simple(match["char"]))
        elif match["octal"] is not None:
            parts.append(chr(int(match["octal"], 8)))
        else:
            parts.append(_code_point((match["hex"] or match["unicode"])[1:]))
    return "".join(parts)


def byte_string(text: str) -> bytes:
    """Return the value of a bytes literal; \\x and octal escapes are bytes, not characters."""
    body, is_raw = _body(text[1:])
    if is_raw or "\\" not in body:
        return body.encode()
    parts = []
    for match in _ESCAPE.finditer(body):
        if match["plain"] is not None:
            parts.append(match["plain"].encode())
        elif match["char"] is not None:
            parts.append(_simple(match["char"]).encode())
        elif match["octal"] is not None:
            parts.append(bytes([int(match["octal"], 8)]))
        elif match["hex"] is not None:
            parts.append(bytes([int(match["hex"][1:], 16)]))
        else:
            raise LiteralError("unable to unescape string")
    return b"".join(parts)


def _digits(text: str) -> int | None:
    sign = text[:1] if text[:1] == "-" else ""
    digits = text[len(sign) :]
    is_hex = digits.startswith("0x")
    digits = digits.removeprefix("0x").lstrip("0") or "0"
    if len(digits) > _MAX_DIGITS:
        return None
    value = int(digits, 16 if is_hex else 10)
    return -value if sign else value


def _body(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    text = text[1:] if is_raw else text
    quotes = 3 if len(text) >= 6 and text[:3] in ("'''", '"""') else 1
    return text[quotes:-quotes], is_raw


def _simple(char: str) -> str:
    if char not in _SIMPLE:
        raise LiteralError("unable to unescape string")
    return _SIMPLE[char]


def _code_point(digits: str) -> str:
    value = int(digits, 16)
    if value > 0x10FFFF or 0xD800 <= value < 0xE000:
        raise LiteralError("invalid unicode code point")
    return chr(value)
