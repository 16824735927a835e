"""From a checked tree to closures that evaluate it.

Each node becomes a function of a frame, which returns a value (an ``Err`` among them) and adds to
the frame's cost what upstream's interpreter would count:

- Names with selections and indexes behind them are one *attribute*:
  ``device.attributes["d"].model`` costs 1 for each step and 1 for the attribute.
- A conditional ``c ? a : b`` of attributes is an attribute itself: steps that follow it are taken
  within the branch, and the branch does not count as an attribute of its own.
- Constants, and lists and maps of constants, cost nothing. Conversions of constants are done now,
  and their errors are errors of compilation.
- ``x in [constants]`` is a lookup in a set, which costs nothing.
- ``&&`` and ``||`` evaluate a term only if those before have not decided.

Functions that are arguments of a call are all evaluated, even if the first is an error; a call of
three or more arguments, or one that picks its overload at run time, stops at the first error.
"""

from __future__ import annotations

from typing import Final

from kubesched.cel import costs, evaluators, folds
from kubesched.cel.attributes import (
    AbsoluteAttribute,
    Attribute,
    ConditionalAttribute,
    Qualifier,
    RelativeAttribute,
    invalid_key,
)
from kubesched.cel.device import DEVICE, CelDevice
from kubesched.cel.environment import FUNCTIONS, TYPE_NAMES
from kubesched.cel.frames import Evaluate, Frame
from kubesched.cel.functions import CallImplementation, bind
from kubesched.cel.library.regex import CONSTANT_PATTERN
from kubesched.cel.regex import RegexError, compile_regex
from kubesched.cel.syntax import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
)
from kubesched.cel.types import Kind
from kubesched.cel.values import (
    INT_MAX,
    NO_SUCH_OVERLOAD,
    UNHASHABLE,
    Aborted,
    Err,
    Uint,
    Value,
    is_list,
    type_of,
)

_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_PRIMITIVE: Final = frozenset(
    {Kind.BOOL, Kind.BYTES, Kind.DOUBLE, Kind.INT, Kind.STRING, Kind.UINT}
)


class PlanError(Exception):
    """A constant part of the expression is an error."""


class PlannedNode:
    """A planned node: a constant, an attribute that may still grow, or a function."""

    __slots__ = ("_evaluate", "attribute", "constant", "is_constant")

    def __init__(
        self,
        evaluate: Evaluate | None = None,
        *,
        attribute: Attribute | None = None,
        constant: Value = None,
        is_constant: bool = False,
    ) -> None:
        self._evaluate = evaluate
        self.attribute = attribute
        self.constant = constant
        self.is_constant = is_constant

    def evaluator(self) -> Evaluate:
        """Return the function; an attribute must not grow any more."""
        if self.is_constant:
            constant = self.constant
            return lambda _frame: constant
        if self.attribute is not None:
            return self.attribute.evaluator()
        assert self._evaluate is not None  # noqa: S101 - one of the three
        return self._evaluate


def constant(value: Value) -> PlannedNode:
    """Return the plan of a constant."""
    return PlannedNode(constant=value, is_constant=True)


def plan(expr: Expr) -> tuple[Evaluate, int]:
    """Return a function that evaluates the expression, and how many variables a frame must hold."""
    planner = _Planner()
    evaluate = planner.plan(expr).evaluator()
    return evaluate, planner.slots


