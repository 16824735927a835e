"""The value of an expression as the answer of a selector."""

from __future__ import annotations

import pytest

from kubesched.cel.answers import as_bool
from kubesched.cel.values import Err, Optional, Uint, Value


@pytest.mark.parametrize("value", [True, False])
def test_a_bool_is_the_answer(value: bool) -> None:
    assert as_bool(value) is value
    assert as_bool(Optional(Optional(value))) is value, "and so is what an optional holds"


def test_an_error_stays_one() -> None:
    failed = Err("no such key: x")
    assert as_bool(failed) is failed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("yes", "string could not be converted to bool: unsupported native conversion from string"),
        (1, "int could not be converted to bool: unsupported type conversion from 'int' to bool"),
        (Uint(1), "uint could not be converted to bool: unsupported type conversion from 'uint'"),
        (1.0, "double could not be converted to bool: type conversion error from Double to 'bool'"),
        (None, "null_type could not be converted to bool: type conversion error from 'null_type'"),
        ([True], "list could not be converted to bool: type conversion error from list to 'bool'"),
    ],
)
def test_another_value_is_an_error_that_names_its_type(value: Value, text: str) -> None:
    found = as_bool(value)
    assert isinstance(found, Err)
    assert found.message.startswith(f"CEL result of type {text}")
