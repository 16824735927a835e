"""Selectors over all devices of a table at once.

    answers = ColumnSelector(selector).answers(table)
    answers.matches                               # bool, one a row
    answers.error(row)                            # the error's text, or None

A table has the values of its devices by number (``device_values``), and there are few distinct
ones. So an expression is evaluated once for each value, by the same closures as for a single
device, and devices get the answer by one gather. Answers are kept: a device that is added later
costs nothing unless its values are new.

``&&``, ``||``, ``!`` and ``?:`` are taken apart, so that each part reads as few columns as
possible: mostly one. A part that reads several is evaluated once for each combination that occurs.
Errors follow the rules of CEL: an error counts unless another term decides.

Three things are left to the scalar evaluation of the whole expression: parts of which it is not
known what they read, evaluations that end for good (see ``values.Aborted``), and expressions that
might cost too much, because only it knows what is not evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from kubesched.cel.answers import as_bool
from kubesched.cel.device import CelDevice
from kubesched.cel.device_values import ABSENT, Codes, DeviceValueTable
from kubesched.cel.reads import DRIVER, SHAREABLE, DeviceColumn, columns_read
from kubesched.cel.selector import CelSelector, Program
from kubesched.cel.syntax import Call, Expr
from kubesched.cel.values import NO_SUCH_OVERLOAD, Aborted, Err, Value

#: Answers as numbers; from _ERRORS on, errors of the selector's list.
_FALSE: Final = 0
_TRUE: Final = 1
_WHOLE: Final = 2  # the whole expression must be evaluated
_ERRORS: Final = 3

#: Combinations of values that one number can stand for.
_MAX_COMBINATIONS: Final = 2**62


class RowResults:
    """What a selector says of each row."""

    def __init__(self, codes: Codes, errors: list[str]) -> None:
        self._codes = codes
        self._errors = errors
        self.matches: npt.NDArray[np.bool_] = codes == _TRUE
        self.failed: npt.NDArray[np.bool_] = codes >= _ERRORS

    def error(self, row: int) -> str | None:
        """Return the text of a row's error, or None."""
        code = int(self._codes[row])
        return self._errors[code - _ERRORS] if code >= _ERRORS else None


class ColumnSelector:
    """A selector that answers for all devices of a table."""

    def __init__(self, selector: CelSelector) -> None:
        self._selector = selector
        self._book = _Book()
        self._parts: list[_Part] = []
        self._tree = self._compiled(selector.tree, is_root=True)
        self._table: DeviceValueTable | None = None
        #: answers of the whole expression by row, with the device that they are for
        self._whole: dict[int, tuple[CelDevice, int]] = {}

    def answers(self, table: DeviceValueTable) -> RowResults:
        """Return what the selector says of each device."""
        if table is not self._table:
            # Numbers of values mean something within their table only.
            self._table = table
            for part in self._parts:
                part.forget()
        codes = self._tree(table)
        if sum(part.highest_cost for part in self._parts) > self._selector.cost_limit:
            codes = np.full(len(table), _WHOLE, dtype=np.int64)
        whole = np.flatnonzero(codes == _WHOLE)
        if whole.size:
            codes = codes.copy()
            codes[whole] = [self._whole_code(row, table.device(row)) for row in whole.tolist()]
        return RowResults(codes, self._book.errors)

    def _whole_code(self, row: int, device: CelDevice) -> int:
        known = self._whole.get(row)
        if known is None or known[0] is not device:
            known = self._whole[row] = device, self._book.code(self._selector.answer(device))
        return known[1]

    def _compiled(
        self, expr: Expr, *, is_root: bool = False
    ) -> Callable[[DeviceValueTable], Codes]:
        if isinstance(expr, Call):
            match expr.function:
                case "_&&_" | "_||_":
                    decides = _FALSE if expr.function == "_&&_" else _TRUE
                    terms = [self._compiled(arg) for arg in expr.args]
                    return lambda table: _decided([term(table) for term in terms], decides)
                case "!_":
                    operand = self._compiled(expr.args[0])
                    return lambda table: _negated(operand(table))
                case "_?_:_":
                    condition = self._compiled(expr.args[0])
                    branches = [self._compiled(arg, is_root=is_root) for arg in expr.args[1:]]
                    return lambda table: _chosen(
                        condition(table), *(branch(table) for branch in branches)
                    )
        part = _Part(expr, self._book, self._selector.cost_limit, is_root=is_root)
        self._parts.append(part)
        return part.codes