class _Planner:
    def __init__(self) -> None:
        self._scopes: list[dict[str, int]] = []
        self._depth = 0
        self.slots = 0

    def plan(self, expr: Expr) -> PlannedNode:  # noqa: PLR0911 - one line a node
        match expr:
            case Literal():
                return constant(expr.value)
            case Ident():
                return self._plan_ident(expr)
            case Select():
                return self._plan_select(expr)
            case Call():
                return self._plan_call(expr)
            case ListExpr():
                return self._plan_list(expr)
            case MapExpr():
                return self._plan_map(expr)
            case Comprehension():
                return self._plan_comprehension(expr)
        raise AssertionError(expr)

    # -- attributes -----------------------------------------------------------------------------

    def _plan_ident(self, expr: Ident) -> PlannedNode:
        if expr.type.kind is Kind.TYPE and expr.name.removeprefix(".") in TYPE_NAMES:
            return constant(TYPE_NAMES[expr.name.removeprefix(".")])
        for scope in reversed(self._scopes):
            if expr.name in scope:
                return PlannedNode(attribute=AbsoluteAttribute(folds.reader(scope[expr.name])))
        assert expr.name.removeprefix(".") == DEVICE  # noqa: S101 - the checker looked
        is_shadowed = expr.name.startswith(".")
        return PlannedNode(attribute=AbsoluteAttribute(None, is_shadowed=is_shadowed))

    def _plan_select(self, expr: Select) -> PlannedNode:
        if not expr.field and isinstance(expr.operand, Ident):
            return self._plan_ident(expr.operand)
        attribute = self._as_attribute(self.plan(expr.operand))
        qualifier = Qualifier(expr.field, is_test=expr.test_only)
        if expr.test_only:
            return PlannedNode(attribute=attribute.tested(qualifier))
        return PlannedNode(attribute=attribute.qualified(qualifier))

    @staticmethod
    def _as_attribute(operand: PlannedNode) -> Attribute:
        if operand.attribute is not None:
            return operand.attribute
        return RelativeAttribute(operand.evaluator())

    def _plan_index(self, expr: Call, *, is_optional: bool) -> PlannedNode:
        attribute = self._as_attribute(self.plan(expr.args[0]))
        index = self.plan(expr.args[1])
        if index.is_constant:
            wrong = invalid_key(index.constant)
            if wrong is not None:
                raise PlanError(wrong.message)
            qualifier = Qualifier(index.constant, is_optional=is_optional)
        else:
            qualifier = Qualifier(
                computed=self._as_attribute(index).resolver(), is_optional=is_optional
            )
        return PlannedNode(attribute=attribute.qualified(qualifier))

    def _plan_conditional(self, expr: Call) -> PlannedNode:
        condition, if_true, if_false = map(self.plan, expr.args)
        return PlannedNode(
            attribute=ConditionalAttribute(
                condition.evaluator(), self._as_branch(if_true), self._as_branch(if_false)
            )
        )

    @staticmethod
    def _as_branch(branch: PlannedNode) -> Attribute:
        if branch.attribute is not None:
            return branch.attribute
        return RelativeAttribute(branch.evaluator())

    # -- calls ----------------------------------------------------------------------------------

    def _plan_call(self, expr: Call) -> PlannedNode:  # noqa: PLR0911 - one line a form
        match expr.function:
            case "_&&_":
                return PlannedNode(
                    evaluators.all_of([self.plan(arg).evaluator() for arg in expr.args])
                )
            case "_||_":
                return PlannedNode(
                    evaluators.any_of([self.plan(arg).evaluator() for arg in expr.args])
                )
            case "_?_:_":
                return self._plan_conditional(expr)
            case "_[_]":
                return self._plan_index(expr, is_optional=False)
            case "_[?_]" | "_?._":
                return self._plan_index(expr, is_optional=True)
        args = [self.plan(operand) for operand in expr.operands]
        match expr.function:
            case "_==_":
                return PlannedNode(evaluators.equal(args[0].evaluator(), args[1].evaluator()))
            case "_!=_":
                return PlannedNode(evaluators.not_equal(args[0].evaluator(), args[1].evaluator()))
            case "or" | "orValue" if expr.target is not None:
                unwraps = expr.function == "orValue"
                return PlannedNode(
                    evaluators.or_else(args[0].evaluator(), args[1].evaluator(), unwraps=unwraps)
                )
            case "@in" if expr.overloads == ("in_list",) and is_list(args[1].constant):
                membership = _membership(args[0], args[1].constant)
                if membership is not None:
                    return membership
        return self._plan_function(expr, args)

    def _plan_function(self, expr: Call, args: list[PlannedNode]) -> PlannedNode:
        overload = expr.overloads[0] if len(expr.overloads) == 1 else ""
        binding = bind(FUNCTIONS[expr.function], expr.overloads, len(args))
        if len(args) == 1 and args[0].is_constant and expr.function in _CONVERSIONS:
            value = binding.call(args[0].constant)
            if type(value) is Err:
                raise PlanError(value.message)
            return constant(value)
        pattern = args[1].constant if len(args) > 1 and args[1].is_constant else None
        if expr.function in CONSTANT_PATTERN and type(pattern) is str:
            binding = _with_pattern(expr.function, pattern)
        cost = costs.call_cost(expr.function, overload)
        if args and all(arg.is_constant for arg in args):
            made = evaluators.made_now(binding, [arg.constant for arg in args], cost)
            if made is not None:
                return PlannedNode(made)
        return PlannedNode(evaluators.called([arg.evaluator() for arg in args], binding, cost))

    # -- aggregates -----------------------------------------------------------------------------

    def _plan_list(self, expr: ListExpr) -> PlannedNode:
        parts = [self.plan(element) for element in expr.elements]
        evaluate = evaluators.list_of([part.evaluator() for part in parts], expr.optional)
        if all(part.is_constant for part in parts):
            return constant(evaluate(_no_frame()))
        return PlannedNode(evaluate)

    def _plan_map(self, expr: MapExpr) -> PlannedNode:
        entries = [(self.plan(entry.key), self.plan(entry.value)) for entry in expr.entries]
        evaluate = evaluators.map_of(
            [
                (key.evaluator(), value.evaluator(), entry.optional)
                for (key, value), entry in zip(entries, expr.entries, strict=True)
            ]
        )
        if all(key.is_constant and value.is_constant for key, value in entries):
            try:
                return constant(evaluate(_no_frame()))
            except Aborted as reason:
                raise PlanError(str(reason)) from None
        return PlannedNode(evaluate)

    def _plan_comprehension(self, expr: Comprehension) -> PlannedNode:
        # The accumulator is not visible in its own beginning, nor in the range.
        init = self.plan(expr.init).evaluator()
        values = self.plan(expr.range).evaluator()
        accumulator, first, second = self._depth, self._depth + 1, self._depth + 2
        self._depth += 3
        self.slots = max(self.slots, self._depth)
        self._scopes.append({expr.accumulator: accumulator})
        variables = {expr.variable: first}
        if expr.variable2 is not None:
            variables[expr.variable2] = second
        self._scopes.append(variables)
        condition = self.plan(expr.condition).evaluator()
        step = self.plan(expr.step).evaluator()
        self._scopes.pop()
        result = self.plan(expr.result).evaluator()
        self._scopes.pop()
        self._depth -= 3
        return PlannedNode(
            folds.fold(
                values, init, condition, step, result,
                accumulator=accumulator, has_two_variables=expr.variable2 is not None,
            )
        )  # fmt: skip


