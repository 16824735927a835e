"""Regular expressions: ``matches``, ``find`` and ``findAll``."""

from __future__ import annotations

from typing import Final

from kubesched.cel.functions import Function, member
from kubesched.cel.regex import Regex, RegexError, compile_regex
from kubesched.cel.types import INT, STRING, list_of
from kubesched.cel.values import NO_SUCH_OVERLOAD, Err, Value

_STRINGS = list_of(STRING)


def matches(text: str, pattern: Value) -> Value:
    """Whether a pattern matches anywhere in a text."""
    if type(pattern) is not str:
        return NO_SUCH_OVERLOAD
    try:
        return compile_regex(pattern).matches(text)
    except RegexError as error:
        return Err(str(error))


def _find(text: str, pattern: str) -> Value:
    return _with_regex(pattern, lambda regex: found(regex, text))


def _find_all(text: str, pattern: str, limit: int = -1) -> Value:
    return _with_regex(pattern, lambda regex: regex.find_all(text, limit))


def found(regex: Regex, text: str) -> str:
    """Return the first match, or an empty text."""
    span = regex.find(text)
    return "" if span is None else text[span[0] : span[1]]


def _with_regex(pattern: str, use: Value) -> Value:
    try:
        return use(compile_regex(pattern))
    except RegexError as error:
        return Err(f"Illegal regex: {error}")


#: How functions are called whose pattern is a constant, so that it is compiled once: by name.
CONSTANT_PATTERN: Final = {
    "matches": lambda regex, text: regex.matches(text),
    "find": found,
    "findAll": lambda regex, text, limit=-1: regex.find_all(text, limit),
}

FUNCTIONS: Final = [
    Function("find", (member("string_find_string", (STRING, STRING), STRING, _find),)),
    Function(
        "findAll",
        (
            member("string_find_all_string", (STRING, STRING), _STRINGS, _find_all),
            member("string_find_all_string_int", (STRING, STRING, INT), _STRINGS, _find_all),
        ),
    ),
]