def _decided(terms: list[Codes], decides: int) -> Codes:
    """``&&`` (decided by false) and ``||`` (by true): the first error counts if none decides."""
    result = np.full_like(terms[0], 1 - decides)
    for term in reversed(terms):
        result = np.where(term > _TRUE, term, result)
    for term in terms:
        result = np.where(term == decides, decides, result)
    # What ends the evaluation for good does so even if another term decides.
    for term in terms:
        result = np.where(term == _WHOLE, _WHOLE, result)
    return result


def _negated(operand: Codes) -> Codes:
    return np.where(operand <= _TRUE, 1 - operand, operand)


def _chosen(condition: Codes, if_true: Codes, if_false: Codes) -> Codes:
    branch = np.where(condition == _TRUE, if_true, if_false)
    return np.where(condition > _TRUE, condition, branch)


class _Book:
    """The errors of a selector, by number."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, answer: bool | Err) -> int:
        if not isinstance(answer, Err):
            return _TRUE if answer else _FALSE
        code = self._codes.get(answer.message)
        if code is None:
            code = self._codes[answer.message] = len(self.errors) + _ERRORS
            self.errors.append(answer.message)
        return code


class _Part:
    """A part of the expression that is evaluated for combinations of values."""

    def __init__(self, expr: Expr, book: _Book, cost_limit: int, *, is_root: bool) -> None:
        self._program = Program(expr, cost_limit=cost_limit)
        reads = columns_read(expr)
        self._columns = None if reads is None else sorted(reads)
        self._book = book
        self._is_root = is_root
        self.highest_cost = 0
        self._known: dict[tuple[int, ...], int] = {}
        self._of_one: Codes = np.zeros(0, dtype=np.int64)

    def forget(self) -> None:
        """Forget answers that were for another table."""
        self._known = {}
        self._of_one = np.zeros(0, dtype=np.int64)

    def codes(self, table: DeviceValueTable) -> Codes:
        """Return the answers for all rows."""
        if self._columns is None:
            return np.full(len(table), _WHOLE, dtype=np.int64)
        if not self._columns:
            return np.full(len(table), self._code(table, ()), dtype=np.int64)
        if len(self._columns) == 1:
            return self._codes_of_one(table, self._columns[0])
        return self._codes_of_several(table, self._columns)

    def _codes_of_one(self, table: DeviceValueTable, column: DeviceColumn) -> Codes:
        known, wanted = len(self._of_one), len(table.values(column))
        if known < wanted:
            added = [self._code(table, (number,)) for number in range(known, wanted)]
            self._of_one = np.concatenate([self._of_one, np.array(added, dtype=np.int64)])
        return self._of_one[table.codes(column)]

    def _codes_of_several(self, table: DeviceValueTable, columns: list[DeviceColumn]) -> Codes:
        numbers = np.stack([table.codes(column) for column in columns])
        sizes = [len(table.values(column)) for column in columns]
        if math.prod(sizes) > _MAX_COMBINATIONS:
            _, first, inverse = np.unique(numbers, axis=1, return_index=True, return_inverse=True)
        else:
            # One number stands for a combination: that is found faster.
            combined = np.ravel_multi_index(tuple(numbers), sizes)
            _, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
        codes = [self._code(table, tuple(column)) for column in numbers[:, first].T.tolist()]
        return np.array(codes, dtype=np.int64)[inverse.reshape(-1)]

    def _code(self, table: DeviceValueTable, numbers: tuple[int, ...]) -> int:
        code = self._known.get(numbers)
        if code is None:
            code = self._known[numbers] = self._evaluated(table, numbers)
        return code

    def _evaluated(self, table: DeviceValueTable, numbers: tuple[int, ...]) -> int:
        assert self._columns is not None  # noqa: S101 - the caller looked
        cells = [
            (column, table.values(column)[number])
            for column, number in zip(self._columns, numbers, strict=True)
            if number != ABSENT
        ]
        try:
            value, cost = self._program.run(_device_of(cells))
        except Aborted:
            return _WHOLE
        self.highest_cost = max(self.highest_cost, cost)
        if self._is_root:
            return self._book.code(as_bool(value))
        is_usable = value is True or value is False or isinstance(value, Err)
        return self._book.code(value if is_usable else NO_SUCH_OVERLOAD)


def _device_of(cells: list[tuple[DeviceColumn, Value]]) -> CelDevice:
    """Return a device that has these values and no others."""
    device = CelDevice("")
    attributes: dict[str, dict[str, Value]] = {}
    capacity: dict[str, dict[str, Value]] = {}
    for column, value in cells:
        if column == DRIVER:
            device.driver = value
        elif column == SHAREABLE:
            device.is_shareable = value
        else:
            domains = attributes if column.field == "attributes" else capacity
            domains.setdefault(column.domain, {})[column.name] = value
    device.attributes, device.capacity = attributes, capacity
    return device
