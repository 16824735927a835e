"""The syntax tree of an expression, after macros are expanded.

Nodes are compared by identity. ``offset`` is where an error about the node points to. The checker
adds what it finds out: ``type`` to every node, ``name`` (fully qualified) to identifiers, and to
calls the ids of the overloads that may apply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kubesched.cel.types import Type

#: The variable in which a macro such as ``all`` accumulates; no expression can spell it.
ACCUMULATOR: Final = "@result"


@dataclass(eq=False, slots=True)
class Expr:
    """A node of the tree."""

    offset: int
    #: how deeply operators, selections and indexes are nested in the text below this node
    depth: int = field(default=0, kw_only=True)
    type: Type = field(default=None, kw_only=True)  # type: ignore[assignment]  # the checker's


@dataclass(eq=False, slots=True)
class Literal(Expr):
    """A constant of the text."""

    value: Any


@dataclass(eq=False, slots=True)
class Ident(Expr):
    """A name; with a leading dot it is never a local variable."""

    name: str


@dataclass(eq=False, slots=True)
class Select(Expr):
    """``operand.field``, or ``has(operand.field)``."""

    operand: Expr
    field: str
    test_only: bool = False


@dataclass(eq=False, slots=True)
class Call(Expr):
    """A function, method or operator, under the name that the function table has for it."""

    function: str
    args: list[Expr]
    target: Expr | None = None
    overloads: tuple[str, ...] = ()

    @property
    def operands(self) -> list[Expr]:
        """The arguments, with the target of a method as the first."""
        return self.args if self.target is None else [self.target, *self.args]


@dataclass(eq=False, slots=True)
class ListExpr(Expr):
    """``[a, ?b]``."""

    elements: list[Expr]
    optional: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class MapEntry:
    """A key and a value of a map literal, or a field and its value."""

    offset: int
    key: Expr
    value: Expr
    optional: bool


@dataclass(eq=False, slots=True)
class MapExpr(Expr):
    """``{k: v, ?k: v}``."""

    entries: list[MapEntry]


@dataclass(eq=False, slots=True)
class StructExpr(Expr):
    """``package.Message{field: value}``; fields are entries whose key is a literal."""

    type_name: str
    fields: list[MapEntry]


@dataclass(eq=False, slots=True)
class Comprehension(Expr):
    """A fold: what ``all``, ``map``, ``cel.bind`` and the other macros stand for.

    Starting with ``init``, the accumulator becomes ``step`` for each element of ``range`` while
    ``condition`` holds; ``result`` is computed from the accumulator.
    """

    range: Expr
    variable: str
    variable2: str | None
    accumulator: str
    init: Expr
    condition: Expr
    step: Expr
    result: Expr


def children(expr: Expr) -> list[Expr]:  # noqa: PLR0911 - one line a node
    """Return the direct sub-expressions, in the order in which upstream visits them."""
    match expr:
        case Select():
            return [expr.operand]
        case Call():
            return expr.operands
        case ListExpr():
            return expr.elements
        case MapExpr():
            return [part for entry in expr.entries for part in (entry.key, entry.value)]
        case StructExpr():
            return [entry.value for entry in expr.fields]
        case Comprehension():
            return [
                expr.range, expr.init, expr.condition, expr.step, expr.result,
            ]  # fmt: skip
    return []


def depth(expr: Expr) -> int:
    """Return how deep the tree is."""
    deepest, pending = 0, [(expr, 1)]
    while pending:
        node, level = pending.pop()
        deepest = max(deepest, level)
        pending += [(child, level + 1) for child in children(node)]
    return deepest


def size(expr: Expr) -> int:
    """Return the number of nodes."""
    count, pending = 0, [expr]
    while pending:
        node = pending.pop()
        count += 1
        pending += children(node)
    return count


def copied(expr: Expr) -> Expr:  # noqa: PLR0911 - one line a node
    """Return a deep copy, for macros that use an argument twice."""
    match expr:
        case Literal():
            return Literal(expr.offset, expr.value)
        case Ident():
            return Ident(expr.offset, expr.name)
        case Select():
            return Select(expr.offset, copied(expr.operand), expr.field, expr.test_only)
        case Call():
            target = None if expr.target is None else copied(expr.target)
            return Call(expr.offset, expr.function, [copied(arg) for arg in expr.args], target)
        case ListExpr():
            return ListExpr(expr.offset, [copied(part) for part in expr.elements], expr.optional)
        case MapExpr():
            return MapExpr(expr.offset, [_copied_entry(entry) for entry in expr.entries])
        case StructExpr():
            fields = [_copied_entry(entry) for entry in expr.fields]
            return StructExpr(expr.offset, expr.type_name, fields)
        case Comprehension():
            return Comprehension(
                expr.offset, copied(expr.range), expr.variable, expr.variable2, expr.accumulator,
                copied(expr.init), copied(expr.condition), copied(expr.step), copied(expr.result),
            )  # fmt: skip
    return Expr(expr.offset)


def _copied_entry(entry: MapEntry) -> MapEntry:
    return MapEntry(entry.offset, copied(entry.key), copied(entry.value), entry.optional)
