"""The closures that a plan is made of: logic, equality, calls, lists and maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesched.cel import costs
from kubesched.cel.equality import equals
from kubesched.cel.frames import Evaluate, Frame
from kubesched.cel.functions import CallImplementation
from kubesched.cel.go_types import displayed
from kubesched.cel.values import NO_SUCH_OVERLOAD, Aborted, Err, Map, Optional, Value

#: Calls of constants that cost more are left to the evaluation, which has a limit.
_MAX_MADE_NOW: Final = 1000


def all_of(terms: list[Evaluate]) -> Evaluate:
    """``a && b && ...``."""

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


def any_of(terms: list[Evaluate]) -> Evaluate:
    """``a || b || ...``."""

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


def equal(left: Evaluate, right: Evaluate) -> Evaluate:
    """``a == b``."""

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


def not_equal(left: Evaluate, right: Evaluate) -> Evaluate:
    """``a != b``."""

    def evaluate(frame: Frame) -> Value:
        one, other = left(frame), right(frame)
        frame.charge(costs.comparison(one, other))
        if type(one) is Err:
            return one
        return other if type(other) is Err else equals(one, other) is not True

    return evaluate


def or_else(left: Evaluate, right: Evaluate, *, unwraps: bool) -> Evaluate:
    """``a.or(b)``, or ``a.orValue(b)`` if it unwraps."""

    def evaluate(frame: Frame) -> Value:
        value = left(frame)
        if isinstance(value, Optional):
            if not value.has_value:
                return right(frame)
            return value.value if unwraps else value
        return value if type(value) is Err else NO_SUCH_OVERLOAD

    return evaluate


def called(args: list[Evaluate], binding: CallImplementation, cost: costs.Cost) -> Evaluate:
    """A call of a function."""

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


def made_now(binding: CallImplementation, args: list[Value], cost: costs.Cost) -> Evaluate | None:
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


def list_of(parts: list[Evaluate], optional: frozenset[int]) -> Evaluate:
    """A list; optional elements may be left out."""

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


def map_of(entries: list[tuple[Evaluate, Evaluate, bool]]) -> Evaluate:
    """A map; optional entries may be left out."""

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
