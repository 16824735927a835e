"""The first devices that serve claims together, in kube-scheduler's order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.resource import (
    CapacityRequestPolicyRange,
    Device,
    DeviceRequest,
    DeviceToleration,
    ResourceClaim,
)
from kubesched.plugins.device_constraints import comparable, find_attribute
from kubesched.plugins.device_requests import AllocationError
from kubesched.plugins.device_rules import SearchRules
from kubesched.plugins.device_search import SearchPausedError
from kubesched.plugins.device_selectors import compile_selector
from tests.support.device_objects import (
    DRIVER,
    allocated,
    alternative,
    capacity,
    claim,
    device,
    device_class,
    different,
    fill,
    first_of,
    request,
    result,
    same,
    slice_of,
    taint,
)

from .device_lab import Bench

IS_X = 'device.attributes["gpu.example.com"].model == "x"'


def gpus(*names: str, **common: Any) -> list[Device]:
    return [device(each, **common) for each in names]


# --- order --------------------------------------------------------------------------------------


def test_pools_slices_and_devices_are_taken_in_order() -> None:
    bench = Bench(
        slice_of("z", device("z0"), node="n1", pool="pool-b"),
        slice_of("y2", device("a0"), node="n1", pool="pool-a", slices=2),
        slice_of("y1", device("b1"), device("b0"), node="n1", pool="pool-a", slices=2),
    )
    assert bench.names(claim("c", request(count=4))) == [["b1", "b0", "a0", "z0"]]


def test_devices_that_have_to_be_made_ready_come_last() -> None:
    bench = Bench(
        slice_of("a", device("slow", conditions=["Ready"]), node="n1", pool="a"),
        slice_of("b", device("fast"), node="n1", pool="b"),
    )
    assert bench.names(claim("c", request(count=1))) == [["fast"]]


def test_requests_and_claims_get_devices_in_turn() -> None:
    bench = Bench(slice_of("s", *gpus("a", "b", "c", "d"), node="n1"))
    one, two = claim("1", request("r0"), request("r1")), claim("2", request(count=2))
    assert bench.names(one, two) == [["a", "b"], ["c", "d"]]


def test_devices_of_claims_that_exist_are_taken() -> None:
    other = allocated(claim("other"), result("a"))
    bench = Bench(slice_of("s", *gpus("a", "b"), node="n1"), other)
    assert bench.names(claim("c", request())) == [["b"]]
    assert bench.names(claim("c", request(count=2))) is None


def test_an_earlier_request_gives_way_to_a_later_one() -> None:
    bench = Bench(slice_of("s", device("a", model="x"), device("b", model="y"), node="n1"))
    assert bench.names(claim("c", request("any"), request("x", IS_X))) == [["b", "a"]]


# --- kinds of requests --------------------------------------------------------------------------


def test_all_devices_means_every_one_that_matches() -> None:
    bench = Bench(
        slice_of(
            "s", device("a", model="x"), device("b", model="y"), device("c", model="x"), node="n1"
        )
    )
    assert bench.names(claim("c", request("r", IS_X, every=True))) == [["a", "c"]]
    nothing = 'device.attributes["gpu.example.com"].model == "none"'
    assert bench.names(claim("c", request("r", nothing, every=True))) is None


def test_all_devices_cannot_be_had_if_one_is_taken() -> None:
    taken = allocated(claim("other"), result("b"))
    bench = Bench(slice_of("s", *gpus("a", "b"), node="n1"), taken)
    assert bench.names(claim("c", request(every=True))) is None


@pytest.mark.parametrize(
    ("slices", "devices", "state"), [(2, ("a", "b"), "being updated"), (1, ("a", "a"), "invalid")]
)
def test_what_all_devices_are_cannot_be_said_of_a_pool_in_disorder(
    slices: int, devices: tuple[str, ...], state: str
) -> None:
    bench = Bench(slice_of("s", *gpus(*devices), node="n1", slices=slices))
    assert bench.failure(claim("c", request(every=True))) == (
        "claim default/c, request r: asks for all devices, but resource pool "
        f"gpu.example.com/n1 is currently {state}"
    )
    assert bench.names(claim("c", request())) is None


def test_the_first_alternative_that_can_be_had_is_chosen() -> None:
    bench = Bench(slice_of("s", device("a", model="y"), device("b", model="x"), node="n1"))
    asked = first_of("r", alternative("two-x", IS_X, count=2), alternative("x", IS_X))
    found = bench.solve(claim("c", asked))
    assert found is not None
    assert [pick.request.full_name for pick in found.picks[0]] == ["r/x"]
    assert found.chosen == ((1,),)
    assert found.score(bench.wanted(claim("c", asked))) == 7


def test_administrators_have_access_to_devices_in_use_but_not_twice() -> None:
    taken = allocated(claim("other"), result("a"))
    bench = Bench(slice_of("s", *gpus("a", "b"), node="n1"), taken)
    admin = claim("c", request("r", count=2, admin=True))
    assert bench.names(admin) == [["a", "b"]]
    assert bench.names(claim("c", request("r", count=3, admin=True))) is None


def test_a_tainted_device_is_for_requests_that_tolerate_it() -> None:
    bench = Bench(
        slice_of("s", device("a", taints=[taint()]), device("b", taints=[taint("None")]), node="n1")
    )
    assert bench.names(claim("c", request(count=2))) is None
    tolerates = [DeviceToleration(key="broken", operator="Exists")]
    assert bench.names(claim("c", request(count=2, tolerates=tolerates))) == [["a", "b"]]


# --- limits -------------------------------------------------------------------------------------


def test_a_claim_gets_32_devices_at_most() -> None:
    bench = Bench(slice_of("s", *gpus(*(f"d{number:02}" for number in range(40))), node="n1"))
    assert bench.failure(claim("c", request("a", count=20), request("b", count=13))) == (
        "claim default/c, request b: adding 13 devices exceeds the claim limit of 32, with 20 "
        "already accounted for"
    )


def test_an_alternative_that_asks_for_too_many_makes_way_for_a_smaller_one() -> None:
    bench = Bench(slice_of("s", *gpus(*(f"d{number:02}" for number in range(40))), node="n1"))
    asked = claim(
        "c",
        first_of("a", alternative("many", count=30), alternative("few", count=2)),
        request("b", count=5),
    )
    found = bench.solve(asked)
    assert found is not None
    assert found.chosen == ((1, 0),)
    assert len(found.picks[0]) == 7


def test_a_search_ends_when_time_is_up() -> None:
    """Devices that differ in an attribute that must be the same: all combinations are tried."""
    devices = [device(f"d{number}", a=number % 7, b=number) for number in range(32)]
    bench = Bench(slice_of("s", *devices, node="n1"))
    hopeless = claim("c", request(count=16), constraints=[same("b"), different("a")])
    assert bench.solve(hopeless) is None
    several = claim(
        "c", *(request(f"r{n}", count=4) for n in range(6)), constraints=[different("a")]
    )
    with pytest.raises(SearchPausedError):
        bench.solve(several, steps=256)


def test_equal_devices_are_not_tried_in_all_combinations() -> None:
    bench = Bench(slice_of("s", *(device(f"d{number:02}", a=1) for number in range(32)), node="n1"))
    asked = claim("c", *(request(f"r{n}") for n in range(31)), request("x", IS_X.replace("x", "1")))
    with pytest.raises(AllocationError, match="no such key"):
        bench.solve(asked, steps=10_000)
    x = 'device.attributes["gpu.example.com"].a == 2'
    assert bench.solve(claim("c", request("r", count=16), request("x", x)), steps=10_000) is None


# --- constraints --------------------------------------------------------------------------------


def test_devices_with_the_same_value_go_together() -> None:
    devices = [device("a", numa=0), device("b", numa=1), device("c", numa=0), device("d")]
    bench = Bench(slice_of("s", *devices, node="n1"))
    assert bench.names(claim("c", request(count=2), constraints=[same("numa")])) == [["a", "c"]]
    assert bench.names(claim("c", request(count=2), constraints=[different("numa")])) == [
        ["a", "b"]
    ]
    assert bench.names(claim("c", request(count=3), constraints=[different("numa")])) is None


def test_a_constraint_may_be_about_some_requests_or_alternatives() -> None:
    devices = [device("a", numa=0), device("b", numa=1), device("c", numa=1)]
    bench = Bench(slice_of("s", *devices, node="n1"))
    asked = [request("r0"), request("r1"), first_of("r2", alternative("s"))]
    alike = same("numa", "r1", "r2/s")
    assert bench.names(claim("c", *asked, constraints=[alike])) == [["a", "b", "c"]]


def test_all_devices_that_break_a_constraint_are_an_error() -> None:
    bench = Bench(slice_of("s", device("a", numa=0), device("b", numa=1), node="n1"))
    assert bench.failure(claim("c", request(every=True), constraints=[same("numa")])) == (
        "claim default/c, request r: cannot add device gpu.example.com/n1/b because a claim "
        "constraint would not be satisfied"
    )


# --- partitions and shares ----------------------------------------------------------------------


def partitioned(*devices: Device, left: str = "4") -> list[Any]:
    return [
        slice_of("s", *devices, node="n1", slices=2),
        slice_of("t", node="n1", slices=2, counters={"card": {"units": left}}),
    ]


def part(name: str, units: str) -> Device:
    return device(name, counters={"card": {"units": units}})


def test_partitions_share_counters() -> None:
    bench = Bench(*partitioned(part("whole", "4"), part("half-1", "2"), part("half-2", "2")))
    assert bench.names(claim("c", request(count=2))) == [["half-1", "half-2"]]
    assert bench.names(claim("c", request(count=3))) is None
    fill(bench.cluster, allocated(claim("other"), result("half-2")))
    assert bench.names(claim("c", request())) == [["half-1"]]


def test_partitions_are_not_for_those_who_do_without_the_feature() -> None:
    rules = SearchRules(partitionable=False)
    assert Bench(*partitioned(part("a", "1")), rules=rules).names(claim("c", request())) is None


def test_a_device_with_capacity_is_shared_until_it_is_used_up() -> None:
    memory = {"memory": capacity("10Gi", default="1Gi")}
    bench = Bench(slice_of("s", device("a", capacities=memory, shareable=True), node="n1"))
    asked = claim("c", request("r0", capacities={"memory": "6Gi"}), request("r1"))
    found = bench.solve(asked)
    assert found is not None
    assert [pick.share for pick in found.picks[0]] == [{"memory": "6Gi"}, {"memory": "1Gi"}]
    used = result("a", share="1", consumed={"memory": "5Gi"})
    fill(bench.cluster, allocated(claim("other"), used))
    assert bench.names(asked) is None
    assert bench.names(claim("c", request("r0", capacities={"memory": "5Gi"}))) == [["a"]]


def test_a_device_without_capacities_can_be_shared_and_given_back() -> None:
    bench = Bench(slice_of("s", device("a", shareable=True, model="y"), node="n1"))
    assert bench.names(claim("c", request("r0"), request("r1"))) == [["a", "a"]]
    assert bench.names(claim("c", request("r0"), request("r1"), request("r2", IS_X))) is None


def test_a_further_share_draws_no_counters() -> None:
    policy = {"m": capacity("2", default="1")}
    shared = device("a", counters={"card": {"units": "4"}}, shareable=True, capacities=policy)
    bench = Bench(*partitioned(shared))
    assert bench.names(claim("1", request()), claim("2", request())) == [["a"], ["a"]]
    assert bench.names(claim("1", request()), claim("2", request()), claim("3", request())) is None


def test_what_cannot_be_expressed_in_a_capacity_s_terms_is_an_error() -> None:
    valid = CapacityRequestPolicyRange(min="1", step="1")
    policy = {"m": capacity("10", default="1", valid_range=valid)}
    bench = Bench(slice_of("s", device("a", capacities=policy, shareable=True), node="n1"))
    assert bench.failure(claim("c", request(capacities={"m": "10E"}))) == (
        "claim default/c, request r: checking capacity for device gpu.example.com/n1/a: capacity "
        '"m": capacity request cannot be represented in the device\'s range arithmetic: request '
        "10E exceeds MaxInt64"
    )


# --- errors -------------------------------------------------------------------------------------


def test_a_selector_without_an_answer_is_an_error_that_names_the_device() -> None:
    bench = Bench(slice_of("s", device("a"), node="n1"))
    assert bench.failure(claim("c", request("r", IS_X))) == (
        "claim default/c: selector #0 on device gpu.example.com/n1/a: CEL runtime error: no such "
        "key: model. consider using CEL optional chaining (.? followed by orValue()) or guarding "
        "the check with has() for optional fields"
    )
    fill(bench.cluster, device_class("gpu", IS_X))
    assert bench.failure(claim("c", request())).startswith("class gpu: selector #0 on device")


def test_a_constraint_that_all_devices_violate_is_an_error_wherever_the_others_are() -> None:
    bench = Bench(slice_of("s", device("a", numa=1), *gpus("b", "c"), node="n1"))
    one, every = claim("1", request()), claim("2", request(every=True))
    assert bench.names(one, every) is None
    together = claim("2", request(every=True), constraints=[same("numa")])
    assert bench.failure(claim("1", request("r", count=1)), together) == (
        "claim default/2, request r: cannot add device gpu.example.com/n1/b because a claim "
        "constraint would not be satisfied"
    )


# --- against all solutions there are ------------------------------------------------------------


def brute_force(devices: Sequence[Device], asked: ResourceClaim) -> list[str] | None:
    """The first solution in the order of kube-scheduler, found by trying all of them."""

    def attribute_of(row: int, name: str) -> object:
        found = find_attribute(devices[row], DRIVER, name)
        return None if found is None else comparable(found)

    def matches(row: int, made: DeviceRequest) -> bool:
        assert made.exactly is not None
        expressions = [each.cel.expression for each in made.exactly.selectors if each.cel]
        return all(compile_selector(each).matches(devices[row], DRIVER) for each in expressions)

    def is_fine(rows: Sequence[tuple[str, int]]) -> bool:
        for constraint in asked.spec.devices.constraints:
            name = constraint.match_attribute or constraint.distinct_attribute or ""
            names = constraint.requests
            values = [attribute_of(row, name) for of, row in rows if not names or of in names]
            if None in values:
                return False
            distinct = len(set(values))
            if constraint.match_attribute is not None and distinct > 1:
                return False
            if constraint.distinct_attribute is not None and distinct < len(values):
                return False
        units = sum(
            int(each.counters["units"].value)
            for _, row in rows
            for each in devices[row].consumes_counters
        )
        return units <= 4

    def solutions() -> Iterator[list[tuple[str, int]]]:
        choices = []
        for made in asked.spec.devices.requests:
            assert made.exactly is not None
            rows = [row for row in range(len(devices)) if matches(row, made)]
            choices.append(
                [
                    [(made.name, row) for row in combination]
                    for combination in itertools.combinations(rows, made.exactly.count)
                ]
            )
        for parts in itertools.product(*choices):
            yield [each for part in parts for each in part]

    for rows in solutions():
        chosen = [row for _, row in rows]
        if len(set(chosen)) == len(chosen) and is_fine(rows):
            return [devices[row].name for row in chosen]
    return None


@st.composite
def small_problems(draw: st.DrawFn) -> tuple[list[Device], ResourceClaim]:
    devices = []
    for number in range(draw(st.integers(1, 6))):
        units = draw(st.sampled_from(["0", "1", "2"]))
        devices.append(
            device(
                f"d{number}",
                numa=draw(st.integers(0, 2)),
                model=draw(st.sampled_from("xy")),
                counters=None if units == "0" else {"card": {"units": units}},
            )
        )
    requests = [
        request(f"r{number}", *draw(st.sampled_from([(), (IS_X,)])), count=draw(st.integers(1, 3)))
        for number in range(draw(st.integers(1, 3)))
    ]
    about = draw(st.sampled_from([(), ("r0",), ("r0", "r1")]))
    make = draw(st.sampled_from([same, different]))
    constraints = [make("numa", *about)] if draw(st.booleans()) else []
    return devices, claim("c", *requests, constraints=constraints)


@given(small_problems())
@settings(max_examples=300)
def test_the_solution_is_the_first_of_all(problem: tuple[list[Device], ResourceClaim]) -> None:
    devices, asked = problem
    found = Bench(*partitioned(*devices)).names(asked)
    assert (None if found is None else found[0]) == brute_force(devices, asked)
