"""Trees of expressions: how deep and large they are, and copies of them."""

from __future__ import annotations

import pytest

from kubesched.cel.parser import parse
from kubesched.cel.source import CelSource
from kubesched.cel.syntax import Expr, children, copied, depth, size


def tree(text: str) -> Expr:
    parsed = parse(CelSource(text))
    assert parsed is not None
    return parsed


@pytest.mark.parametrize(
    ("text", "levels", "nodes"),
    [
        ("1", 1, 1),
        ("1 + 2", 2, 3),
        ("-(1 + 2)", 3, 4),
        ("[1, [2]]", 3, 4),
        ("a.b.c", 3, 3),
        ("{1: 2}", 2, 3),
    ],
)
def test_depth_and_size(text: str, levels: int, nodes: int) -> None:
    assert depth(tree(text)) == levels
    assert size(tree(text)) == nodes


def nodes_of(expr: Expr) -> list[Expr]:
    return [expr, *(below for child in children(expr) for below in nodes_of(child))]


@pytest.mark.parametrize(
    "text", ["a.b[1] ? {1: [2]} : c(d, 3)", "[1, 2].all(x, x > 0)", "has(a.b) && !c.d('x')"]
)
def test_a_copy_shares_no_node(text: str) -> None:
    original = tree(text)
    copy = copied(original)
    assert [type(each) for each in nodes_of(copy)] == [type(each) for each in nodes_of(original)]
    assert not {id(each) for each in nodes_of(copy)} & {id(each) for each in nodes_of(original)}
