"""Strings: search, cut, replace, join. Positions count characters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesched.cel.functions import Function, Overload, member
from kubesched.cel.go_types import displayed
from kubesched.cel.library.formatting import format_string
from kubesched.cel.limits import check_characters, check_elements
from kubesched.cel.types import DYN, INT, STRING, list_of
from kubesched.cel.values import Err, Value
from kubesched.go_text import SPACE

_STRINGS = list_of(STRING)
_QUOTED: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def _out_of_range(index: int) -> Err:
    return Err(f"index out of range: {index}")


def _char_at(text: str, index: int) -> Value:
    return text[index : index + 1] if 0 <= index <= len(text) else _out_of_range(index)


def _index_of(text: str, part: str, offset: int = 0) -> Value:
    if offset < 0:
        return _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> Value:
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        return _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def _replace(text: str, old: str, new: str, count: int = -1) -> Value:
    found = len(text) + 1 if not old else text.count(old)
    replaced = found if count < 0 else min(found, count)
    check_characters(len(text) + replaced * (len(new) - len(old)))
    return text.replace(old, new, replaced)


def _split(text: str, separator: str, count: int = -1) -> Value:
    if count == 0:
        return []
    if not separator:
        cut = len(text) if count < 0 else min(count - 1, len(text))
        rest = [text[cut:]] if 0 <= cut < len(text) else []
        return [*text[:cut], *rest]
    return text.split(separator, -1 if count < 0 else count - 1)


def _substring(text: str, start: int, end: int | None = None) -> Value:
    stop = len(text) if end is None else end
    if end is not None and start > end:
        return Err(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, stop):
        if not 0 <= index <= len(text):
            return _out_of_range(index)
    return text[start:stop]


def _join(parts: Value, separator: str = "") -> Value:
    check_elements(len(parts))
    for part in parts:
        if type(part) is not str:
            return Err(f"join: invalid input: {displayed(part)}")
    check_characters(sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0))
    return separator.join(parts)


def _quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


def _method(
    name: str, *signatures: tuple[str, tuple[Value, ...], Value, Callable[..., Value]]
) -> Function:
    return Function(name, tuple(member(*signature) for signature in signatures))


FUNCTIONS: Final = [
    _method("charAt", ("string_char_at_int", (STRING, INT), STRING, _char_at)),
    _method(
        "indexOf",
        ("string_index_of_string", (STRING, STRING), INT, _index_of),
        ("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of),
    ),
    _method(
        "lastIndexOf",
        ("string_last_index_of_string", (STRING, STRING), INT, _last_index_of),
        ("string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_of),
    ),
    _method(
        "lowerAscii", ("string_lower_ascii", (STRING,), STRING, lambda it: it.translate(_LOWER))
    ),
    _method(
        "upperAscii", ("string_upper_ascii", (STRING,), STRING, lambda it: it.translate(_UPPER))
    ),
    _method(
        "replace",
        ("string_replace_string_string", (STRING, STRING, STRING), STRING, _replace),
        ("string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace),
    ),
    _method(
        "split",
        ("string_split_string", (STRING, STRING), _STRINGS, _split),
        ("string_split_string_int", (STRING, STRING, INT), _STRINGS, _split),
    ),
    _method(
        "substring",
        ("string_substring_int", (STRING, INT), STRING, _substring),
        ("string_substring_int_int", (STRING, INT, INT), STRING, _substring),
    ),
    _method("trim", ("string_trim", (STRING,), STRING, lambda it: it.strip(SPACE))),
    _method("format", ("string_format", (STRING, list_of(DYN)), STRING, format_string)),
    Function("strings.quote", (Overload("strings_quote", (STRING,), STRING, _quote),)),
    _method(
        "join",
        ("list_join", (_STRINGS,), STRING, _join),
        ("list_join_string", (_STRINGS, STRING), STRING, _join),
    ),
]
