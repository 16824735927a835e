"""Nodes need what the devices of a pod take of them (gate DRANodeAllocatableResources)."""

from __future__ import annotations

from typing import Any

from kubesched.api.core import Pod
from kubesched.config.features import FeatureGates
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.feasible_nodes import FeasibleNodes
from tests.support.device_objects import (
    allocated,
    claim,
    claiming,
    device,
    device_class,
    fill,
    request,
    result,
    slice_of,
)
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

from .test_node_allocatable import costs, is_so_much

GATES = FeatureGates.of({"DRANodeAllocatableResources": True})


class Cores(Lab):
    """Two nodes of four cores; on each, a device is so much of them."""

    def __init__(self, *objects: Any, takes: str = "2", **options: Any) -> None:
        super().__init__(node("n1", cpu="4"), node("n2", cpu="4"), gates=GATES, **options)
        fill(
            self.cluster,
            device_class(),
            slice_of("s1", device("a", gives={"cpu": is_so_much(takes)}), node="n1"),
            slice_of("s2", device("b", gives={"cpu": is_so_much("1")}), node="n2"),
            *objects,
        )

    def place(self, asking: Pod, node_name: str) -> CycleState:
        """Place a pod as an attempt does."""
        state, info = CycleState(), self.pending(asking)
        found = self.framework.evaluator.filter(state, info)
        assert isinstance(found, FeasibleNodes)
        self.cluster.assume(state.on_node(info, node_name), node_name)
        assert self.framework.reserve(state, info, node_name).ok
        self.cluster.validate()
        return state

    def requested(self, node_name: str) -> int:
        row, number = self.cluster.table.row_of(node_name), self.cluster.table.resources.find("cpu")
        assert row is not None
        assert number is not None
        return self.cluster.table.requested.item(number, row)


def test_nodes_need_room_for_the_devices_that_a_pod_gets_there() -> None:
    lab = Cores(claim("c", request()))
    assert lab.feasible(claiming(pod("p", cpu="2"), "c")) == ["n1", "n2"]
    assert lab.feasible(claiming(pod("p", cpu="3"), "c")) == ["n2"]
    assert lab.message(claiming(pod("p", cpu="4"), "c")) == (
        "0/2 nodes are available: 2 Insufficient cpu."
    )


def test_a_pod_counts_with_its_devices_on_its_node() -> None:
    lab = Cores(claim("c", request()), claim("d", request()))
    state = lab.place(claiming(pod("p", cpu="1"), "c"), "n1")
    assert lab.requested("n1") == 3000
    devices = state.read("DynamicResources")
    (status,) = devices.claimed
    assert (status.resource_claim_name, status.mapping[0].quantity) == ("c", "2")
    assert lab.feasible(pod("q", cpu="2")) == ["n2"]
    lab.cluster.forget("p")
    assert lab.requested("n1") == 0


def test_pods_on_nodes_count_with_what_their_status_says() -> None:
    lab = Cores(claim("c", request()))
    state = lab.place(claiming(pod("p", cpu="1"), "c"), "n1")
    claimed = state.read("DynamicResources").claimed
    info = lab.cluster.compiler.claiming(lab.pending(claiming(pod("p", cpu="1"), "c")), claimed)
    lab.cluster.put_pod(info.object_on("n1"))
    assert lab.requested("n1") == 3000
    lab.cluster.validate()


def test_devices_of_allocated_claims_count_where_they_can_be_used() -> None:
    held = allocated(claim("c", request()), result("a"))
    lab = Cores(held)
    assert lab.feasible(claiming(pod("p", cpu="3"), "c")) == ["n2"], "there it takes nothing"
    assert lab.feasible(claiming(pod("p", cpu="2"), "c")) == ["n1", "n2"]


def test_a_claim_with_a_device_that_is_part_of_its_node_is_for_one_pod() -> None:
    lab = Cores(allocated(claim("c", request()), result("a"), users=["other"]))
    assert lab.message(claiming(pod("p"), "c")) == (
        "0/2 nodes are available: 2 node allocatable resource claim c has a mapped device and "
        "cannot be shared across pods."
    )
    mine = Cores(allocated(claim("c", request()), result("a"), users=["p"]))
    assert mine.feasible(claiming(pod("p"), "c")) == ["n1", "n2"]


def test_a_claim_whose_use_only_costs_something_may_be_shared() -> None:
    takes = device("x", gives={"cpu": costs("3")})
    held = allocated(claim("c", request()), result("x", "n3"), users=["other"])
    lab = Cores(slice_of("s3", takes, everywhere=True, pool="n3"), held)
    assert lab.feasible(claiming(pod("p", cpu="1"), "c")) == ["n1", "n2"]
    assert lab.message(claiming(pod("p", cpu="2"), "c")).startswith(
        "0/2 nodes are available: 2 Insufficient cpu."
    )


def test_without_the_gate_devices_take_nothing() -> None:
    without = Lab(node("n1", cpu="4"))
    fill(
        without.cluster,
        device_class(),
        claim("c", request()),
        slice_of("s1", device("a", gives={"cpu": is_so_much("2")}), node="n1"),
    )
    asking = claiming(pod("p", cpu="4"), "c")
    assert without.feasible(asking) == ["n1"]
