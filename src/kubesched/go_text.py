"""Text as Go's standard library spells it, because users and programs compare it."""

from __future__ import annotations

from typing import Final

#: What Go's strings.TrimSpace removes; str.strip() would remove a few control characters more.
SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)

_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip


def quoted(text: str) -> str:
    """Return a text in double quotes, as ``%q`` and strconv.Quote do."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def quoted_bytes(value: bytes) -> str:
    """Return bytes in double quotes, as ``%q`` does: those that are no text in hexadecimal."""
    return quoted(value.decode(errors="surrogateescape"))


def quoted_ascii(value: bytes) -> str:
    """Return bytes in double quotes, as ``%+q`` does: with nothing but ASCII."""
    text = value.decode(errors="surrogateescape")
    return '"' + "".join(_escaped(c) if c.isascii() else _code(c) for c in text) + '"'


def _escaped(char: str) -> str:
    known = _ESCAPES.get(char)
    if known is not None:
        return known
    return char if char.isprintable() else _code(char)


def _code(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        # A byte that is not UTF-8, as a surrogate of the operating system's text.
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
