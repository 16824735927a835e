"""What speaks against devices: counted for each request by itself, and for how many together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kubesched.api.resource import ResourceClaim
from kubesched.plugins.device_census import CountedRequest, DeviceCensus
from kubesched.plugins.device_counters import CounterCache
from kubesched.plugins.device_ledger import DeviceState, Obstacle
from kubesched.plugins.device_rules import SearchRules
from tests.support.device_objects import (
    DRIVER,
    allocated,
    claim,
    device,
    fill,
    request,
    result,
    same,
    slice_of,
    taint,
)
from tests.support.objects import node

from .device_lab import Bench

RED = f'device.attributes["{DRIVER}"].color == "red"'
FOUR = slice_of(
    "s",
    device("a", color="red"),
    device("b", color="red"),
    device("c", color="blue"),
    device("d", color="red", taints=[taint()]),
    node="n1",
)


def census(bench: Bench, *claims: ResourceClaim) -> DeviceCensus:
    devices, rules = bench.cluster.devices, SearchRules()
    counters = CounterCache(devices.table, devices.uses)
    state = DeviceState(devices.table, devices.uses, counters, rules)
    table = bench.cluster.table
    nodes = table.valid[: table.size].copy()
    return DeviceCensus(
        claims, bench.wanted(*claims), devices.visible(rules.of_pools), state, nodes
    )


def counted(bench: Bench, *claims: ResourceClaim) -> tuple[DeviceCensus, int, list[CountedRequest]]:
    found = census(bench, *claims)
    ((number, rows),) = found.rows_with_devices().items()
    assert rows == [0]
    return found, number, found.count(number)


def obstacles(found: DeviceCensus, one: CountedRequest) -> dict[str, Obstacle | None]:
    return {found.table.keys[row][2]: each for row, each in one.obstacles.items()}


def test_only_nodes_that_see_devices_have_rows() -> None:
    bench = Bench(FOUR)
    bench.cluster.put_node(node("n2"))
    found = census(bench, claim("c", request()))

    assert list(found.rows_with_devices().values()) == [[0]]


def test_each_device_has_what_excludes_it() -> None:
    bench = Bench(FOUR)
    fill(bench.cluster, allocated(claim("other"), result("a")))
    found, _, (one,) = counted(bench, claim("c", request("r", RED, count=3)))

    assert obstacles(found, one) == {
        "a": Obstacle.IN_USE,
        "b": None,
        "c": Obstacle.SELECTOR,
        "d": Obstacle.TAINT,
    }
    assert len(one.usable) == 1
    assert (one.wanted, one.missing) == (3, 2)


def test_a_request_for_all_devices_wants_those_that_its_selectors_match() -> None:
    bench = Bench(FOUR)
    _, _, (one,) = counted(bench, claim("c", request("r", RED, every=True)))

    assert (one.wanted, one.missing) == (3, 1), "the tainted one is among them"


def test_requests_are_counted_one_by_one_with_the_number_of_their_claim() -> None:
    bench = Bench(FOUR)
    claims = claim("c", request("x"), request("y", RED)), claim("d", request())
    found, _, each = counted(bench, *claims)

    assert [one.claim for one in each] == [0, 0, 1]
    assert [len(one.usable) for one in each] == [3, 2, 3]
    assert [number for number, _ in found.requests()] == [0, 0, 1]


def test_a_selector_without_an_answer_is_a_problem() -> None:
    bench = Bench(FOUR)
    _, _, (one,) = counted(bench, claim("c", request("r", f'device.attributes["{DRIVER}"].none')))

    assert "c" in one.problem
    assert set(one.obstacles.values()) == {Obstacle.SELECTOR}


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        pytest.param({"count": 1}, 1, id="as many as are asked for"),
        pytest.param({"count": 9}, 3, id="as many as there are"),
        pytest.param({"every": True}, 3, id="all"),
    ],
)
def test_how_many_a_request_can_have(asked: dict[str, Any], want: int) -> None:
    found, number, (one,) = counted(Bench(FOUR), claim("c", request(**asked)))
    assert found.most(number, one) == want


def test_constraints_leave_fewer_than_are_usable() -> None:
    made = claim("c", request("r", count=3), constraints=[same("color", "r")])
    found, number, (one,) = counted(Bench(FOUR), made)

    assert len(one.usable) == 3
    assert found.most(number, one) == 2, "two of them are red"


def test_the_rows_to_explain_may_be_some_of_all() -> None:
    bench = Bench(FOUR)
    found = census(bench, claim("c", request()))
    found._nodes = np.zeros_like(found._nodes)

    assert found.rows_with_devices() == {}
