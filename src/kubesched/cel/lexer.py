"""Tokens of the CEL grammar: longest match first, whitespace and comments dropped."""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from kubesched.cel.source import CelSource

EOF: Final = "<EOF>"
IDENTIFIER: Final = "IDENTIFIER"
ESC_IDENTIFIER: Final = "ESC_IDENTIFIER"
NUM_FLOAT: Final = "NUM_FLOAT"
NUM_INT: Final = "NUM_INT"
NUM_UINT: Final = "NUM_UINT"
STRING: Final = "STRING"
BYTES: Final = "BYTES"

#: Words that are tokens of their own, not identifiers.
_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})

_ESCAPE: Final = (
    r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
)


def _quoted(quote: str) -> str:
    """Patterns of a string in this kind of quotes: long, raw long, short, raw short."""
    long = quote * 3
    return "|".join(
        (
            rf"{long}(?:{_ESCAPE}|[^\\])*?{long}",
            rf"[rR]{long}(?s:.)*?{long}",
            rf"{quote}(?:{_ESCAPE}|[^\\{quote}\n\r])*{quote}",
            rf"[rR]{quote}[^{quote}\n\r]*{quote}",
        )
    )


_STRING: Final = f"{_quoted(chr(34))}|{_quoted(chr(39))}"

_TOKEN: Final = rf"""
    (?P<skip>[\t \r\n\f]+|//[^\n]*)
    |(?P<BYTES>[bB](?:{_STRING}))
    |(?P<STRING>{_STRING})
    |(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+
        |\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
    |(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<operator>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """

#: How much of a text that is no token the upstream lexer reads before it gives up.
_UNFINISHED: Final = rf"""
    [bB]?(?:
        \"\"\"(?:{_ESCAPE}|[^\\])*(?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}}|[0-3][0-7]?)?)?
        |'''(?:{_ESCAPE}|[^\\])*(?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}}|[0-3][0-7]?)?)?
        |[rR]?\"(?:{_ESCAPE}|[^\\\"\n\r])*(?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}}|[0-3][0-7]?)?)?
        |[rR]?'(?:{_ESCAPE}|[^\\'\n\r])*(?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}}|[0-3][0-7]?)?)?
    )
    |`[A-Za-z0-9_.\-/\ ]*
    |[&|=]
    """


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when the first text is read: it takes a fifth of the scheduler's start."""
    return re.compile(pattern, re.VERBOSE)


class Token(NamedTuple):
    """A token: its kind (of operators and keywords, the text itself), text and place."""

    kind: str
    text: str
    offset: int


def tokens(source: CelSource) -> list[Token]:
    """Return the tokens of the text, EOF last; what is no token is reported and left out."""
    text, found, at = source.text, [], 0
    match_token = _compiled(_TOKEN).match
    while at < len(text):
        match = match_token(text, at)
        if match is None:
            end = _unrecognized(text, at)
            source.report(at, f"Syntax error: token recognition error at: '{_shown(text[at:end])}'")
            at = end
            continue
        kind, spelled = match.lastgroup or "", match.group()
        if kind == "operator" or (kind == IDENTIFIER and spelled in _KEYWORDS):
            kind = spelled
        if kind != "skip":
            found.append(Token(kind, spelled, at))
        at = match.end()
    found.append(Token(EOF, EOF, len(text)))
    return found


def _unrecognized(text: str, at: int) -> int:
    match = _compiled(_UNFINISHED).match(text, at)
    if match is None or not match.group():
        return at + 1
    # The character on which the lexer got stuck is dropped with what it had read.
    return min(match.end() + 1, len(text))


def _shown(text: str) -> str:
    return text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
