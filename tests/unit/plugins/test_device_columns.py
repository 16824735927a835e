"""All devices in the columns over which selectors are evaluated."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.api.resource import Device, DeviceAttribute
from kubesched.cluster.device_table import DeviceTable
from kubesched.errors import CelError
from kubesched.plugins.device_columns import CHANGES_PER_ROW, DeviceColumns, columns_of
from tests.support.device_objects import DRIVER, device, slice_of

IS_X = f'device.attributes["{DRIVER}"].model == "x"'
SPEC = slice_of("s", node="n1").spec


def table(*devices: Device) -> DeviceTable:
    made = DeviceTable()
    for each in devices:
        made.add(SPEC, each, ())
    return made


def test_a_selector_is_asked_about_all_devices() -> None:
    known = table(device("a", model="x"), device("b", model="y"), device("c"))
    said = DeviceColumns(known).evaluate(IS_X)
    assert said.matches.tolist() == [True, False, False]
    assert said.failed.tolist() == [False, False, True]
    assert said.has_device.tolist() == [True, True, True]


def test_rows_without_a_device_or_with_one_that_cannot_be_expressed_are_told() -> None:
    broken = Device(name="b", attributes={"v": DeviceAttribute(version_value="1")})
    known = table(device("a", model="x"), broken, device("c", model="x"))
    known.remove(0)
    columns = DeviceColumns(known)
    assert columns.evaluate(IS_X).has_device.tolist() == [False, False, True]
    columns.validate()


def test_devices_that_change_are_taken_over() -> None:
    known = table(device("a", model="x"))
    columns = DeviceColumns(known)
    columns.evaluate(IS_X)
    known.add(SPEC, device("b", model="x"), ())
    known.remove(0)
    said = columns.evaluate(IS_X)
    assert (said.matches & said.has_device).tolist() == [False, True]
    columns.validate()


def test_after_many_changes_columns_are_made_anew() -> None:
    known = table(device("a", model="x"))
    columns = DeviceColumns(known)
    for number in range(CHANGES_PER_ROW * 3):
        known.remove(0)
        known.add(SPEC, device("a", model="x" if number % 2 else "y"), ())
        assert columns.evaluate(IS_X).matches.tolist() == [bool(number % 2)]
    columns.validate()


def test_an_expression_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(CelError):
        DeviceColumns(table()).evaluate("1 +")


def test_all_profiles_share_the_columns_of_a_table() -> None:
    known = table(device("a", model="x"))
    assert columns_of(known) is columns_of(known)
    assert columns_of(known) is not columns_of(table())
    assert np.array_equal(columns_of(known).evaluate(IS_X).matches, [True])
