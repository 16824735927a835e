"""Which columns an expression reads."""

from __future__ import annotations

import pytest

from kubesched.cel import compile_selector
from kubesched.cel.reads import DRIVER, SHAREABLE, DeviceColumn, columns_read

MODEL = DeviceColumn("attributes", "d", "model")
INDEX = DeviceColumn("attributes", "d", "index")
MEMORY = DeviceColumn("capacity", "d", "memory")


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("true", set()),
        ('device.driver == "x"', {DRIVER}),
        ("device.allowMultipleAllocations", {SHAREABLE}),
        ('device.attributes["d"].model == "x"', {MODEL}),
        ('device.attributes["d"]["model"] == "x"', {MODEL}),
        ('device.attributes.d.model == "x"', {MODEL}),
        ('device.attributes["d"].?model.orValue("") == "x"', {MODEL}),
        ('device.attributes["d"][?"model"].hasValue()', {MODEL}),
        ('has(device.attributes["d"].model)', {MODEL}),
        ('"model" in device.attributes["d"]', {MODEL}),
        ('device.attributes["d"].model[0] == 1', {MODEL}),
        ('device.capacity["d"].memory == quantity("1")', {MEMORY}),
        ('device.attributes["d"].model in [device.driver]', {MODEL, DRIVER}),
        ('["x"].exists(x, x == device.attributes["d"].model)', {MODEL}),
        ('cel.bind(g, device.attributes["d"], g.model == "x" && g.index > 0)', {MODEL, INDEX}),
        ('cel.bind(m, device.attributes["d"].model, m == "x")', {MODEL}),
        ('[1].all(device, device == 1)', set()),
    ],
)  # fmt: skip
def test_columns_that_are_named(expression: str, want: set[DeviceColumn]) -> None:
    assert columns_read(compile_selector(expression).tree) == frozenset(want)


@pytest.mark.parametrize(
    "expression",
    [
        "device == device",
        "size(device.attributes) > 1",
        'size(device.attributes["d"]) > 1',
        'device.attributes["d"].exists(k, k == "model")',
        "device.attributes[device.driver].model == 1",
        '"d" in device.attributes',
        'cel.bind(a, device.attributes, a["d"].model == 1)',
        'cel.bind(g, device.attributes["d"], size(g) > 1)',
    ],
)
def test_columns_that_depend_on_the_device(expression: str) -> None:
    assert columns_read(compile_selector(expression).tree) is None
