"""Selectors of devices are told in a few words, and by the part that a device does not meet."""

from __future__ import annotations

import pytest

from kubesched.explain.device_words import conjuncts, lacking, readable, taint_text
from tests.support.device_objects import DRIVER, device, taint

MEMORY = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
MODEL = f'device.attributes["{DRIVER}"].model == "x"'


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (MEMORY, "memory >= 40Gi"),
        (MODEL, 'model == "x"'),
        (f"({MODEL})", 'model == "x"'),
        (f'device.driver  ==\n "{DRIVER}"', f'driver == "{DRIVER}"'),
        ("(true) && (false)", "(true) && (false)"),
        (
            f"device.attributes['{DRIVER}'].version.compareTo(semver('1.2.0')) < 0",
            "version < 1.2.0",
        ),
    ],
)
def test_what_is_usual_is_left_out(expression: str, words: str) -> None:
    assert readable(expression) == words


@pytest.mark.parametrize(
    ("expression", "parts"),
    [
        (f"{MEMORY} && {MODEL}", (MEMORY, MODEL)),
        (f"({MEMORY} && {MODEL})", (MEMORY, MODEL)),
        (f"{MEMORY} || {MODEL}", (f"{MEMORY} || {MODEL}",)),
        (f'{MODEL} ? true : "a && b" == "c"', (f'{MODEL} ? true : "a && b" == "c"',)),
        ('device.driver == "a && b"', ('device.driver == "a && b"',)),
        (r'device.driver == "\" && b" && true', (r'device.driver == "\" && b"', "true")),
        (
            f'device.attributes["{DRIVER}"].?model.orValue("") == "x" && true',
            (f'device.attributes["{DRIVER}"].?model.orValue("") == "x"', "true"),
        ),
        ("no such && thing(", ("no such && thing(",)),
    ],
)
def test_a_conjunction_has_parts_that_can_be_asked_by_themselves(
    expression: str, parts: tuple[str, ...]
) -> None:
    assert conjuncts(expression) == parts


def test_the_part_is_named_that_a_device_does_not_meet() -> None:
    small = device("a", model="x", capacities={"memory": "24Gi"})
    large = device("b", model="y", capacities={"memory": "80Gi"})

    assert lacking(f"{MEMORY} && {MODEL}", small, DRIVER) == MEMORY
    assert lacking(f"{MEMORY} && {MODEL}", large, DRIVER) == MODEL
    assert lacking(MODEL, device("c"), DRIVER) == MODEL  # it has no such attribute


def test_taints_are_as_users_write_them() -> None:
    assert taint_text(taint(key="k", value="v")) == "k=v:NoSchedule"
    assert taint_text(taint("NoExecute", "k")) == "k:NoExecute"
