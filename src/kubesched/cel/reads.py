"""Which parts of a device an expression looks at.

A column is the driver, whether the device can be shared, or one attribute or capacity. Most
selectors name the few columns that they read. Some look at a device in ways that depend on its
values, as a comprehension over its attributes does: what those read is not known.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kubesched.cel.device import DEVICE
from kubesched.cel.syntax import Call, Comprehension, Expr, Ident, Literal, Select, children


class DeviceColumn(NamedTuple):
    """A part of a device; of attributes and capacities, with domain and name."""

    field: str
    domain: str = ""
    name: str = ""


DRIVER: Final = DeviceColumn("driver")
SHAREABLE: Final = DeviceColumn("allowMultipleAllocations")

_MAPS: Final = frozenset({"attributes", "capacity"})
_STEPS: Final = frozenset({"_[_]", "_[?_]", "_?._"})

_Path = tuple[str, ...]


class _UnknownReadsError(Exception):
    """The expression does not say what it reads."""


def columns_read(expr: Expr) -> frozenset[DeviceColumn] | None:
    """Return the columns that an expression reads, or None if that depends on the device."""
    found: set[DeviceColumn] = set()
    try:
        _collect(expr, {}, found)
    except _UnknownReadsError:
        return None
    return frozenset(found)


def _collect(expr: Expr, names: dict[str, _Path | None], found: set[DeviceColumn]) -> None:
    """Add what is read; ``names`` are local variables, with the path they stand for, if any."""
    path = _path(expr, names)
    if path is not None:
        found |= _column(path)
        return
    if _is_lookup(expr):
        key, operand = expr.args  # type: ignore[attr-defined]  # a call
        domain = _path(operand, names)
        if domain is not None and len(domain) == 2:
            found.add(DeviceColumn(domain[0], domain[1], key.value))
            return
    if isinstance(expr, Comprehension):
        _collect_comprehension(expr, names, found)
        return
    for child in children(expr):
        _collect(child, names, found)


def _collect_comprehension(
    expr: Comprehension, names: dict[str, _Path | None], found: set[DeviceColumn]
) -> None:
    _collect(expr.range, names, found)
    # What cel.bind binds may be a domain, whose attributes are then read by another name.
    alias = _path(expr.init, names)
    if alias is None or len(alias) != 2:
        alias = None
        _collect(expr.init, names, found)
    inner = {**names, expr.accumulator: alias, expr.variable: None}
    if expr.variable2 is not None:
        inner[expr.variable2] = None
    for part in (expr.condition, expr.step):
        if not (alias is not None and isinstance(part, Ident)):
            _collect(part, inner, found)
    _collect(expr.result, {**names, expr.accumulator: alias}, found)


def _is_lookup(expr: Expr) -> bool:
    """Whether an expression is ``"name" in ...``."""
    return (
        isinstance(expr, Call)
        and expr.function == "@in"
        and isinstance(expr.args[0], Literal)
        and isinstance(expr.args[0].value, str)
    )


def _column(path: _Path) -> set[DeviceColumn]:
    """Return the column that a path leads to."""
    match path:
        case (("driver" | "allowMultipleAllocations") as field, *_):
            return {DeviceColumn(field)}
        case (("attributes" | "capacity") as field, domain, name, *_):
            return {DeviceColumn(field, domain, name)}
    raise _UnknownReadsError


def _path(expr: Expr, names: dict[str, _Path | None]) -> _Path | None:
    """Return the constant steps from ``device`` that an expression takes, if it is that."""
    if isinstance(expr, Ident):
        bare = expr.name.removeprefix(".")
        if expr.name in names:
            return names[expr.name]
        return () if bare == DEVICE else None
    if isinstance(expr, Select):
        return _extended(_path(expr.operand, names), expr.field)
    if isinstance(expr, Call) and expr.function in _STEPS and isinstance(expr.args[1], Literal):
        key = expr.args[1].value
        if isinstance(key, str):
            return _extended(_path(expr.args[0], names), key)
    return None


def _extended(path: _Path | None, step: str) -> _Path | None:
    return None if path is None else (*path, step)
