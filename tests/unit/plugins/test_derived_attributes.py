"""Attributes that requests derive from those of devices."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.resource import DeviceAttribute, ResourceClaim
from kubesched.cluster.device_table import DeviceTable
from kubesched.errors import CelError, CelRuntimeError
from kubesched.plugins.derived_attributes import DerivedAttributes
from kubesched.plugins.device_rules import SearchRules
from tests.support.device_objects import (
    DRIVER,
    alternative,
    attribute,
    claim,
    device,
    different,
    first_of,
    request,
    same,
    slice_of,
)

from .device_lab import Bench

DERIVES = SearchRules(derived_attributes=True)
OF = f'device.attributes["{DRIVER}"]'


def derived(expression: str, **attributes: Any) -> object:
    table = DeviceTable()
    made = slice_of("s", device("a", **attributes))
    row = table.add(made.spec, made.spec.devices[0], ())
    attributes_of = DerivedAttributes(table, expression)
    found = attributes_of.at(row)
    assert attributes_of.at(row) is found, "evaluated once"
    if isinstance(found, CelError | CelRuntimeError):
        return attributes_of.failure(found, f"{DRIVER}/y", row)
    return found


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (f"{OF}.x + 1", attribute(3)),
        (f"string({OF}.x)", attribute("2")),
        (f"{OF}.x == 2", attribute(value=True)),
        ('semver("1.2.3")', DeviceAttribute(version_value="1.2.3")),
        (f"[{OF}.x, {OF}.x]", attribute([2, 2])),
        ("[true]", attribute([True])),
        ('["a"]', attribute(["a"])),
        ('[semver("1.2.3")]', DeviceAttribute(version_values=("1.2.3",))),
        ("[]", DeviceAttribute()),
    ],
)
def test_values_become_attributes(expression: str, wanted: DeviceAttribute) -> None:
    assert derived(expression, x=2) == wanted


def test_an_expression_without_a_value_says_why() -> None:
    assert derived(f"{OF}.x") == (
        f"evaluate derived attribute {DRIVER}/y on device {DRIVER}/s/a failed: no such key: x"
    )
    said = derived("{1: 2}")
    assert said == (
        f"compile derived attribute {DRIVER}/y failed: must evaluate to a primitive scalar "
        "(string, integer, boolean, semver) or a list of these scalars, not map(int, int)"
    )


def by_half() -> Bench:
    devices = [device(name, slot=slot) for name, slot in zip("abcd", (1, 2, 3, 5), strict=True)]
    return Bench(slice_of("s", *devices, node="n1"), rules=DERIVES)


def pair(expression: str, **more: Any) -> ResourceClaim:
    made = request(count=2, derives={"half": expression})
    return claim("c", made, constraints=[same("half")], **more)


def test_constraints_compare_what_is_derived() -> None:
    assert by_half().names(pair(f"{OF}.slot / 2")) == [["b", "c"]]


def test_a_derived_attribute_hides_one_of_the_same_name() -> None:
    asked = claim(
        "c", request(count=2, derives={"slot": f"{OF}.slot % 2"}), constraints=[different("slot")]
    )
    assert by_half().names(asked) == [["a", "b"]]
    without = claim("c", request(count=2), constraints=[different("slot")])
    assert by_half().names(without) == [["a", "b"]]
    assert by_half().names(claim("c", request(count=3), constraints=asked.spec.devices.constraints))
    three = claim(
        "c", request(count=3, derives={"slot": f"{OF}.slot % 2"}), constraints=[different("slot")]
    )
    assert by_half().names(three) is None


def test_each_alternative_derives_for_itself() -> None:
    asked = claim(
        "c",
        first_of(
            "r",
            alternative("same", count=3, derives={"half": f"{OF}.slot / 2"}),
            alternative("other", count=3, derives={"half": f"{OF}.slot % 2"}),
        ),
        constraints=[same("half")],
    )
    assert by_half().names(asked) == [["a", "c", "d"]]


def test_an_error_ends_the_search() -> None:
    assert by_half().failure(pair(f"{OF}.nothing")) == (
        f"evaluate derived attribute {DRIVER}/half on device {DRIVER}/n1/a failed: "
        "no such key: nothing"
    )


def test_without_the_gate_the_claim_is_refused() -> None:
    bench = Bench(slice_of("s", device("a"), node="n1"))
    assert bench.failure(pair("1")) == (
        "claim default/c, request r: cannot handle request with derived attributes, the feature is "
        "disabled"
    )


def test_what_no_constraint_compares_is_not_evaluated() -> None:
    assert by_half().names(claim("c", request(derives={"bad": "1 / 0"}))) == [["a"]]
