"""A device as selectors see it."""

from __future__ import annotations

import pytest

from kubesched.cel import CelDevice, quantity, version
from kubesched.errors import CelRuntimeError


def test_names_are_split_into_domain_and_name() -> None:
    device = CelDevice("d", {"a": 1, "x.example.com/b": 2}, {"c": quantity("1")})

    assert device.attributes == {"d": {"a": 1}, "x.example.com": {"b": 2}}
    assert list(device.capacity) == ["d"]


def test_the_variable_has_four_fields() -> None:
    device = CelDevice("d", allow_multiple_allocations=True)

    assert sorted(device.value) == ["allowMultipleAllocations", "attributes", "capacity", "driver"]


def test_texts_that_are_no_version_or_quantity_are_errors() -> None:
    with pytest.raises(CelRuntimeError, match=r"^parse semantic version: No Major.Minor.Patch"):
        version("1.0")
    with pytest.raises(CelRuntimeError, match=r"^quantities must match"):
        quantity("x")
