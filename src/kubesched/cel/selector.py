"""Compiling a selector, and asking it about a device."""

from __future__ import annotations

from kubesched.cel import types
from kubesched.cel.answers import as_bool
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
from kubesched.cel.values import Aborted, Err, Value
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
            frame.charge(0)
        except Aborted as reason:
            return Err(str(reason)), frame.cost
        return value, frame.cost


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

    def answer(self, device: Device) -> bool | Err:
        """Return whether the device is wanted, or why that cannot be said."""
        return as_bool(self.evaluate(device)[0])

    def matches(self, device: Device) -> bool:
        """Whether the device is wanted; raises CelRuntimeError with upstream's text."""
        answer = self.answer(device)
        if isinstance(answer, Err):
            raise CelRuntimeError(answer.message)
        return answer


def compile_selector(expression: str) -> Selector:
    """Return the compiled selector; raises CelError with upstream's text."""
    return Selector(expression)
