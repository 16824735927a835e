"""Attributes: a value and the steps from it, as in ``device.attributes["d"].model`` or ``f(x)[0]``.

Upstream takes such a chain as one thing, with consequences that can be seen: an optional step makes
all that follow optional, a presence test is a step that says whether it could be taken, and costs are
counted by step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesched.cel import costs
from kubesched.cel.conversions import to_string
from kubesched.cel.frames import Evaluate, Frame
from kubesched.cel.go_types import go_type
from kubesched.cel.types import Kind
from kubesched.cel.values import (
    INT_MAX,
    NO_SUCH_OVERLOAD,
    NONE,
    Err,
    Map,
    Optional,
    Uint,
    Value,
    is_list,
    type_of,
)

_ABSENT: Final = object()
_NO_CONSTANT: Final = object()

_KEYS: Final = frozenset({Kind.BOOL, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.STRING})


class Qualifier:
    """A step: a field or an index, constant or computed."""

    __slots__ = ("computed", "constant", "is_optional", "is_test")

    def __init__(
        self,
        constant: Value = _NO_CONSTANT,
        *,
        computed: Evaluate | None = None,
        is_optional: bool = False,
        is_test: bool = False,
    ) -> None:
        self.constant = constant
        self.computed = computed
        self.is_optional = is_optional
        self.is_test = is_test

    def apply(self, frame: Frame, value: Value, *, is_optional: bool) -> Value:
        """Take the step; ``_ABSENT`` if it cannot be taken and that is allowed."""
        key = self.constant
        if self.computed is not None:
            key = self.computed(frame)
            wrong = key if type(key) is Err else invalid_key(key)
            if wrong is not None:
                frame.cost += 0 if is_optional else costs.QUALIFIER
                return wrong
        may_be_absent = is_optional or self.is_test
        result = _look_up(value, key, may_be_absent=may_be_absent)
        if is_optional:
            # A step that is not taken costs nothing.
            frame.cost += 0 if result is _ABSENT or type(result) is Err else costs.QUALIFIER
            return result
        frame.cost += costs.QUALIFIER
        if self.is_test:
            return result if type(result) is Err else result is not _ABSENT
        return result


def invalid_key(key: Value) -> Err | None:
    """Return the error of a key that nothing can be looked up by."""
    if type_of(key).kind in _KEYS:
        return None
    return Err(f"invalid qualifier type: {go_type(key)}")


def _look_up(value: Value, key: Value, *, may_be_absent: bool) -> Value:
    if isinstance(value, Map):
        found, is_there = value.find(key)
        if is_there:
            return found
        return _ABSENT if may_be_absent else Err(f"no such key: {to_string(key)}")
    if is_list(value):
        index = _index(key)
        if type(index) is Err:
            return index
        if 0 <= index < len(value):
            return value[index]
        return _ABSENT if may_be_absent else Err(f"index out of bounds: {to_string(key)}")
    if type(value) is Err:
        return value
    return _ABSENT if may_be_absent else Err(f"no such key: {to_string(key)}")


def _index(key: Value) -> Value:
    kind = type(key)
    if kind is int:
        return key
    if (kind is Uint and key <= INT_MAX) or (
        kind is float and key.is_integer() and abs(key) < 2.0**63
    ):
        return int(key)
    if kind is Uint or kind is float:
        return Err(f"unsupported index value {to_string(key)} in list")
    return Err(f"unsupported index type '{type_of(key).name}' in list")




# -- attributes ---------------------------------------------------------------------------------


class Attribute:
    """A value and steps from it, which are added while the expression is planned."""

    def __init__(self) -> None:
        self.qualifiers: list[Qualifier] = []
        self._is_test = False

    def qualified(self, qualifier: Qualifier) -> Attribute:
        """Add a step."""
        self.qualifiers.append(qualifier)
        return self

    def tested(self, qualifier: Qualifier) -> Attribute:
        """Add a step that only says whether it could be taken."""
        self.qualified(qualifier)
        self._is_test = True
        return self

    def resolver(self) -> Evaluate:
        """Return a function for the value, which counts steps only."""
        raise NotImplementedError

    def evaluator(self) -> Evaluate:
        """Return a function for the value, which counts the attribute as well."""
        resolve = self.resolver()
        if self._is_test:
            # A presence test costs its steps and nothing else.
            return _presence(resolve)

        def evaluate(frame: Frame) -> Value:
            frame.cost += costs.IDENT
            return resolve(frame)

        return evaluate


def _presence(resolve: Evaluate) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        value = resolve(frame)
        return value.has_value if isinstance(value, Optional) else value

    return evaluate


def _qualifying(start: Evaluate, qualifiers: list[Qualifier]) -> Evaluate:
    """Return a function that takes steps from a value."""
    if not qualifiers:
        return start

    def resolve(frame: Frame) -> Value:
        value = start(frame)
        is_optional = isinstance(value, Optional)
        if is_optional:
            if not value.has_value:
                return value
            value = value.value
        elif type(value) is Err:
            return value
        for qualifier in qualifiers:
            is_optional = is_optional or qualifier.is_optional
            value = qualifier.apply(frame, value, is_optional=is_optional)
            if value is _ABSENT:
                return NONE
            if type(value) is Err:
                return value
        return Optional(value) if is_optional else value

    return resolve


class AbsoluteAttribute(Attribute):
    """A variable and steps from it; without a reader, the variable is ``device``.

    Steps from ``.device``, where a local variable of that name hides it, cost nothing: upstream
    looks it up past the frame that counts.
    """

    def __init__(self, read: Evaluate | None, *, is_shadowed: bool = False) -> None:
        super().__init__()
        self._read = read
        self._is_shadowed = is_shadowed

    def resolver(self) -> Evaluate:
        """Return a function for the value, which counts steps only."""
        if self._read is not None:
            return _qualifying(self._read, self.qualifiers)
        if self._is_shadowed:
            return _uncounted(_qualifying(_read_device, self.qualifiers))
        return _device_reader(self.qualifiers) or _qualifying(_read_device, self.qualifiers)

    def evaluator(self) -> Evaluate:
        """Return a function for the value, which counts the attribute as well."""
        if self._read is None and not self._is_test and not self._is_shadowed:
            return _device_reader(self.qualifiers, costs.IDENT) or super().evaluator()
        return super().evaluator()


def _uncounted(resolve: Evaluate) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        before = frame.cost
        value = resolve(frame)
        frame.cost = before
        return value

    return evaluate


def _read_device(frame: Frame) -> Value:
    return frame.device.value


def _device_reader(qualifiers: list[Qualifier], own_cost: int = 0) -> Evaluate | None:
    """Return a short cut for ``device.driver`` and ``device.attributes[domain].name``."""
    steps = [qualifier.constant for qualifier in qualifiers]
    if any(step.is_optional or step.is_test for step in qualifiers):
        return None
    cost = len(steps) * costs.QUALIFIER + own_cost
    if steps == ["driver"]:

        def read_driver(frame: Frame) -> Value:
            frame.cost += cost
            return frame.device.driver

        return read_driver
    if len(steps) != 3 or type(steps[1]) is not str or type(steps[2]) is not str:
        return None
    domain, name = steps[1], steps[2]
    missing = Err(f"no such key: {name}")
    if steps[0] == "attributes":

        def read_attribute(frame: Frame) -> Value:
            frame.cost += cost
            try:
                return frame.device.attributes[domain][name]
            except KeyError:
                return missing

        return read_attribute
    if steps[0] == "capacity":

        def read_capacity(frame: Frame) -> Value:
            frame.cost += cost
            try:
                return frame.device.capacity[domain][name]
            except KeyError:
                return missing

        return read_capacity
    return None


class RelativeAttribute(Attribute):
    """The value of another expression, and steps from it."""

    def __init__(self, operand: Evaluate) -> None:
        super().__init__()
        self._operand = operand

    def resolver(self) -> Evaluate:
        """Return a function for the value, which counts steps only."""
        return _qualifying(self._operand, self.qualifiers)


class ConditionalAttribute(Attribute):
    """One of two attributes; steps that follow are taken from either."""

    def __init__(self, condition: Evaluate, if_true: Attribute, if_false: Attribute) -> None:
        super().__init__()
        self._condition = condition
        self._branches = (if_true, if_false)

    def qualified(self, qualifier: Qualifier) -> Attribute:
        """Add a step to both branches."""
        for branch in self._branches:
            branch.qualified(qualifier)
        return self

    def resolver(self) -> Evaluate:
        """Return a function for the value, which counts steps only."""
        condition = self._condition
        if_true, if_false = (branch.resolver() for branch in self._branches)

        def resolve(frame: Frame) -> Value:
            value = condition(frame)
            if value is True:
                return if_true(frame)
            if value is False:
                return if_false(frame)
            return value if type(value) is Err else NO_SUCH_OVERLOAD

        return resolve

    def evaluator(self) -> Evaluate:
        """Return a function for the value; a conditional does not count as an attribute."""
        resolve = self.resolver()
        return _presence(resolve) if self._is_test else resolve


_Resolver = Callable[[Frame], Value]
