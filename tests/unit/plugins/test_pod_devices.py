"""The claims of one pod in one attempt."""

from __future__ import annotations

from kubesched.plugins.extended_claims import claim_in_memory
from kubesched.plugins.pod_devices import PodDevices, skips_operations
from tests.support.device_objects import (
    allocated,
    allocation,
    alternative,
    claim,
    first_of,
    request,
    result,
)
from tests.support.objects import pod

HELD = allocated(claim("held", request()), result("a"))
OPEN = claim("open", request())


def test_claims_with_devices_are_told_from_those_without() -> None:
    devices = PodDevices(pod("p"), [HELD, OPEN])
    assert devices.to_allocate == [1]
    assert list(devices.fixed) == [0]
    assert devices.is_to_be_decided
    assert not PodDevices(pod("p"), [HELD]).is_to_be_decided


def test_what_another_member_was_given_is_there_and_yet_to_be_written() -> None:
    devices = PodDevices(pod("p"), [OPEN])
    devices.reuse(0, allocation(result("a", skips=["*"])))
    assert devices.to_allocate == []
    assert devices.is_to_be_decided
    assert devices.allocated_for == {0: None}
    assert devices.skipping == {0}


def test_the_claim_for_extended_resources_comes_last() -> None:
    extended = claim_in_memory(pod("p"))
    devices = PodDevices(pod("p"), [OPEN], extended=extended, extended_requests={"x/y": 1})
    assert devices.extended is extended
    assert devices.names_claims
    assert devices.to_allocate == [0, 1]
    assert not devices.is_stale
    alone = PodDevices(pod("p"), [], extended=allocated(claim("old", request()), result("a")))
    assert alone.is_stale
    assert not alone.names_claims


def test_claims_are_reserved_for_the_pod_unless_it_is_said_otherwise() -> None:
    user = PodDevices(pod("p"), [OPEN]).user_of(0)
    assert (user.api_group, user.resource, user.name, user.uid) == ("", "pods", "p", "p")


def test_alternatives_tell_nodes_apart() -> None:
    choice = claim("c", first_of("r", alternative("x"), alternative("y")))
    assert PodDevices(pod("p"), [choice]).has_alternatives
    assert not PodDevices(pod("p"), [OPEN]).has_alternatives


def test_one_device_is_enough_for_kubelets_to_leave_something_out() -> None:
    assert skips_operations(allocation(result("a"), result("b", skips=["*"])))
    assert not skips_operations(allocation(result("a")))
