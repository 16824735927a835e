"""Derived attributes: what they may be, and what they are."""

from __future__ import annotations

import pytest

from kubesched.cel import CelDevice, compile_derived_attribute
from kubesched.errors import CelError, CelRuntimeError

DEVICE = CelDevice("gpu.example.com", {"model": "a100", "numbers": [1, 2]})
ATTRIBUTES = 'device.attributes["gpu.example.com"]'


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("device.driver", "gpu.example.com"),
        (f"{ATTRIBUTES}.model + '-x'", "a100-x"),
        (f"{ATTRIBUTES}.numbers", [1, 2]),
        (f"size({ATTRIBUTES})", 2),
        ("[device.driver]", ["gpu.example.com"]),
        ("dyn([])", []),
        ("dyn(optional.of(1))", 1),
    ],
)
def test_values(expression: str, want: object) -> None:
    assert compile_derived_attribute(expression).value(DEVICE) == want


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        (f"{ATTRIBUTES}.nope", "no such key: nope"),
        ("dyn(1.5)", "unsupported CEL return type: float64"),
        ("dyn([1.5])", "unsupported list element type: float64"),
        ("dyn([dyn(1), dyn('a')])", "expected list element at index 1 to be int, got string"),
        ("dyn(optional.none())", "unsupported CEL return type: <nil>"),
    ],
)
def test_values_that_are_no_attribute(expression: str, want: str) -> None:
    with pytest.raises(CelRuntimeError) as raised:
        compile_derived_attribute(expression).value(DEVICE)

    assert str(raised.value) == want


@pytest.mark.parametrize(
    ("expression", "shown"),
    [("1.5", "double"), ("[[1]]", "list(list(int))"), ("quantity('1')", "kubernetes.Quantity")],
)
def test_types_that_are_refused(expression: str, shown: str) -> None:
    with pytest.raises(CelError) as raised:
        compile_derived_attribute(expression)

    assert str(raised.value) == (
        "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of "
        f"these scalars, not {shown}"
    )
