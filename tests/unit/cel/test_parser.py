"""From text to tree: precedence, places, limits."""

from __future__ import annotations

import pytest

from kubesched.cel.parser import parse
from kubesched.cel.source import CelSource
from kubesched.cel.syntax import Call, Expr, Ident, ListExpr, Literal, MapExpr, Select


def shown(expr: Expr | None) -> str:  # noqa: PLR0911 - one line a node
    """A tree in prefix notation."""
    match expr:
        case Literal():
            return repr(expr.value)
        case Ident():
            return expr.name
        case Select():
            return f"{shown(expr.operand)}.{expr.field}{'?' if expr.test_only else ''}"
        case Call():
            target = f"{shown(expr.target)}:" if expr.target else ""
            return f"{target}{expr.function}({', '.join(map(shown, expr.args))})"
        case ListExpr():
            return f"[{', '.join(map(shown, expr.elements))}]"
        case MapExpr():
            return f"{{{', '.join(f'{shown(e.key)}: {shown(e.value)}' for e in expr.entries)}}}"
    return "?"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1 + 2 * 3", "_+_(1, _*_(2, 3))"),
        ("1 - 2 - 3", "_-_(_-_(1, 2), 3)"),
        ("a < b == c", "_==_(_<_(a, b), c)"),
        ("a || b && c || d", "_||_(a, _&&_(b, c), d)"),
        ("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
        ("-1", "-1"),
        ("--1", "1"),
        ("-a", "-_(a)"),
        ("!!a", "a"),
        ("a.b.c", "a.b.c"),
        ("a.b(c)", "a:b(c)"),
        ("a[b].c", "_[_](a, b).c"),
        ("a.?b[?c]", "_[?_](_?._(a, 'b'), c)"),
        ("a.`b-c`", "a.b-c"),
        ("[1, ?a,]", "[1, a]"),
        ("{'a': 1, ?'b': c}", "{'a': 1, 'b': c}"),
        ("a in [1]", "@in(a, [1])"),
        (".a.b", ".a.b"),
        ("has(a.b)", "a.b?"),
        ("(a)", "a"),
    ],
)
def test_trees(text: str, want: str) -> None:
    source = CelSource(text)

    assert shown(parse(source)) == want
    assert not source.has_errors


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1 +", "1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(',"),
        ("if", "1:1: reserved identifier: if"),
        ("9223372036854775808", "1:1: invalid int literal"),
        ("18446744073709551616u", "1:1: invalid uint literal"),
        ("1e999", "1:1: invalid double literal"),
        ('"\\ud800"', "1:1: invalid unicode code point"),
        ("a b", "1:3: Syntax error: extraneous input 'b' expecting <EOF>"),
        ("..a", "1:2: Syntax error: no viable alternative at input '..'"),
    ],
)
def test_errors(text: str, want: str) -> None:
    source = CelSource(text)
    parse(source)

    assert source.display().startswith(f"ERROR: <input>:{want}")
