"""Devices that draw on counters of their pool, together with others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubesched.api.resource import Device, ResourceClaim
from kubesched.plugins.device_rules import SearchRules
from tests.support.device_objects import allocated, claim, device, request, result, slice_of

from .device_lab import Bench

GROUPS = SearchRules(compatibility_groups=True)


def part(name: str, *groups: str, units: str = "1") -> Device:
    return device(name, counters={"card": {"units": units}}, groups=groups)


def bench(
    *parts: Device, units: str = "4", taken: Sequence[str] = (), groups: bool = True
) -> Bench:
    others = [allocated(claim(f"of-{name}"), result(name, "p")) for name in taken]
    return Bench(
        slice_of("a", *parts, node="n1", pool="p", slices=2),
        slice_of("b", node="n1", pool="p", slices=2, counters={"card": {"units": units}}),
        *others,
        rules=GROUPS if groups else SearchRules(),
    )


def pair() -> ResourceClaim:
    return claim("c", request(count=2))


def test_counters_have_to_suffice_for_all() -> None:
    made = bench(part("a", units="3"), part("b", units="2"), part("c", units="1"))
    assert made.names(pair()) == [["a", "c"]]


def test_allocated_devices_draw_on_counters() -> None:
    made = bench(part("a", units="3"), part("b", units="2"), part("c", units="1"), taken=["a"])
    assert made.names(claim("c", request())) == [["c"]]
    assert made.names(pair()) is None


def test_devices_that_draw_together_need_a_group_in_common() -> None:
    made = bench(part("a", "x"), part("b", "y"), part("c", "y", "x"))
    assert made.names(pair()) == [["a", "c"]]
    assert made.names(claim("c", request(count=3))) is None


def test_devices_without_groups_draw_with_their_like() -> None:
    made = bench(part("a"), part("b", "x"), part("c"))
    assert made.names(pair()) == [["a", "c"]]


def test_devices_have_to_go_with_those_that_are_allocated() -> None:
    parts = [part("a", "x"), part("b", "y"), part("c", "x")]
    assert bench(*parts, taken=["a"]).names(claim("c", request())) == [["c"]]
    assert bench(*parts, taken=["b"]).names(claim("c", request())) is None


def test_a_choice_that_comes_to_nothing_leaves_no_trace() -> None:
    # With a, no second device goes; then b and c must be as free as at first.
    made = bench(part("a", "x"), part("b", "y"), part("c", "y"))
    assert made.names(pair()) == [["b", "c"]]


def test_groups_are_heeded_before_counters_suffice() -> None:
    made = bench(part("a", "x", units="2"), part("b", "x", units="3"), part("c", "x", units="2"))
    assert made.names(pair()) == [["a", "c"]]


@pytest.mark.parametrize("name", ["grouped", "plain"])
def test_without_the_gate_nothing_of_such_a_pool_is_allocated(name: str) -> None:
    made = bench(part("grouped", "x"), part("plain"), groups=False)
    asked = claim("c", request("r", f'device.driver != "{name}"'))
    assert made.names(asked) is None
    assert "is currently being updated" in made.failure(claim("c", request(every=True)))
