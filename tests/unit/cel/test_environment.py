"""What expressions about devices can refer to, with all feature gates."""

from __future__ import annotations

import pytest

from kubesched.cel import CelDevice, compile_selector
from kubesched.cel.environment import DEVICE_FIELDS, FUNCTIONS, TYPE_NAMES
from kubesched.errors import CelError


@pytest.mark.parametrize(
    "name",
    [
        "size", "matches", "startsWith", "url", "find", "optional.of", "quantity", "split",
        "sets.contains", "ip", "cidr", "format.named", "semver", "includes",
    ],
)  # fmt: skip
def test_all_libraries_are_there(name: str) -> None:
    assert name in FUNCTIONS


def test_a_device_has_four_fields() -> None:
    assert set(DEVICE_FIELDS) == {"driver", "attributes", "capacity", "allowMultipleAllocations"}
    with pytest.raises(CelError, match="undefined field 'name'"):
        compile_selector("device.name == 'a'")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(CelError, match="undeclared reference to 'node'"):
        compile_selector("node.name == 'a'")


@pytest.mark.parametrize("name", sorted(set(TYPE_NAMES) - {"net.IP", "net.CIDR"}))
def test_types_have_names(name: str) -> None:
    assert compile_selector(f"type({name}) == type").matches(CelDevice("d"))
