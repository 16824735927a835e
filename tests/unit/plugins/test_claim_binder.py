"""Allocations are written to claims, devices are waited for, and what is of no use is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceCondition,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from kubesched.clock import VirtualClock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.storage import ClaimKey
from kubesched.config.features import FeatureGates
from kubesched.errors import ObjectError
from kubesched.framework.null_writers import NullClaimWriter
from kubesched.metrics.recorder import Metrics
from kubesched.plugins.binding_conditions import BindingFailedError, BindingTimeoutError
from kubesched.plugins.claim_binder import DEALLOCATED, DELETED, ClaimBinder
from kubesched.plugins.extended_claims import claim_in_memory
from kubesched.plugins.pod_devices import PodDevices
from tests.support.device_objects import DRIVER, allocated, allocation, claim, fill, request, result
from tests.support.objects import node, pod
from tests.support.scheduling import cluster_of

POD = pod("p")
SLOW = result("a", conditions=["Ready"], failures=["Broken"])
TIMEOUT_S = 600.0


class Writer(NullClaimWriter):
    """Remembers what is written, and waits without any time passing."""

    def __init__(self, cluster: Cluster) -> None:
        self.calls: list[tuple[str, str]] = []
        self._claims = cluster.devices.claims
        #: what happens while the binder waits, step by step; then time runs out
        self.steps: list[Callable[[], object]] = []

    async def bind(
        self,
        claim: ResourceClaim,
        allocation: AllocationResult | None,
        user: ResourceClaimConsumerReference,
        *,
        has_timestamp: bool,
        is_shared: bool = False,
    ) -> ResourceClaim:
        self.calls.append((f"bind for {user.uid}", claim.metadata.name))
        status = claim.status
        if allocation is not None:
            status = replace(status, allocation=allocation)
        metadata = replace(claim.metadata, resource_version="2")
        reserved = (*status.reserved_for, user)
        return replace(claim, metadata=metadata, status=replace(status, reserved_for=reserved))

    async def poll(
        self,
        check: Callable[[], bool],
        *,
        claims: Collection[ClaimKey],
        timeout_s: float,
        interval_s: float,
    ) -> bool:
        while not check():
            if not self.steps:
                return False
            self.steps.pop(0)()
        return True

    def announce_waiting(self, pod: Pod, node_name: str) -> None:
        self.calls.append(("wait", node_name))

    def deallocate(self, claim: ResourceClaim) -> None:
        self.calls.append(("deallocate", claim.metadata.name))

    def unreserve(self, claim: ResourceClaim, uid: str) -> None:
        self.calls.append((f"unreserve {uid}", claim.metadata.name))

    def unclaim_resources(self, pod: Pod) -> None:
        self.calls.append(("unclaim", pod.metadata.name))

    def delete(self, claim: ResourceClaim) -> None:
        self.calls.append(("delete", claim.metadata.name))


class Bench:
    """A binder for claims that are there."""

    def __init__(self, *claims: ResourceClaim) -> None:
        self.cluster = cluster_of(node("n1"))
        fill(self.cluster, *claims)
        self.writer, self.clock = Writer(self.cluster), VirtualClock()
        self.metrics = Metrics(FeatureGates.of({}))
        self.binder = ClaimBinder(
            self.cluster.devices,
            self.writer,
            clock=self.clock,
            metrics=self.metrics,
            profile="default-scheduler",
            timeout_s=TIMEOUT_S,
            has_binding_conditions=True,
        )

    def bind(self, devices: PodDevices) -> None:
        asyncio.run(self.binder.bind(devices, "n1"))


def says(made: ResourceClaim, condition: str) -> ResourceClaim:
    """A claim of whose device a driver says something."""
    status = AllocatedDeviceStatus(
        driver=DRIVER,
        pool="n1",
        device="a",
        conditions=(DeviceCondition(type=condition, status="True", reason="Why"),),
    )
    return replace(made, status=replace(made.status, devices=(status,)))


def allocated_at(made: ResourceClaim, timestamp: str) -> ResourceClaim:
    given = made.status.allocation
    assert given is not None
    given = replace(given, allocation_timestamp=timestamp)
    return replace(made, status=replace(made.status, allocation=given))


# --- binding --------------------------------------------------------------------------------------


def test_what_was_decided_is_written_and_counts_from_then_on() -> None:
    bench = Bench(claim("c", request()))
    devices = PodDevices(POD, [claim("c", request())])
    devices.decided[0] = allocation(result("a"))
    bench.bind(devices)

    assert bench.writer.calls == [("bind for p", "c")]
    assert devices.claims[0].status.allocation == allocation(result("a"))
    known = bench.cluster.devices.claims.get("default", "c")
    assert known is devices.claims[0]


def test_a_claim_that_is_reserved_for_the_pod_is_not_written_again() -> None:
    reserved = allocated(claim("c", request()), result("a"), users=["p"])
    bench = Bench(reserved)
    bench.bind(PodDevices(POD, [reserved]))
    assert bench.writer.calls == []

    other = allocated(claim("c", request()), result("a"), users=["other"])
    bench.bind(PodDevices(POD, [other]))
    assert bench.writer.calls == [("bind for p", "c")]


def waiting(*steps: str) -> tuple[Bench, PodDevices]:
    """A pod whose device's driver says one thing after the other."""
    made = allocated(claim("c", request()), SLOW, users=["p"])
    bench, newer = Bench(made), replace(made, metadata=replace(made.metadata, resource_version="3"))
    bench.writer.steps = [partial(fill, bench.cluster, says(newer, each)) for each in steps]
    return bench, PodDevices(POD, [made])


