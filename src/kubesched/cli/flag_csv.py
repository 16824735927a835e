"""One line of comma-separated values, read and written by the rules of Go's encoding/csv.

A value with a comma or a quotation mark is quoted, with inner quotation marks doubled; elsewhere a
quotation mark is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubesched.errors import UsageError

_SPECIAL: Final = frozenset(',"\r\n')


def read_csv(text: str) -> list[str]:
    """Parse the first line; the empty text has no values."""
    if not text:
        return []
    # Only the first non-empty line counts, including quoted line breaks.
    text = text.replace("\r\n", "\n").lstrip("\n")
    if not text:
        raise UsageError("EOF")
    values: list[str] = []
    position = 0
    while True:
        read = _quoted if text[position : position + 1] == '"' else _bare
        value, position = read(text, position)
        values.append(value)
        if text[position : position + 1] != ",":
            return values
        position += 1


def write_csv(values: Iterable[str]) -> str:
    """Format a line that parses back to the values."""
    return ",".join(_written(value) for value in values)


def _written(value: str) -> str:
    plain = not value or not (_SPECIAL & set(value) or value[0].isspace() or value == "\\.")
    return value if plain else '"' + value.replace('"', '""') + '"'


def _bare(text: str, start: int) -> tuple[str, int]:
    end = start
    while end < len(text) and text[end] not in ",\n":
        if text[end] == '"':
            raise UsageError(_at(text, end, 'bare " in non-quoted-field'))
        end += 1
    return text[start:end], end


def _quoted(text: str, start: int) -> tuple[str, int]:
    parts: list[str] = []
    position = start + 1
    while True:
        end = text.find('"', position)
        if end < 0:
            raise UsageError(_at(text, len(text), 'extraneous or missing " in quoted-field'))
        parts.append(text[position:end])
        following = text[end + 1 : end + 2]
        if following == '"':
            parts.append('"')
            position = end + 2
        elif following in {"", ",", "\n"}:
            return "".join(parts), end + 1
        else:
            raise UsageError(_at(text, end, 'extraneous or missing " in quoted-field'))


def _at(text: str, position: int, problem: str) -> str:
    line = text.count("\n", 0, position) + 1
    column = len(text[text.rfind("\n", 0, position) + 1 : position].encode()) + 1
    return f"parse error on line {line}, column {column}: {problem}"
