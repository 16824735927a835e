"""Columns say of every device what the scalar evaluation says of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel import CelDevice, compile_selector
from kubesched.cel.columns import ColumnSelector
from kubesched.cel.device_values import DeviceValueTable, cell_of
from kubesched.cel.library import semvers
from kubesched.cel.reads import DeviceColumn
from kubesched.cel.values import Err, Value
from kubesched.errors import CelError

from .vectors import quantity, read

DOMAIN = "gpu.example.com"
ATTRIBUTES = f'device.attributes["{DOMAIN}"]'
CAPACITY = f'device.capacity["{DOMAIN}"]'


class Listed:
    """Devices in a list, told apart by what an expression can tell apart."""

    def __init__(self, devices: list[CelDevice]) -> None:
        self.devices = devices

    def __len__(self) -> int:
        return len(self.devices)

    def keys(self, column: DeviceColumn, rows: Sequence[int]) -> list[Hashable]:
        return [key_of(cell_of(self.devices[row], column)) for row in rows]

    def device(self, row: int) -> CelDevice:
        return self.devices[row]


def key_of(value: Value) -> Hashable:
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(map(key_of, value))
    spelled = getattr(value, "text", None)
    if spelled is None and hasattr(value, "unscaled"):
        spelled = (value.unscaled, value.scale, value.is_small)
    return type(value), value if spelled is None else spelled


def table_of(devices: list[CelDevice]) -> DeviceValueTable:
    return DeviceValueTable(Listed(devices))


def scalar_answers(expression: str, devices: list[CelDevice]) -> list[Value]:
    selector = compile_selector(expression)
    answers = [selector.answer(device) for device in devices]
    return [answer.message if isinstance(answer, Err) else answer for answer in answers]


def column_answers(selector: ColumnSelector, table: DeviceValueTable) -> list[Value]:
    answers = selector.answers(table)
    return [
        answers.error(row) if answers.failed[row] else bool(answers.matches[row])
        for row in range(len(table))
    ]


@pytest.mark.parametrize("file", ["expressions.jsonl", "random_expressions.jsonl"])
def test_columns_give_the_answers_of_all_vectors(file: str) -> None:
    devices, vectors = read(file)
    table = table_of(devices)

    differences = {}
    for vector in vectors:
        if vector.refused is None:
            found = column_answers(ColumnSelector(compile_selector(vector.expression)), table)
            if found != vector.answers:
                differences[vector.expression] = (found, vector.answers)

    assert not differences


versions = st.sampled_from(["1.0.0", "1.2.3", "2.0.0-rc.1"]).map(semvers.parse)
texts = st.sampled_from(["a100", "h100", "t4", ""])
numbers = st.integers(-2, 3)
attributes = st.dictionaries(
    st.sampled_from(["model", "index", "ecc", "version", "tags", "other.example.com/rack"]),
    st.one_of(texts, numbers, st.booleans(), versions, st.lists(texts, max_size=2)),
)
capacities = st.dictionaries(
    st.sampled_from(["memory", "cores"]),
    st.sampled_from(["40Gi", "80Gi", "1500m", "8"]).map(quantity),
)
drivers = st.sampled_from([DOMAIN, "nic.example.com"])
devices = st.builds(
    CelDevice, drivers, attributes, capacities, allow_multiple_allocations=st.booleans()
)

LEAVES = [
    f'{ATTRIBUTES}.model == "a100"',
    f'{ATTRIBUTES}.model != "t4"',
    f"{ATTRIBUTES}.index > 0",
    f"{ATTRIBUTES}.ecc",
    f"!{ATTRIBUTES}.ecc",
    f'{ATTRIBUTES}.version.isGreaterThan(semver("1.1.0"))',
    f'{ATTRIBUTES}.version in ["1.2.3"]',
    f'{ATTRIBUTES}.model in ["a100", "h100"]',
    f'{ATTRIBUTES}.model.startsWith("a")',
    f'{ATTRIBUTES}.model.matches("^[ah]1")',
    f'{ATTRIBUTES}.?model.orValue("none") == "none"',
    f'{ATTRIBUTES}.tags.exists(t, t == "t4")',
    f"has({ATTRIBUTES}.index)",
    f'"index" in {ATTRIBUTES}',
    f"size({ATTRIBUTES}) > 2",
    f'{CAPACITY}.memory.compareTo(quantity("40Gi")) > 0',
    f'{CAPACITY}.cores.isLessThan(quantity("4"))',
    f"{ATTRIBUTES}.index * 10 + {ATTRIBUTES}.index > 10",
    f'{ATTRIBUTES}.model == device.driver || {CAPACITY}.memory == quantity("80Gi")',
    f'cel.bind(g, {ATTRIBUTES}, g.model == "a100" && g.index > 0)',
    'device.attributes["other.example.com"].rack == "t4"',
    'device.driver == "gpu.example.com"',
    "device.allowMultipleAllocations",
    "device.attributes.exists(d, d == device.driver)",
    "1 / 0 == 1",
    "true",
    "dyn(1)",
]
expressions = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda it: f"({it[0]} && {it[1]})"),
        st.tuples(inner, inner).map(lambda it: f"({it[0]} || {it[1]})"),
        st.tuples(inner, inner, inner).map(lambda it: f"({it[0]} ? {it[1]} : {it[2]})"),
        inner.map(lambda it: f"!({it})"),
    ),
    max_leaves=6,
)


@given(expressions, st.lists(devices, min_size=1, max_size=8), st.lists(devices, max_size=4))
def test_columns_agree_with_the_scalar_evaluation(
    expression: str, first: list[CelDevice], later: list[CelDevice]
) -> None:
    try:
        selector = ColumnSelector(compile_selector(expression))
    except CelError:
        return
    devices = list(first)
    table = table_of(devices)

    assert column_answers(selector, table) == scalar_answers(expression, first)

    devices[: len(later)] = later
    table.changed(range(len(later)))
    assert column_answers(selector, table) == scalar_answers(expression, devices)


def test_a_value_is_evaluated_once_however_many_devices_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    selector = ColumnSelector(compile_selector(f'{ATTRIBUTES}.model == "a100"'))
    table = table_of([CelDevice(DOMAIN, {"model": f"m{row % 3}"}) for row in range(1000)])
    runs: list[CelDevice] = []
    (part,) = selector._parts
    run = part._program.run

    def counted(device: CelDevice) -> tuple[Value, int]:
        runs.append(device)
        return run(device)

    monkeypatch.setattr(part._program, "run", counted)

    answers = selector.answers(table)
    selector.answers(table)

    assert not answers.matches.any()
    # three models, and none
    assert len(runs) == 4


def test_an_expression_that_may_cost_too_much_is_left_to_the_scalar_evaluation() -> None:
    expensive = "lists.range(600000).size() > 0"
    expression = f"device.driver == 'x' && {expensive} || {expensive}"
    selector = ColumnSelector(compile_selector(expression))
    devices = [CelDevice("x"), CelDevice("y")]

    assert column_answers(selector, table_of(devices)) == scalar_answers(expression, devices)


def test_a_selector_can_be_asked_about_another_table() -> None:
    selector = ColumnSelector(compile_selector(f"{ATTRIBUTES}.index == 1"))
    first = table_of([CelDevice(DOMAIN, {"index": 1}), CelDevice(DOMAIN, {"index": 2})])
    second = table_of([CelDevice(DOMAIN, {"index": 2}), CelDevice(DOMAIN, {"index": 1})])

    assert selector.answers(first).matches.tolist() == [True, False]
    assert selector.answers(second).matches.tolist() == [False, True]


def test_an_empty_table_has_no_answers() -> None:
    selector = ColumnSelector(compile_selector("true"))

    assert np.array_equal(selector.answers(table_of([])).matches, np.zeros(0, dtype=bool))
