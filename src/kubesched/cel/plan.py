"""From a checked tree to closures that evaluate it.

Each node becomes a function of a frame, which returns a value (an ``Err`` among them) and adds to the
frame's cost what upstream's interpreter would count:

- Names with selections and indexes behind them are one *attribute*: ``device.attributes["d"].model``
  costs 1 for each step and 1 for the attribute.
- A conditional ``c ? a : b`` of attributes is an attribute itself: steps that follow it are taken
  within the branch, and the branch does not count as an attribute of its own.
- Constants, and lists and maps of constants, cost nothing. Conversions of constants are done now, and
  their errors are errors of compilation.
- ``x in [constants]`` is a lookup in a set, which costs nothing.
- ``&&`` and ``||`` evaluate a term only if those before have not decided.

Functions that are arguments of a call are all evaluated, even if the first is an error; a call of
three or more arguments, or one that picks its overload at run time, stops at the first error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesched.cel import costs, folds
from kubesched.cel.attributes import (
    AbsoluteAttribute,
    Attribute,
    ConditionalAttribute,
    Qualifier,
    RelativeAttribute,
    invalid_key,
)
from kubesched.cel.device import Device
from kubesched.cel.environment import DEVICE, FUNCTIONS, TYPE_NAMES
from kubesched.cel.equality import equals
from kubesched.cel.frames import Evaluate, Frame
from kubesched.cel.functions import Binding, bind
from kubesched.cel.go_types import displayed
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
    Map,
    Optional,
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


#: Calls of constants that cost more are left to the evaluation, which has a limit.
_MAX_MADE_NOW: Final = 1000


class PlanError(Exception):
    """A constant part of the expression is an error."""


class Plan:
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


def constant(value: Value) -> Plan:
    """Return the plan of a constant."""
    return Plan(constant=value, is_constant=True)


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

    def plan(self, expr: Expr) -> Plan:
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

    def _plan_ident(self, expr: Ident) -> Plan:
        if expr.type.kind is Kind.TYPE and expr.name.removeprefix(".") in TYPE_NAMES:
            return constant(TYPE_NAMES[expr.name.removeprefix(".")])
        for scope in reversed(self._scopes):
            if expr.name in scope:
                return Plan(attribute=AbsoluteAttribute(folds.reader(scope[expr.name])))
        assert expr.name.removeprefix(".") == DEVICE  # noqa: S101 - the checker looked
        is_shadowed = expr.name.startswith(".")
        return Plan(attribute=AbsoluteAttribute(None, is_shadowed=is_shadowed))

    def _plan_select(self, expr: Select) -> Plan:
        if not expr.field and isinstance(expr.operand, Ident):
            return self._plan_ident(expr.operand)
        attribute = self._as_attribute(self.plan(expr.operand))
        qualifier = Qualifier(expr.field, is_test=expr.test_only)
        if expr.test_only:
            return Plan(attribute=attribute.tested(qualifier))
        return Plan(attribute=attribute.qualified(qualifier))

    @staticmethod
    def _as_attribute(operand: Plan) -> Attribute:
        if operand.attribute is not None:
            return operand.attribute
        return RelativeAttribute(operand.evaluator())

    def _plan_index(self, expr: Call, *, is_optional: bool) -> Plan:
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
        return Plan(attribute=attribute.qualified(qualifier))

    def _plan_conditional(self, expr: Call) -> Plan:
        condition, if_true, if_false = map(self.plan, expr.args)
        return Plan(
            attribute=ConditionalAttribute(
                condition.evaluator(), self._as_branch(if_true), self._as_branch(if_false)
            )
        )

    @staticmethod
    def _as_branch(branch: Plan) -> Attribute:
        if branch.attribute is not None:
            return branch.attribute
        return RelativeAttribute(branch.evaluator())

    # -- calls ----------------------------------------------------------------------------------

    def _plan_call(self, expr: Call) -> Plan:
        match expr.function:
            case "_&&_":
                return Plan(_all_of([self.plan(arg).evaluator() for arg in expr.args]))
            case "_||_":
                return Plan(_any_of([self.plan(arg).evaluator() for arg in expr.args]))
            case "_?_:_":
                return self._plan_conditional(expr)
            case "_[_]":
                return self._plan_index(expr, is_optional=False)
            case "_[?_]" | "_?._":
                return self._plan_index(expr, is_optional=True)
        args = [self.plan(operand) for operand in expr.operands]
        match expr.function:
            case "_==_":
                return Plan(_equal(args[0].evaluator(), args[1].evaluator()))
            case "_!=_":
                return Plan(_not_equal(args[0].evaluator(), args[1].evaluator()))
            case "or" | "orValue" if expr.target is not None:
                unwraps = expr.function == "orValue"
                return Plan(_or(args[0].evaluator(), args[1].evaluator(), unwraps=unwraps))
            case "@in" if expr.overloads == ("in_list",) and is_list(args[1].constant):
                membership = _membership(args[0], args[1].constant)
                if membership is not None:
                    return membership
        return self._plan_function(expr, args)

    def _plan_function(self, expr: Call, args: list[Plan]) -> Plan:
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
            made = _made_now(binding, [arg.constant for arg in args], cost)
            if made is not None:
                return Plan(made)
        return Plan(_call([arg.evaluator() for arg in args], binding, cost))

    # -- aggregates -----------------------------------------------------------------------------

    def _plan_list(self, expr: ListExpr) -> Plan:
        parts = [self.plan(element) for element in expr.elements]
        evaluate = _list([part.evaluator() for part in parts], expr.optional)
        if all(part.is_constant for part in parts):
            return constant(evaluate(_no_frame()))
        return Plan(evaluate)

    def _plan_map(self, expr: MapExpr) -> Plan:
        entries = [(self.plan(entry.key), self.plan(entry.value)) for entry in expr.entries]
        evaluate = _map(
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
        return Plan(evaluate)

    def _plan_comprehension(self, expr: Comprehension) -> Plan:
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
        return Plan(
            folds.fold(
                values, init, condition, step, result,
                accumulator=accumulator, has_two_variables=expr.variable2 is not None,
            )
        )  # fmt: skip


def _no_frame() -> Frame:
    """Return a frame for constants, which look at no device."""
    return Frame(Device(""), 0, 0)


# -- evaluators ---------------------------------------------------------------------------------


def _all_of(terms: list[Evaluate]) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        error: Value = None
        for term in terms:
            value = term(frame)
            if value is False:
                return False
            if value is not True and error is None:
                error = value if type(value) is Err else NO_SUCH_OVERLOAD
        return True if error is None else error

    return evaluate


def _any_of(terms: list[Evaluate]) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        error: Value = None
        for term in terms:
            value = term(frame)
            if value is True:
                return True
            if value is not False and error is None:
                error = value if type(value) is Err else NO_SUCH_OVERLOAD
        return False if error is None else error

    return evaluate


def _equal(left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        one, other = left(frame), right(frame)
        if type(one) is str and type(other) is str:
            # The common case, without a call.
            frame.cost += -(-min(len(one), len(other)) // 10)
            return one == other
        frame.charge(costs.equality(one, other))
        if type(one) is Err:
            return one
        return other if type(other) is Err else equals(one, other)

    return evaluate


def _not_equal(left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        one, other = left(frame), right(frame)
        frame.charge(costs.comparison(one, other))
        if type(one) is Err:
            return one
        return other if type(other) is Err else equals(one, other) is not True

    return evaluate


def _or(left: Evaluate, right: Evaluate, *, unwraps: bool) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        value = left(frame)
        if isinstance(value, Optional):
            if not value.has_value:
                return right(frame)
            return value.value if unwraps else value
        return value if type(value) is Err else NO_SUCH_OVERLOAD

    return evaluate


def _membership(element: Plan, values: list[Value]) -> Plan | None:
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

    return Plan(evaluate)


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


def _with_pattern(function: str, pattern: str) -> Binding:
    try:
        regex = compile_regex(pattern)
    except RegexError as error:
        raise PlanError(str(error)) from None
    use = CONSTANT_PATTERN[function]

    def call(text: Value, _pattern: Value, *rest: Value) -> Value:
        if type(text) is not str or any(type(arg) is not int for arg in rest):
            return NO_SUCH_OVERLOAD
        return use(regex, text, *rest)

    return Binding(call, stops_at_error=True)


def _call(args: list[Evaluate], binding: Binding, cost: costs.Cost) -> Evaluate:
    call = binding.call
    if binding.takes_errors:
        return _unguarded_call(args[0], call)
    if not args:
        return _constant_call(call, cost)
    if binding.stops_at_error and len(args) > 1:
        return _lazy_call(args, call, cost)
    if len(args) == 1:
        return _unary_call(args[0], call, cost)
    return _binary_call(args[0], args[1], call, cost)


def _made_now(binding: Binding, args: list[Value], cost: costs.Cost) -> Evaluate | None:
    """Make a call of constants once; its cost is charged each time all the same."""
    if cost.of_result is not None or any(type(arg) is Err for arg in args):
        return None
    try:
        amount = cost.fixed if cost.of_args is None else cost.of_args(*args)
        if amount is None or amount > _MAX_MADE_NOW:
            return None
        result = binding.call(*args)
    except Aborted:
        return None

    def evaluate(frame: Frame) -> Value:
        frame.cost += amount
        return result

    return evaluate


def _constant_call(call: Callable[[], Value], cost: costs.Cost) -> Evaluate:
    fixed = cost.fixed or 0

    def evaluate(frame: Frame) -> Value:
        frame.cost += fixed
        return call()

    return evaluate


def _unguarded_call(arg: Evaluate, call: Callable[[Value], Value]) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        frame.cost += 1
        return call(arg(frame))

    return evaluate


def _unary_call(arg: Evaluate, call: Callable[[Value], Value], cost: costs.Cost) -> Evaluate:
    fixed, of_args, of_result = cost

    def evaluate(frame: Frame) -> Value:
        value = arg(frame)
        if fixed is not None:
            frame.cost += fixed
        elif of_args is not None:
            frame.charge(of_args(value))
        result = value if type(value) is Err else call(value)
        if of_result is not None:
            frame.charge(of_result(result))
        return result

    return evaluate


def _binary_call(
    left: Evaluate, right: Evaluate, call: Callable[[Value, Value], Value], cost: costs.Cost
) -> Evaluate:
    fixed, of_args, of_result = cost

    def evaluate(frame: Frame) -> Value:
        one, other = left(frame), right(frame)
        if fixed is not None:
            frame.cost += fixed
        elif of_args is not None:
            frame.charge(of_args(one, other))
        if type(one) is Err:
            result = one
        elif type(other) is Err:
            result = other
        else:
            result = call(one, other)
        if of_result is not None:
            frame.charge(of_result(result))
        return result

    return evaluate


def _lazy_call(args: list[Evaluate], call: Callable[..., Value], cost: costs.Cost) -> Evaluate:
    last = len(args) - 1
    fixed, of_args, of_result = cost

    def evaluate(frame: Frame) -> Value:
        values = []
        error: Value = None
        for index, arg in enumerate(args):
            value = arg(frame)
            values.append(value)
            if type(value) is Err:
                if index < last:
                    # Upstream finds no arguments to count, as not all were evaluated.
                    return value
                error = value
        if fixed is not None:
            frame.cost += fixed
        elif of_args is not None:
            frame.charge(of_args(*values))
        result = call(*values) if error is None else error
        if of_result is not None:
            frame.charge(of_result(result))
        return result

    return evaluate


def _list(parts: list[Evaluate], optional: frozenset[int]) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        values = []
        try:
            for index, part in enumerate(parts):
                value = part(frame)
                if type(value) is Err:
                    return value
                if index in optional:
                    if not isinstance(value, Optional):
                        return _not_optional(value)
                    if not value.has_value:
                        continue
                    value = value.value
                values.append(value)
        finally:
            frame.cost += costs.LIST
        return values

    return evaluate


def _map(entries: list[tuple[Evaluate, Evaluate, bool]]) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        pairs: list[tuple[Value, Value]] = []
        try:
            for evaluate_key, evaluate_value, is_optional in entries:
                key = evaluate_key(frame)
                if type(key) is Err:
                    return key
                value = evaluate_value(frame)
                if type(value) is Err:
                    return value
                if is_optional:
                    if not isinstance(value, Optional):
                        return Err(
                            f"cannot initialize optional entry '{displayed(key)}' from "
                            f"non-optional value {displayed(value)}"
                        )
                    if not value.has_value:
                        pairs = [pair for pair in pairs if not _is_same_key(pair[0], key)]
                        continue
                    value = value.value
                pairs.append((key, value))
        finally:
            frame.cost += costs.MAP
        return Map(pairs)

    return evaluate


def _is_same_key(one: Value, other: Value) -> bool:
    return type(one) is type(other) and equals(one, other) is True


def _not_optional(value: Value) -> Err:
    text = "cannot initialize optional list element from non-optional value"
    return Err(f"{text} {displayed(value)}")
