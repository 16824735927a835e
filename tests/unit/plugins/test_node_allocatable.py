"""What devices take of their node's own resources, as a pod's status says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import (
    Container,
    NodeAllocatableMappedResources,
    NodeAllocatableOverheadResources,
    NodeAllocatableResourceClaimStatus,
    Pod,
    ResourceClaimRef,
    ResourceRequirements,
)
from kubesched.api.requests import claimed_amounts, pod_requests
from kubesched.api.resource import (
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
)
from kubesched.errors import ObjectError
from kubesched.plugins.node_allocatable import (
    UsedClaim,
    UsedDevice,
    claim_statuses,
    uncovered,
    with_claims,
)
from tests.support.device_objects import DRIVER, claim, device
from tests.support.objects import container, pod

Takes = Mapping[str, NodeAllocatableResource]


def is_so_much(text: str) -> NodeAllocatableResource:
    return NodeAllocatableResource(mapping=NodeAllocatableMapping(device_multiplier=text))


def of_capacity(key: str, factor: str | None = None) -> NodeAllocatableResource:
    mapping = NodeAllocatableMapping(capacity_key=key, capacity_multiplier=factor)
    return NodeAllocatableResource(mapping=mapping)


def costs(per_pod: str | None = None, per_container: str | None = None) -> NodeAllocatableResource:
    overhead = NodeAllocatableOverhead(per_pod=per_pod, per_container=per_container)
    return NodeAllocatableResource(overhead=overhead)


def used(name: str, gives: Takes, consumed: Mapping[str, str] | None = None) -> UsedDevice:
    return UsedDevice((DRIVER, "n1", name), consumed, device(name, gives=gives))


def using(*names: str, name: str = "main", limits: Any = None) -> Container:
    claims = tuple(ResourceClaimRef(name=each) for each in names)
    return replace(container(name), resources=ResourceRequirements(claims=claims, limits=limits))


def statuses(asking: Pod, *devices: UsedDevice) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
    made = claim("c")
    return claim_statuses(asking, [UsedClaim(made, devices)], {"own": made.metadata.uid})


def mapped(**amounts: str) -> tuple[NodeAllocatableMappedResources, ...]:
    return tuple(
        NodeAllocatableMappedResources(name=name, quantity=text) for name, text in amounts.items()
    )


# --- statuses -----------------------------------------------------------------------------------


def test_a_device_may_be_so_much_of_its_node() -> None:
    (found,) = statuses(
        pod("p"),
        used("a", {"memory": is_so_much("1Gi"), "cpu": is_so_much("1500m")}),
        used("b", {"cpu": is_so_much("1")}),
    )
    assert found.resource_claim_name == "c"
    assert found.mapping == mapped(cpu="2500m", memory="1Gi")
    assert found.overhead == ()


def test_what_is_taken_of_a_capacity_may_be_multiplied() -> None:
    (found,) = statuses(
        pod("p"),
        used("a", {"memory": of_capacity("mem"), "cpu": of_capacity("mem", "0.5")}, {"mem": "3Gi"}),
    )
    assert found.mapping == mapped(cpu="1536Mi", memory="3Gi")


def test_a_capacity_that_nothing_is_taken_of_does_not_count() -> None:
    assert statuses(pod("p"), used("a", {"cpu": of_capacity("cores")}, {"mem": "1"})) == ()


def test_a_device_as_a_whole_has_no_capacities_to_count() -> None:
    text = (
        r"claim default/c, device a: ConsumedCapacity is nil, but Capacity key 'cores' is set in "
        "NodeAllocatableResources for resource cpu"
    )
    with pytest.raises(ObjectError, match=text):
        statuses(pod("p"), used("a", {"cpu": of_capacity("cores")}))


def test_use_costs_by_pod_and_by_container() -> None:
    asking = pod("p", containers=[using("own"), using("own", name="other"), using(name="idle")])
    (found,) = statuses(
        asking, used("a", {"cpu": costs("100m", "50m")}), used("b", {"cpu": costs("100m")})
    )
    assert found.containers == ("main", "other")
    assert found.overhead == (
        NodeAllocatableOverheadResources(name="cpu", per_pod="200m", per_container="50m"),
    )
    counted = with_claims(asking, (found,))
    assert claimed_amounts(counted) == {"cpu": 300 * 10**6}
    assert claimed_amounts(counted, "main") == {"cpu": 250 * 10**6}
    assert claimed_amounts(counted, "idle") == {}


def test_claims_are_in_the_order_of_their_names_and_only_those_that_take_something() -> None:
    takes = used("a", {"cpu": is_so_much("1")})
    claims = [UsedClaim(claim(name), (takes,)) for name in ("z", "b")]
    idle = UsedClaim(claim("a"), (UsedDevice((DRIVER, "n1", "x"), None, device("x")),))
    found = claim_statuses(pod("p"), [*claims, idle], {})
    assert [each.resource_claim_name for each in found] == ["b", "z"]


def test_a_device_that_the_node_does_not_see_beside_one_that_counts_is_an_error() -> None:
    gone = UsedDevice((DRIVER, "n1", "b"), None, "device b not found in pool n1 for driver d")
    with pytest.raises(ObjectError, match=r"claim default/c, device b, driver .*: device b not"):
        statuses(pod("p"), used("a", {"cpu": is_so_much("1")}), gone)
    assert statuses(pod("p"), gone) == (), "alone it is not asked about"


# --- requests -----------------------------------------------------------------------------------


def test_a_pod_requests_what_its_claims_take() -> None:
    asking = pod("p", cpu="1", overhead={"cpu": "100m"})
    found = statuses(asking, used("a", {"cpu": is_so_much("2")}))
    counted = with_claims(asking, found)
    assert pod_requests(counted, claims=True) == {"cpu": 3100}
    assert pod_requests(counted) == {"cpu": 1100}, "without the gate"


def test_what_a_pod_requests_as_a_whole_stands_for_claims_too() -> None:
    asking = pod("p", cpu="1", pod_level={"cpu": "4"})
    counted = with_claims(asking, statuses(asking, used("a", {"cpu": is_so_much("2")})))
    assert pod_requests(counted, claims=True) == {"cpu": 4000}
    assert uncovered(counted) is None


def test_the_whole_must_cover_its_parts_and_claims() -> None:
    asking = pod("p", cpu="1", pod_level={"cpu": "2"})
    counted = with_claims(asking, statuses(asking, used("a", {"cpu": is_so_much("2")})))
    rejected = uncovered(counted)
    assert rejected is not None
    assert rejected.message == (
        "pod level request for cpu is insufficient to cover the aggregated container and "
        "node-allocatable DRA requests"
    )


def test_limits_of_the_whole_cover_each_container_and_all_huge_pages() -> None:
    pages = "hugepages-2Mi"
    whole = ResourceRequirements(limits={"cpu": "2", pages: "4Mi"})
    asking = pod("p", containers=[using("own", limits={"cpu": "1500m"})])
    asking = replace(asking, spec=replace(asking.spec, resources=whole))
    of_cpu = with_claims(asking, statuses(asking, used("a", {"cpu": costs("600m")})))
    rejected = uncovered(of_cpu)
    assert rejected is not None
    assert rejected.message == (
        "pod level limit for cpu is insufficient to cover the limit and DRA overhead for container "
        "main"
    )
    of_pages = with_claims(asking, statuses(asking, used("a", {pages: is_so_much("6Mi")})))
    rejected = uncovered(of_pages)
    assert rejected is not None
    assert rejected.message == (
        f"pod level limit for {pages} is insufficient to cover the aggregated container and "
        "node-allocatable DRA limits"
    )
