"""What feature gates say about allocation, and which of upstream's allocators they stand for."""

from __future__ import annotations

import pytest

from kubesched.api.resource import DeviceRequestAllocationResult
from kubesched.cluster.device_pools import PoolRules
from kubesched.config.features import FeatureGates
from kubesched.plugins.allocation_results import allocation_result
from kubesched.plugins.device_rules import SearchRules
from tests.support.device_objects import (
    alternative,
    claim,
    device,
    different,
    first_of,
    request,
    same,
    slice_of,
)

from .device_lab import Bench

STABLE = SearchRules(consumable=False, binding_conditions=False)


def rules(**gates: bool) -> SearchRules:
    return SearchRules.of(FeatureGates.of(gates))


def test_by_default_the_beta_features_are_on() -> None:
    assert rules() == SearchRules()
    assert not rules().is_stable
    assert not rules().is_experimental


@pytest.mark.parametrize(
    "gate",
    [
        "DRAListTypeAttributes",
        "DRADerivedAttributes",
        "DRADeviceCompatibilityGroups",
        "DRAOptionalNodeOperations",
    ],
)
def test_an_alpha_feature_takes_the_experimental_allocator(gate: str) -> None:
    assert rules(**{gate: True}).is_experimental
    without = {"DRADeviceBindingConditions": False, "DRAConsumableCapacity": False}
    assert not rules(**{gate: True}, **without).is_stable


def test_without_any_newer_feature_the_stable_allocator_is_taken() -> None:
    found = rules(DRADeviceBindingConditions=False, DRAConsumableCapacity=False)
    assert found == STABLE
    assert found.is_stable
    assert not rules(DRADeviceBindingConditions=False).is_stable


def test_only_the_experimental_allocator_looks_at_skipped_operations() -> None:
    assert rules().of_pools == PoolRules()
    assert rules(DRAOptionalNodeOperations=True).of_pools.skips_operations is True
    assert rules(DRAListTypeAttributes=True).of_pools.skips_operations is False


# --- what the stable allocator does not know ----------------------------------------------------


def test_the_stable_allocator_knows_no_distinct_values() -> None:
    asked = claim("c", request(count=2), constraints=[different("x")])
    devices = slice_of("s", device("a", x=1), device("b", x=1), device("c", x=2), node="n1")
    assert Bench(devices).names(asked) == [["a", "c"]]
    assert Bench(devices, rules=STABLE).failure(asked) == (
        "claim default/c, constraint #0: empty constraint (unsupported constraint type?)"
    )
    matching = claim("c", request(count=2), constraints=[same("x")])
    assert Bench(devices, rules=STABLE).names(matching) == [["a", "b"]]


def test_the_stable_allocator_ignores_requests_for_capacity() -> None:
    asked = claim("c", request(capacities={"memory": "4Gi"}))
    devices = slice_of("s", device("a", capacities={"memory": "1Gi"}), node="n1")
    assert Bench(devices).names(asked) is None
    assert Bench(devices, rules=STABLE).names(asked) == [["a"]]
    without = SearchRules(consumable=False)
    assert Bench(devices, rules=without).failure(asked) == (
        "claim default/c, request r: has capacity requests, but the DRAConsumableCapacity feature "
        "is disabled"
    )


def test_alternatives_with_capacity_are_refused_before_any_of_them_is_looked_at() -> None:
    incomplete = slice_of("s", device("a"), node="n1", slices=2)
    every = alternative("every", every=True)
    asked = claim("c", first_of("r", every, alternative("part", capacities={"memory": "1Gi"})))
    without = SearchRules(consumable=False)
    assert Bench(incomplete, rules=without).failure(asked) == (
        "claim default/c, subrequest part: has capacity requests, but the DRAConsumableCapacity "
        "feature is disabled"
    )


def test_the_stable_allocator_sees_pools_wherever_their_counters_are() -> None:
    elsewhere = slice_of("t", node="n2", pool="p", slices=2, counters={"card": {"units": "4"}})
    bench = Bench(slice_of("s", device("a"), node="n1"), elsewhere, rules=STABLE)
    every = claim("c", request(every=True))
    assert bench.failure(every) == (
        "claim default/c, request r: asks for all devices, but resource pool gpu.example.com/p is "
        "currently being updated"
    )
    assert bench.names(claim("c", request())) == [["a"]]
    bench.cluster.devices.validate()
    assert Bench(slice_of("s", device("a"), node="n1"), elsewhere).names(every) == [["a"]]


def test_the_stable_allocator_does_not_say_which_devices_can_be_shared() -> None:
    asked = claim("c", request("r", "device.allowMultipleAllocations"))
    devices = slice_of("s", device("a", shareable=True), node="n1")
    assert Bench(devices).names(asked) == [["a"]]
    assert Bench(devices, rules=STABLE).names(asked) is None


def results(bench: Bench, rules: SearchRules) -> tuple[bool, DeviceRequestAllocationResult]:
    """Whether the allocation is for the node only, and the device that was allocated."""
    asked = claim("c", request())
    found = bench.solve(asked)
    assert found is not None
    made = allocation_result(
        asked.spec.devices,
        found.picks[0],
        [],
        table=bench.cluster.devices.table,
        node_name="n1",
        rules=rules,
    )
    return made.node_selector is not None, made.devices.results[0]


def test_the_stable_allocator_does_not_bind_devices_to_nodes() -> None:
    devices = slice_of("s", device("a", binds=True), everywhere=True)
    assert results(Bench(devices), SearchRules())[0]
    assert not results(Bench(devices, rules=STABLE), STABLE)[0]


def test_only_the_experimental_allocator_writes_what_is_skipped() -> None:
    devices = slice_of("s", device("a"), node="n1", skips=["Prepare"])
    assert results(Bench(devices), SearchRules())[1].skip_node_operations == ()
    experimental = SearchRules(optional_node_operations=True)
    bench = Bench(devices, rules=experimental, features=["DRAOptionalNodeOperations"])
    assert results(bench, experimental)[1].skip_node_operations == ("Prepare",)
