"""Tokens of the grammar."""

from __future__ import annotations

import pytest

from kubesched.cel.lexer import tokens
from kubesched.cel.source import CelSource


def kinds(text: str) -> list[str]:
    return [token.kind for token in tokens(CelSource(text))]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", []),
        ("a.b", ["IDENTIFIER", ".", "IDENTIFIER"]),
        ("a in b", ["IDENTIFIER", "in", "IDENTIFIER"]),
        ("inside", ["IDENTIFIER"]),
        ("1 0x1F 1u 0x1FU", ["NUM_INT", "NUM_INT", "NUM_UINT", "NUM_UINT"]),
        ("1.5 .5 1e3 1.5e-3", ["NUM_FLOAT"] * 4),
        ("1.foo", ["NUM_INT", ".", "IDENTIFIER"]),
        ("'a' \"b\" '''c''' r'd' R\"\"\"e\"\"\"", ["STRING"] * 5),
        ("b'a' B\"b\" br'c'", ["BYTES"] * 3),
        ("rb'c'", ["IDENTIFIER", "STRING"]),
        ("`a.b/c`", ["ESC_IDENTIFIER"]),
        ("a <= b && c || !d", ["IDENTIFIER", "<=", "IDENTIFIER", "&&", "IDENTIFIER", "||", "!",
                               "IDENTIFIER"]),
        ("a // comment\n+ b", ["IDENTIFIER", "+", "IDENTIFIER"]),
        ("true false null", ["true", "false", "null"]),
    ],
)  # fmt: skip
def test_kinds_of_tokens(text: str, want: list[str]) -> None:
    assert kinds(text) == [*want, "<EOF>"]


@pytest.mark.parametrize(
    ("text", "want"),
    [("@", "'@'"), ('"abc', "'\"abc'"), ("'\\z'", "''\\z'"), ("a & b", "'& '"), ("`", "'`'")],
)
def test_what_is_no_token_is_reported(text: str, want: str) -> None:
    source = CelSource(text)
    tokens(source)

    assert f"Syntax error: token recognition error at: {want}" in source.display()
