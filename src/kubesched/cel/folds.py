"""Comprehensions: one loop for all of them.

The accumulator begins when it is first looked at, not before: ``cel.bind(x, 1/0, true)`` is true.
Local variables live in slots of the frame; a slot with a ``_Pending`` has not begun.
"""

from __future__ import annotations

from kubesched.cel.frames import Evaluate, Frame
from kubesched.cel.go_types import go_type
from kubesched.cel.values import (
    Accumulator,
    AccumulatorMap,
    CostLimitExceeded,
    Err,
    Map,
    Value,
    is_list,
)


class _Pending:
    """An accumulator that nothing has looked at."""

    __slots__ = ("init",)

    def __init__(self, init: Evaluate) -> None:
        self.init = init



def reader(slot: int) -> Evaluate:
    """Return a function that reads a local variable."""

    def read(frame: Frame) -> Value:
        value = frame.slots[slot]
        return _begun(frame, slot, value) if type(value) is _Pending else value

    return read


def _begun(frame: Frame, slot: int, pending: _Pending) -> Value:
    value = pending.init(frame)
    if is_list(value) and not len(value):
        value = Accumulator()
    elif isinstance(value, Map) and not len(value):
        value = AccumulatorMap()
    frame.slots[slot] = value
    return value


def fold(
    values: Evaluate,
    init: Evaluate,
    condition: Evaluate,
    step: Evaluate,
    result: Evaluate,
    *,
    accumulator: int,
    has_two_variables: bool,
) -> Evaluate:
    """Return a function that evaluates a comprehension; its variables follow the accumulator."""
    first, second = accumulator + 1, accumulator + 2

    def evaluate(frame: Frame) -> Value:
        elements = values(frame)
        if type(elements) is Err:
            return elements
        slots = frame.slots
        slots[accumulator] = _Pending(init)
        pairs: Value
        if has_two_variables:
            if isinstance(elements, Map):
                pairs = elements.items()
            elif is_list(elements):
                pairs = enumerate(elements)
            else:
                return Err(f"unsupported comprehension range type: {go_type(elements)}")
        elif is_list(elements):
            pairs = ((element, None) for element in elements)
        elif isinstance(elements, Map):
            pairs = ((key, None) for key in elements.keys())
        else:
            return Err(f"got '{go_type(elements)}', expected iterable type")
        for slots[first], slots[second] in pairs:
            going_on = condition(frame)
            if going_on is False:
                break
            slots[accumulator] = step(frame)
            if frame.cost > frame.limit:
                raise CostLimitExceeded
        return _finished(result(frame))

    return evaluate


def _finished(value: Value) -> Value:
    """Return a list or a map that nothing adds to any more."""
    if type(value) is Accumulator:
        return list(value)
    if type(value) is AccumulatorMap:
        return Map(value.items())
    return value

