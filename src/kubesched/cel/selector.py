"""Compiling a selector, and asking it about a device."""

from __future__ import annotations

from kubesched.cel import types
from kubesched.cel.checker import check
from kubesched.cel.costs import COST_LIMIT
from kubesched.cel.device import Device
from kubesched.cel.frames import Frame
from kubesched.cel.parser import parse
from kubesched.cel.plan import PlanError, plan
from kubesched.cel.recursion import deep_recursion
from kubesched.cel.source import Source
from kubesched.cel.syntax import Expr
from kubesched.cel.types import Type
from kubesched.cel.validators import validate
from kubesched.cel.values import CostLimitExceeded, Err, Value
from kubesched.errors import CelError, CelRuntimeError


class Program:
    """A compiled expression."""

    def __init__(self, expression: str, *, cost_limit: int = COST_LIMIT) -> None:
        with deep_recursion():
            self.tree, self.type = _checked(expression)
            try:
                self._evaluate, self._slots = plan(self.tree)
            except PlanError as error:
                raise CelError(f"program instantiation failed: {error}") from None
        self.expression = expression
        self.cost_limit = cost_limit

    def evaluate(self, device: Device) -> tuple[Value, int]:
        """Return the value of the expression, which may be an ``Err``, and what it cost."""
        frame = Frame(device, self._slots, self.cost_limit)
        try:
            value = self._evaluate(frame)
        except CostLimitExceeded:
            return _LIMIT_EXCEEDED, frame.cost
        if frame.cost > frame.limit:
            return _LIMIT_EXCEEDED, frame.cost
        return value, frame.cost


_LIMIT_EXCEEDED = Err("operation cancelled: actual cost limit exceeded")


def _checked(expression: str) -> tuple[Expr, Type]:
    source = Source(expression)
    tree = parse(source)
    if tree is None or source.has_errors:
        raise CelError(f"compilation failed: {source.display()}")
    result = check(tree, source)
    if not source.has_errors:
        validate(tree, source)
    if source.has_errors:
        raise CelError(f"compilation failed: {source.display()}")
    return tree, result


class Selector(Program):
    """An expression that says whether a device is wanted."""

    def __init__(self, expression: str, *, cost_limit: int = COST_LIMIT) -> None:
        super().__init__(expression, cost_limit=cost_limit)
        if self.type not in (types.BOOL, types.DYN):
            raise CelError(f"must evaluate to bool or the unknown type, not {self.type.declared}")

    def matches(self, device: Device) -> bool:
        """Whether the device is wanted; raises CelRuntimeError with upstream's text."""
        value, _ = self.evaluate(device)
        if value is True or value is False:
            return bool(value)
        raise CelRuntimeError(self.error_text(value))

    def error_text(self, value: Value) -> str:
        """Return the text of an evaluation that gave no bool."""
        if isinstance(value, Err):
            return value.message
        return _not_a_bool(value)


def _not_a_bool(value: Value) -> str:
    return f"CEL result of type {value} could not be converted to bool"


def compile_selector(expression: str) -> Selector:
    """Return the compiled selector; raises CelError with upstream's text."""
    return Selector(expression)