def test_devices_are_waited_for_until_drivers_have_them_ready() -> None:
    bench, devices = waiting("Other", "Ready")
    bench.bind(devices)

    assert bench.writer.calls == [("wait", "n1")]
    assert counted(bench) == {"success": 1}


def test_a_driver_that_fails_ends_the_wait() -> None:
    bench, devices = waiting("Broken")
    with pytest.raises(BindingFailedError, match="claim=c, reason=Why"):
        bench.bind(devices)
    assert counted(bench) == {"failure": 1}


def test_a_driver_that_takes_too_long_ends_the_wait() -> None:
    bench, devices = waiting("Other")
    with pytest.raises(BindingTimeoutError, match="context deadline exceeded"):
        bench.bind(devices)
    assert counted(bench) == {"timeout": 1}


def test_a_claim_that_is_gone_ends_the_wait() -> None:
    bench, devices = waiting()
    bench.writer.steps = [lambda: bench.cluster.devices.claims.remove(devices.claims[0])]
    with pytest.raises(ObjectError, match='could not find ResourceClaim "default/c"'):
        bench.bind(devices)
    assert counted(bench) == {"error": 1}


def counted(bench: Bench) -> dict[str, int]:
    """How allocations with conditions ended, as the metric has it."""
    family = bench.metrics.dra_bindingconditions_allocations
    found = {
        status: int(family.labels("default-scheduler", DRIVER, status).value)
        for status in ("success", "failure", "timeout", "error")
    }
    return {status: count for status, count in found.items() if count}


# --- claims that are lost -------------------------------------------------------------------------

OLD, NEW = "1970-01-01T00:00:00Z", "1970-01-01T00:30:00Z"


@pytest.mark.parametrize(
    ("made", "want"),
    [
        pytest.param(allocated(claim("c"), result("a")), False, id="nothing to wait for"),
        pytest.param(allocated_at(allocated(claim("c"), SLOW), OLD), True, id="late"),
        pytest.param(allocated_at(allocated(claim("c"), SLOW), NEW), False, id="in time"),
        pytest.param(
            says(allocated_at(allocated(claim("c"), SLOW), OLD), "Ready"), False, id="ready"
        ),
        pytest.param(
            says(allocated_at(allocated(claim("c"), SLOW), NEW), "Broken"), True, id="failed"
        ),
    ],
)
def test_a_claim_is_lost_if_its_driver_failed_or_is_late(made: ResourceClaim, want: bool) -> None:
    bench = Bench()
    bench.clock.advance(TIMEOUT_S + 1800)
    assert bench.binder.is_lost(made) is want


# --- giving up ------------------------------------------------------------------------------------


def test_an_allocation_that_fits_no_node_is_given_up_unless_others_use_it() -> None:
    used = allocated(claim("used"), result("a"), users=["p", "other"])
    own = allocated(claim("own"), result("b"), users=["p"])
    bench, devices = Bench(), PodDevices(POD, [used, own])

    assert bench.binder.give_up(devices, {0}) is None
    assert bench.writer.calls == []
    assert bench.binder.give_up(devices, {0, 1}) == DEALLOCATED
    assert bench.writer.calls == [("deallocate", "own")]


def test_a_claim_for_extended_resources_that_is_left_over_is_deleted() -> None:
    bench, left = Bench(), claim("left", request())

    assert bench.binder.give_up(PodDevices(POD, [], extended=left), set()) == DELETED
    assert bench.writer.calls == [("delete", "left")]
    in_memory = PodDevices(POD, [], extended=claim_in_memory(POD))
    assert bench.binder.give_up(in_memory, {0}) is None


def test_a_failed_attempt_gives_back_what_it_may_use() -> None:
    mine = allocated(claim("mine"), result("a"), users=["p"])
    other = allocated(claim("other"), result("b"), users=["q"])
    bench = Bench()
    devices = PodDevices(POD, [mine, other, claim("none")], extended=claim("made", request()))
    devices.has_written_claimed = True
    bench.binder.unreserve(devices)

    assert bench.writer.calls == [("unclaim", "p"), ("unreserve p", "mine"), ("delete", "made")]
    assert not devices.has_written_claimed


def test_what_is_in_memory_only_is_not_deleted() -> None:
    bench = Bench()
    bench.binder.unreserve(PodDevices(POD, [], extended=claim_in_memory(POD)))
    assert bench.writer.calls == []
