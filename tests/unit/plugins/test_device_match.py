"""Which devices may serve a request: selectors of its class and its own, and taints."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.api.resource import DeviceTaint, DeviceToleration
from kubesched.cluster.device_table import DeviceTable
from kubesched.cluster.pod_signature import tolerates
from kubesched.plugins.device_columns import DeviceColumns
from kubesched.plugins.device_match import (
    ASKED_ALONE,
    FAILED,
    NO,
    TAINTED,
    YES,
    DeviceMatch,
    LocatedSelector,
)
from kubesched.plugins.device_selectors import compile_selector
from tests.support.device_objects import DRIVER, device, slice_of, taint

OF = f'device.attributes["{DRIVER}"]'
DEVICES = slice_of(
    "s",
    device("x", model="x"),
    device("y", model="y"),
    device("none"),
    device("tainted", model="x", taints=[taint()]),
    device("noted", model="x", taints=[taint("None")]),
    node="n1",
)
WANTED = {"x": YES, "y": NO, "none": FAILED, "tainted": TAINTED, "noted": YES}


def table() -> DeviceTable:
    made = DeviceTable()
    for each in DEVICES.spec.devices:
        made.add(DEVICES.spec, each, each.taints)
    return made


def match(
    known: DeviceTable, *selectors: LocatedSelector, at_once: bool = False, tolerant: bool = False
) -> DeviceMatch:
    made = DeviceMatch(
        known,
        selectors=selectors,
        tolerations=[DeviceToleration(operator="Exists")] if tolerant else [],
        compile_selector=compile_selector,
        evaluate_all=DeviceColumns(known).evaluate if at_once else None,
    )
    made.refresh()
    return made


def states(made: DeviceMatch, known: DeviceTable) -> dict[str, int]:
    return {known.keys[row][2]: made.at(row) for row in range(known.size) if known.devices[row]}


IS_X = LocatedSelector("", 0, f'{OF}.model == "x"')


@pytest.mark.parametrize("at_once", [False, True])
def test_devices_are_selected_but_for_taints_or_an_expression_fails(at_once: bool) -> None:
    known = table()
    made = match(known, IS_X, at_once=at_once)
    assert states(made, known) == WANTED
    made.validate()
    tolerant = match(known, IS_X, at_once=at_once, tolerant=True)
    assert states(tolerant, known) == {**WANTED, "tainted": YES}


@pytest.mark.parametrize("at_once", [False, True])
def test_the_first_selector_that_says_no_decides(at_once: bool) -> None:
    known = table()
    never = LocatedSelector("gpu", 0, "false")
    assert set(states(match(known, never, IS_X, at_once=at_once), known).values()) == {NO}
    assert states(match(known, IS_X, never, at_once=at_once), known)["none"] == FAILED


@pytest.mark.parametrize("at_once", [False, True])
def test_devices_that_change_are_asked_about_again(at_once: bool) -> None:
    known = table()
    made = match(known, IS_X, at_once=at_once)
    assert made.at(0) == YES
    known.remove(0)
    known.add(DEVICES.spec, device("x", model="y"), ())
    known.set_taints(3, ())
    made.refresh()
    assert states(made, known) == {**WANTED, "x": NO, "tainted": YES}
    made.validate()


@pytest.mark.parametrize("at_once", [False, True])
def test_many_devices_that_change_at_once_are_asked_about_again(at_once: bool) -> None:
    known = table()
    made = match(known, IS_X, at_once=at_once)
    added = [
        known.add(DEVICES.spec, device(f"n{number}", model="xy"[number % 2]), ())
        for number in range(ASKED_ALONE + 1)
    ]
    known.set_taints(0, (taint(),))
    made.refresh()
    rows = np.array([0, *added], dtype=np.intp)
    assert made.states(rows).tolist() == [TAINTED, *[YES, NO] * (ASKED_ALONE // 2), YES]
    made.validate()


def test_a_failure_names_what_is_to_blame() -> None:
    known = table()
    of_claim, of_class = (
        match(known, IS_X),
        match(known, LocatedSelector("gpu", 1, f"{OF}.model == 'x'")),
    )
    failure = of_claim.failure(2)
    assert failure.names_claim
    assert failure.text.startswith(f": selector #0 on device {DRIVER}/n1/none: CEL runtime error: ")
    assert "consider using CEL optional chaining" in failure.text
    failure = of_class.failure(2)
    assert not failure.names_claim
    assert failure.text.startswith("class gpu: selector #1 on device")


def test_an_expression_that_makes_no_sense_fails_for_all() -> None:
    known = table()
    made = match(known, LocatedSelector("", 0, "1 +"), at_once=True)
    assert set(states(made, known).values()) == {FAILED}
    assert made.failure(0).text.startswith(": selector #0: CEL compile error: compilation failed:")


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        (DeviceToleration(key="broken", operator="Exists"), True),
        (DeviceToleration(operator="Exists"), True),
        (DeviceToleration(key="broken", value="v"), True),
        (DeviceToleration(key="broken", operator="Equal", value="v"), True),
        (DeviceToleration(key="broken", operator="Equal", value="w"), False),
        (DeviceToleration(key="other", operator="Exists"), False),
        (DeviceToleration(operator="Exists", effect="NoExecute"), False),
        (DeviceToleration(operator="Exists", effect="NoSchedule"), True),
        (DeviceToleration(key="broken", operator="Like", value="v"), False),
    ],
)
def test_tolerations_cover_taints(toleration: DeviceToleration, want: bool) -> None:
    given = DeviceTaint(key="broken", value="v", effect="NoSchedule")
    assert tolerates(toleration, given) is want