def _no_frame() -> Frame:
    """Return a frame for constants, which look at no device."""
    return Frame(CelDevice(""), 0, 0)


def _membership(element: PlannedNode, values: list[Value]) -> PlannedNode | None:
    """``x in [constants]``: a lookup, unless the constants are of types that have none."""
    if not values:
        return constant(False)
    for value in values:
        kind = type_of(value).kind
        if kind not in _PRIMITIVE or kind is Kind.BYTES:
            return None
    wanted = frozenset(key for value in values for key in _set_keys(value))
    evaluate_element = element.evaluator()
    strings = frozenset(values) if all(type(value) is str for value in values) else None

    def evaluate(frame: Frame) -> Value:
        value = evaluate_element(frame)
        if type(value) is str and strings is not None:
            return value in strings
        if type(value) is Err:
            return value
        unhashable = UNHASHABLE.get(type_of(value).name)
        if unhashable is not None:
            # Upstream's interpreter panics.
            raise Aborted(f"internal error: runtime error: hash of unhashable type {unhashable}")
        return (type(value), value) in wanted if _is_scalar(value) else False

    return PlannedNode(evaluate)


def _is_scalar(value: Value) -> bool:
    return isinstance(value, int | float | str)


def _set_keys(value: Value) -> list[tuple[type, Value]]:
    """Return a constant, and the same number in the other numeric types, as keys of a set."""
    keys = [(type(value), value)]
    if type(value) is float:
        if value.is_integer() and abs(value) < 2.0**63:
            keys.append((int, int(value)))
        if value.is_integer() and 0 <= value < 2.0**64:
            keys.append((Uint, Uint(value)))
    elif isinstance(value, int) and type(value) is not bool:
        keys.append((float, float(value)))
        if value >= 0:
            keys.append((Uint, Uint(value)))
        if value <= INT_MAX:
            keys.append((int, int(value)))
    return keys


def _with_pattern(function: str, pattern: str) -> CallImplementation:
    try:
        regex = compile_regex(pattern)
    except RegexError as error:
        raise PlanError(str(error)) from None
    use = CONSTANT_PATTERN[function]

    def call(text: Value, _pattern: Value, *rest: Value) -> Value:
        if type(text) is not str or any(type(arg) is not int for arg in rest):
            return NO_SUCH_OVERLOAD
        return use(regex, text, *rest)

    return CallImplementation(call, stops_at_error=True)
