"""Compiling a selector, and asking it about a device."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from kubesched.cel import types
from kubesched.cel.answers import as_bool
from kubesched.cel.checker import check
from kubesched.cel.costs import COST_LIMIT
from kubesched.cel.device import CelDevice
from kubesched.cel.frames import Frame
from kubesched.cel.parser import parse
from kubesched.cel.plan import PlanError, plan
from kubesched.cel.reads import DeviceColumn, columns_read
from kubesched.cel.recursion import deep_recursion
from kubesched.cel.source import CelSource
from kubesched.cel.syntax import Expr, depth
from kubesched.cel.types import Type
from kubesched.cel.validators import validate
from kubesched.cel.values import Aborted, CostLimitExceeded, Err, Value
from kubesched.errors import CelError, CelRuntimeError

#: Trees of this depth are evaluated well within Python's default recursion limit.
_SHALLOW: Final = 60


class Program:
    """A checked expression, ready to be evaluated."""

    def __init__(self, tree: Expr, *, cost_limit: int = COST_LIMIT) -> None:
        self.tree = tree
        self.cost_limit = cost_limit
        with deep_recursion():
            try:
                self._evaluate, self._slots = plan(tree)
            except PlanError as error:
                raise CelError(f"program instantiation failed: {error}") from None
        #: evaluation recurses as the tree does, so that a deep one needs room for it
        self._is_deep = depth(tree) > _SHALLOW

    def run(self, device: CelDevice) -> tuple[Value, int]:
        """Return the value of the expression, and what it cost; raises Aborted."""
        frame = Frame(device, self._slots, self.cost_limit)
        if self._is_deep:
            with deep_recursion():
                value = self._evaluate(frame)
        else:
            value = self._evaluate(frame)
        if frame.cost > self.cost_limit:
            raise CostLimitExceeded
        return value, frame.cost

    def evaluate(self, device: CelDevice) -> Value:
        """Return the value of the expression, which may be an ``Err``."""
        try:
            return self.run(device)[0]
        except Aborted as reason:
            return Err(str(reason))


def checked(expression: str) -> tuple[Expr, Type]:
    """Return the typed tree of an expression, and its type; raises CelError."""
    with deep_recursion():
        return _checked_tree(expression)


def _checked_tree(expression: str) -> tuple[Expr, Type]:
    source = CelSource(expression)
    tree = parse(source)
    if tree is None or source.has_errors:
        raise CelError(f"compilation failed: {source.display()}")
    result = check(tree, source)
    if not source.has_errors:
        validate(tree, source)
    if source.has_errors:
        raise CelError(f"compilation failed: {source.display()}")
    return tree, result


class CelSelector(Program):
    """An expression that says whether a device is wanted."""

    def __init__(self, expression: str, *, cost_limit: int = COST_LIMIT) -> None:
        self.expression = expression
        tree, found = checked(expression)
        if found not in (types.BOOL, types.DYN):
            raise CelError(f"must evaluate to bool or the unknown type, not {found.declared}")
        super().__init__(tree, cost_limit=cost_limit)

    @cached_property
    def reads(self) -> frozenset[DeviceColumn] | None:
        """What the selector looks at, or None if that depends on the device."""
        return columns_read(self.tree)

    def answer(self, device: CelDevice) -> bool | Err:
        """Return whether the device is wanted, or why that cannot be said."""
        value = self.evaluate(device)
        return value if value is True or value is False else as_bool(value)

    def matches(self, device: CelDevice) -> bool:
        """Whether the device is wanted; raises CelRuntimeError with upstream's text."""
        answer = self.answer(device)
        if isinstance(answer, Err):
            raise CelRuntimeError(answer.message)
        return answer
