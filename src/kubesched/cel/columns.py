"""Selectors over all devices of a table at once.

    table = DeviceTable()
    row = table.add(device)                       # again with row=... when a device changes
    answers = ColumnSelector(selector).answers(table)
    answers.matches                               # bool, one a row
    answers.error(row)                            # the error's text, or None

A table keeps a column for each attribute and capacity that any of its devices has: the number of
the device's value among the distinct values of the column, 0 if it has none. There are few
distinct values, so an expression is evaluated once for each, by the same closures as for a single
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
from kubesched.cel.device import Device
from kubesched.cel.reads import DRIVER, SHAREABLE, Column, columns_read
from kubesched.cel.selector import Program, Selector
from kubesched.cel.syntax import Call, Expr
from kubesched.cel.values import NO_SUCH_OVERLOAD, Aborted, Err, Value

Codes = npt.NDArray[np.int64]

#: Answers as numbers; from _ERRORS on, errors of the selector's list.
_FALSE: Final = 0
_TRUE: Final = 1
_WHOLE: Final = 2  # the whole expression must be evaluated
_ERRORS: Final = 3

_ABSENT: Final = 0

#: Combinations of values that one number can stand for.
_MAX_COMBINATIONS: Final = 2**62


class _Vocabulary:
    """The distinct values of a column; number 0 is no value."""

    def __init__(self) -> None:
        self.values: list[Value] = [None]
        self._numbers: dict[object, int] = {}

    def number(self, value: Value) -> int:
        key = _key(value)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.values)
            self.values.append(value)
        return number


def _key(value: Value) -> object:
    """Return what tells values apart that an expression can tell apart."""
    if isinstance(value, list):
        return tuple(map(_key, value))
    spelled = getattr(value, "text", None)
    if spelled is not None:
        return type(value), spelled
    if hasattr(value, "unscaled"):
        return type(value), value.unscaled, value.scale, value.is_small
    return type(value), value


class DeviceTable:
    """Devices as columns of value numbers; one row a device."""

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self._columns: dict[Column, Codes] = {}
        self._vocabularies: dict[Column, _Vocabulary] = {}
        self._room = 16

    def __len__(self) -> int:
        return len(self.devices)

    def add(self, device: Device, row: int | None = None) -> int:
        """Add a device, or put it in place of another; returns its row."""
        if row is None:
            row = len(self.devices)
            self.devices.append(device)
            if row >= self._room:
                self._grow()
        else:
            self.devices[row] = device
            for column in self._columns.values():
                column[row] = _ABSENT
        for name, value in _cells(device):
            self._column(name)[row] = self.vocabulary(name).number(value)
        return row

    def codes(self, column: Column) -> Codes:
        """Return the numbers of the values of a column."""
        return self._column(column)[: len(self.devices)]

    def vocabulary(self, column: Column) -> _Vocabulary:
        """Return the values of a column."""
        found = self._vocabularies.get(column)
        if found is None:
            found = self._vocabularies[column] = _Vocabulary()
        return found

    def _column(self, column: Column) -> Codes:
        found = self._columns.get(column)
        if found is None:
            found = self._columns[column] = np.zeros(self._room, dtype=np.int64)
        return found

    def _grow(self) -> None:
        self._room *= 2
        for name, column in self._columns.items():
            self._columns[name] = np.concatenate([column, np.zeros_like(column)])


def _cells(device: Device) -> list[tuple[Column, Value]]:
    cells = [(DRIVER, device.driver), (SHAREABLE, device.is_shareable)]
    for field, domains in (("attributes", device.attributes), ("capacity", device.capacity)):
        for domain, names in domains.items():
            cells += [(Column(field, domain, name), value) for name, value in names.items()]
    return cells


class Answers:
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

    def __init__(self, selector: Selector) -> None:
        self._selector = selector
        self._book = _Book()
        self._parts: list[_Part] = []
        self._tree = self._compiled(selector.tree, is_root=True)
        self._table: DeviceTable | None = None
        #: answers of the whole expression by row, with the device that they are for
        self._whole: dict[int, tuple[Device, int]] = {}

    def answers(self, table: DeviceTable) -> Answers:
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
            codes[whole] = [self._whole_code(row, table.devices[row]) for row in whole.tolist()]
        return Answers(codes, self._book.errors)

    def _whole_code(self, row: int, device: Device) -> int:
        known = self._whole.get(row)
        if known is None or known[0] is not device:
            known = self._whole[row] = device, self._book.code(self._selector.answer(device))
        return known[1]

    def _compiled(self, expr: Expr, *, is_root: bool = False) -> Callable[[DeviceTable], Codes]:
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

    def codes(self, table: DeviceTable) -> Codes:
        """Return the answers for all rows."""
        if self._columns is None:
            return np.full(len(table), _WHOLE, dtype=np.int64)
        if not self._columns:
            return np.full(len(table), self._code(table, ()), dtype=np.int64)
        if len(self._columns) == 1:
            return self._codes_of_one(table, self._columns[0])
        return self._codes_of_several(table, self._columns)

    def _codes_of_one(self, table: DeviceTable, column: Column) -> Codes:
        known, wanted = len(self._of_one), len(table.vocabulary(column).values)
        if known < wanted:
            added = [self._code(table, (number,)) for number in range(known, wanted)]
            self._of_one = np.concatenate([self._of_one, np.array(added, dtype=np.int64)])
        return self._of_one[table.codes(column)]

    def _codes_of_several(self, table: DeviceTable, columns: list[Column]) -> Codes:
        numbers = np.stack([table.codes(column) for column in columns])
        sizes = [len(table.vocabulary(column).values) for column in columns]
        if math.prod(sizes) > _MAX_COMBINATIONS:
            _, first, inverse = np.unique(numbers, axis=1, return_index=True, return_inverse=True)
        else:
            # One number stands for a combination: that is found faster.
            combined = np.ravel_multi_index(tuple(numbers), sizes)
            _, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
        codes = [self._code(table, tuple(column)) for column in numbers[:, first].T.tolist()]
        return np.array(codes, dtype=np.int64)[inverse.reshape(-1)]

    def _code(self, table: DeviceTable, numbers: tuple[int, ...]) -> int:
        code = self._known.get(numbers)
        if code is None:
            code = self._known[numbers] = self._evaluated(table, numbers)
        return code

    def _evaluated(self, table: DeviceTable, numbers: tuple[int, ...]) -> int:
        assert self._columns is not None  # noqa: S101 - the caller looked
        cells = [
            (column, table.vocabulary(column).values[number])
            for column, number in zip(self._columns, numbers, strict=True)
            if number != _ABSENT
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


def _device_of(cells: list[tuple[Column, Value]]) -> Device:
    """Return a device that has these values and no others."""
    device = Device("")
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
