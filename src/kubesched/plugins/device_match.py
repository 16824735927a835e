"""Which devices a request may be served by: selectors of its class, its own, and taints.

expression ──> compiled once ──> evaluated once per device ──> cached until that changes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from kubesched.api.resource import Device, DeviceTaint, DeviceToleration
from kubesched.cluster.arrays import BoolArray, IndexArray, grown
from kubesched.cluster.device_table import DeviceTable
from kubesched.cluster.incremental import View
from kubesched.cluster.pod_signature import tolerates
from kubesched.errors import KubeschedError, require

#: The state of a device: not evaluated, not selected, selected, selected but for its taints,
#: or an expression failed.
UNKNOWN, NO, YES, TAINTED, FAILED = range(5)
States = npt.NDArray[np.uint8]

#: Up to this many changed devices are evaluated one by one, which is faster then.
ASKED_ALONE: Final = 64

#: How expressions ask whether a device can be shared.
SHARING: Final = "allowMultipleAllocations"
#: Tolerates every taint.
ANY_TAINT: Final = DeviceToleration(operator="Exists")
_PREVENTING: Final = frozenset({"NoSchedule", "NoExecute"})


class CompiledSelector(Protocol):
    """An expression that is evaluated for devices."""

    def matches(self, device: Device, driver: str) -> bool:
        """Return whether a device is selected; raises KubeschedError if the evaluation fails."""


#: Compiles an expression; raises KubeschedError if it makes no sense.
Compile = Callable[[str], CompiledSelector]


class _Blind:
    """A selector to which every device looks as if it could not be shared."""

    def __init__(self, selector: CompiledSelector) -> None:
        self._selector = selector

    def matches(self, device: Device, driver: str) -> bool:
        """Return whether a device is selected; raises KubeschedError if the evaluation fails."""
        return self._selector.matches(replace(device, allow_multiple_allocations=None), driver)


def blind(compile_selector: Compile) -> Compile:
    """Return the same for expressions that are not told which devices can be shared."""

    def compile_blindly(expression: str) -> CompiledSelector:
        compiled = compile_selector(expression)
        return _Blind(compiled) if SHARING in expression else compiled

    return compile_blindly


class SaidOfAll(NamedTuple):
    """The result of an expression per device: selected, or failed; and which can be evaluated."""

    matches: BoolArray
    failed: BoolArray
    has_device: BoolArray


#: Evaluates an expression for all devices; raises KubeschedError if it is invalid.
EvaluateAll = Callable[[str], SaidOfAll]


class LocatedSelector(NamedTuple):
    """A CEL expression, with the class or request and the index that it stands at."""

    #: name of the class; "" if the claim itself has it
    class_name: str
    #: its number among the selectors there
    number: int
    expression: str


class Failure(NamedTuple):
    """Why an expression has no answer, around the name of the claim."""

    #: whether the claim is to be named
    names_claim: bool
    text: str


class DeviceMatch(View):
    """For each device, whether it may serve a request."""

    derived = ("_states",)

    def __init__(
        self,
        table: DeviceTable,
        *,
        selectors: Sequence[LocatedSelector],
        tolerations: Sequence[DeviceToleration],
        compile_selector: Compile,
        evaluate_all: EvaluateAll | None = None,
    ) -> None:
        """`evaluate_all` evaluates an expression for all devices at once, if that is faster."""
        super().__init__(table.changes)
        self._table = table
        self._selectors = selectors
        self._tolerations = tolerations
        self._compile = compile_selector
        self._evaluate_all = evaluate_all
        #: row → state
        self._states: States = np.zeros(0, dtype=np.uint8)

    def rebuild(self) -> None:
        """Evaluate all devices at once, or invalidate them."""
        if self._evaluate_all is None:
            self._states = np.zeros(self._table.size, dtype=np.uint8)
        else:
            self._states = self._ask_about_all(self._evaluate_all)

    def _ask_about_all(self, evaluate_all: EvaluateAll) -> States:
        """Return the state of each device; UNKNOWN for those that have to be evaluated one by one.

        These are devices with invalid values, whose evaluation is an error.
        """
        states = np.full(self._table.size, YES, dtype=np.uint8)
        for each in self._selectors:
            try:
                said = evaluate_all(each.expression)
            except KubeschedError:
                return np.zeros(self._table.size, dtype=np.uint8)
            is_open = states == YES
            states[is_open & ~said.matches] = NO
            states[is_open & said.failed] = FAILED
            states[~said.has_device] = UNKNOWN
        taints, tainted = self._table.taints, self._table.tainted
        rejected = {each: self._is_tainted(each) for each in {taints[row] for row in tainted}}
        for row in tainted:
            if states[row] == YES and rejected[taints[row]]:
                states[row] = TAINTED
        states[list(self._table.free_rows)] = UNKNOWN
        return states

    def update(self, rows: list[int]) -> bool:
        """Invalidate some devices; evaluate all again if there are many."""
        if len(rows) > ASKED_ALONE and self._evaluate_all is not None:
            return False
        if len(self._states) < self._table.size:
            self._states = grown(self._states, (self._table.size,))
        self._states[rows] = UNKNOWN
        return True

    def at(self, row: int) -> int:
        """Return the state of a device; the view must be refreshed."""
        return self._states.item(row) or self._find(row)

    def states(self, rows: IndexArray) -> States:
        """Return the states of some devices; the view must be refreshed."""
        found = self._states[rows]
        if not found.all():
            for row in rows[found == UNKNOWN].tolist():
                self._find(row)
            found = self._states[rows]
        return found

    def _find(self, row: int) -> int:
        state = self._states[row] = self._evaluate(row)
        return state

    def _evaluate(self, row: int) -> int:
        device, driver = self._table.device_at(row), self._table.keys[row][0]
        try:
            selected = all(
                self._compile(each.expression).matches(device, driver) for each in self._selectors
            )
        except KubeschedError:
            return FAILED
        if not selected:
            return NO
        return TAINTED if self._is_tainted(self._table.taints[row]) else YES

    def _is_tainted(self, taints: Sequence[DeviceTaint]) -> bool:
        return any(
            taint.effect in _PREVENTING
            and not any(tolerates(each, taint) for each in self._tolerations)
            for taint in taints
        )

    def rejecting(self, row: int) -> LocatedSelector | None:
        """Return the first selector that does not select a device; None if it has no answer."""
        device, driver = self._table.device_at(row), self._table.keys[row][0]
        try:
            for each in self._selectors:
                if not self._compile(each.expression).matches(device, driver):
                    return each
        except KubeschedError:
            pass
        return None

    def untolerated(self, row: int) -> DeviceTaint | None:
        """Return the first taint of a device that is not tolerated."""
        return next((each for each in self._table.taints[row] if self._is_tainted([each])), None)

    def failure(self, row: int) -> Failure:
        """Return why an expression failed for a device."""
        key = self._table.keys[row]
        device = self._table.device_at(row)
        for each in self._selectors:
            where = f"class {each.class_name}" if each.class_name else ""
            try:
                compiled = self._compile(each.expression)
            except KubeschedError as malformed:
                text = f"{where}: selector #{each.number}: CEL compile error: {malformed}"
                return Failure(not where, text)
            try:
                compiled.matches(device, key[0])
            except KubeschedError as failed:
                on = "/".join(key)
                text = (
                    f"{where}: selector #{each.number} on device {on}: CEL runtime error: "
                    f"{_advised(str(failed))}"
                )
                return Failure(not where, text)
        raise AssertionError(f"no expression fails for {key}")

    def validate(self) -> None:
        """Evaluate all cached devices again."""
        self.refresh()
        require(len(self._states) == self._table.size, "one state a device")
        for row, known in enumerate(self._states.tolist()):
            if known != UNKNOWN:
                require(self._table.devices[row] is not None, f"row {row} has a device")
                require(self._evaluate(row) == known, f"the state of device {row}")


def _advised(text: str) -> str:
    if "no such key:" not in text:
        return text
    return (
        f"{text}. consider using CEL optional chaining (.? followed by orValue()) or guarding the "
        "check with has() for optional fields"
    )
