"""Checks of a typed tree beyond its types.

Literals that a function cannot take (durations, timestamps, patterns, formats) are errors at once,
and the elements of a list or a map must have one type, except within ``format``.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.cel import conversions, timestamps
from kubesched.cel.library import formatting
from kubesched.cel.regex import RegexError, compile_regex
from kubesched.cel.source import CelSource
from kubesched.cel.syntax import Call, Expr, ListExpr, Literal, MapExpr, children
from kubesched.cel.types import Kind, Type, unwrapped
from kubesched.cel.values import Err


def validate(expr: Expr, source: CelSource) -> None:
    """Report what is wrong; errors go to the source."""
    nodes = list(_nodes(expr, is_exempt=False))
    for node, is_exempt in nodes:
        if isinstance(node, Call):
            _validate_call(node, source)
        elif isinstance(node, ListExpr) and not is_exempt:
            _validate_list(node, source)
    for node, is_exempt in nodes:
        if isinstance(node, MapExpr) and not is_exempt:
            _validate_map(node, source)


def _nodes(expr: Expr, *, is_exempt: bool) -> Iterator[tuple[Expr, bool]]:
    pending = [(expr, is_exempt)]
    while pending:
        node, exempt = pending.pop()
        yield node, exempt
        exempt = exempt or (isinstance(node, Call) and node.function == "format")
        pending += [(child, exempt) for child in reversed(children(node))]


def _validate_call(call: Call, source: CelSource) -> None:
    literal = call.args[0] if call.args else None
    if isinstance(literal, Literal) and call.function in _LITERAL_CHECKS:
        if not _LITERAL_CHECKS[call.function](literal.value):
            source.report(literal.offset, f"invalid {call.function} argument")
    elif call.function == "format" and isinstance(literal, ListExpr):
        template = call.target.value if isinstance(call.target, Literal) else None
        if isinstance(template, str):
            _validate_format(call, template, literal.elements, source)


def _is_duration(value: object) -> bool:
    return not isinstance(value, str) or timestamps.parse_duration(value) is not None


def _is_timestamp(value: object) -> bool:
    if isinstance(value, str):
        parsed = conversions.string_to_timestamp(value)
        return parsed is not None and not isinstance(parsed, Err)
    return not isinstance(value, int) or not isinstance(conversions.int_to_timestamp(value), Err)


def _is_regex(value: object) -> bool:
    try:
        compile_regex(str(value))
    except RegexError:
        return False
    return True


_LITERAL_CHECKS = {"duration": _is_duration, "timestamp": _is_timestamp, "matches": _is_regex}


def _validate_format(call: Call, template: str, args: list[Expr], source: CelSource) -> None:
    used = 0
    for part in formatting.clauses(template):
        if isinstance(part, str):
            continue
        number, clause, _ = part
        # A clause counts as an argument that is asked for, even if it cannot be read.
        used += 1
        if isinstance(clause, formatting.FormatError):
            source.report(call.offset, str(clause))
            return
        if number >= len(args):
            source.report(call.offset, f"index {number} out of range")
            return
        wrong = _wrong_argument(args[number], clause)
        if wrong is not None:
            text = f"error during formatting: {clause.refusal(wrong.type)}"
            source.report(wrong.offset, text)
            return
    if len(args) > used:
        text = f"too many arguments supplied to string.format (expected {used}, got {len(args)})"
        source.report(call.offset, text)


def _wrong_argument(arg: Expr, clause: formatting.Clause) -> Expr | None:
    """Return the argument, or the part of it, that has a wrong type for the clause."""
    if arg.type.kind is not Kind.DYN and arg.type.kind not in clause.kinds:
        return arg
    if clause is formatting.CLAUSES["s"] and isinstance(arg, ListExpr | MapExpr):
        for part in children(arg):
            wrong = _wrong_argument(part, clause)
            if wrong is not None:
                return wrong
    return None


def _validate_list(expr: ListExpr, source: CelSource) -> None:
    wanted: Type | None = None
    for index, element in enumerate(expr.elements):
        found = unwrapped(element.type)[0] if index in expr.optional else element.type
        if wanted is None:
            wanted = found
        elif wanted != found:
            _mismatch(element, wanted, found, source)
            return


def _validate_map(expr: MapExpr, source: CelSource) -> None:
    key: Type | None = None
    value: Type | None = None
    for entry in expr.entries:
        found = unwrapped(entry.value.type)[0] if entry.optional else entry.value.type
        if key is None or value is None:
            key, value = entry.key.type, found
            continue
        if key != entry.key.type:
            _mismatch(entry.key, key, entry.key.type, source)
        if value != found:
            _mismatch(entry.value, value, found, source)


def _mismatch(expr: Expr, expected: Type, found: Type, source: CelSource) -> None:
    source.report(expr.offset, f"expected type '{expected}' but found '{found}'")
