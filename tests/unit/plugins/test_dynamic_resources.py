"""DynamicResources: where pods can have the devices that they claim."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import NodeSelector, Pod
from kubesched.api.resource import (
    AllocatedDeviceStatus,
    DeviceCondition,
    ResourceClaim,
)
from kubesched.cluster.resource_claims import ANNOTATION_EXTENDED_RESOURCES
from kubesched.config.args import DynamicResourcesArgs
from kubesched.config.durations import Duration
from kubesched.config.features import FeatureGates
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.status import Code
from tests.support.device_objects import (
    DRIVER,
    allocated,
    alternative,
    claim,
    claiming,
    claiming_from_template,
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
from tests.support.objects import container, node, pod, requirement, term
from tests.support.scheduling import Lab

GPU = "example.com/gpu"
IS_X = 'device.attributes["gpu.example.com"].model == "x"'


class Devices(Lab):
    """Three nodes; n1 has two devices, n2 one, and n3 none."""

    def __init__(self, *objects: Any, **options: Any) -> None:
        super().__init__(node("n1"), node("n2"), node("n3"), **options)
        fill(
            self.cluster,
            device_class(),
            slice_of("s1", device("a", model="x"), device("b", model="y"), node="n1"),
            slice_of("s2", device("c", model="y"), node="n2"),
            *objects,
        )

    def post_filter(self, asking: Pod) -> tuple[Code, str]:
        state, info = CycleState(), self.pending(asking)
        found = self.framework.evaluator.filter(state, info)
        assert isinstance(found, Diagnosis)
        status = self.plugin("DynamicResources").post_filter(state, info, found).status
        return status.code, status.message

    def reserve(self, asking: Pod, node_name: str) -> CycleState:
        state, info = CycleState(), self.pending(asking)
        self.framework.evaluator.filter(state, info)
        status = self.framework.reserve(state, info, node_name)
        assert status.ok, status.message
        self.cluster.devices.validate()
        return state


# --- claims that cannot be served -----------------------------------------------------------------


def test_a_pod_without_claims_is_not_its_business() -> None:
    lab = Devices()
    assert lab.feasible(pod("p")) == ["n1", "n2", "n3"]
    state = CycleState()
    lab.find(pod("p"), state)
    assert "DynamicResources" in state.skip_filter


@pytest.mark.parametrize(
    ("asking", "reason"),
    [
        (claiming(pod("p"), "missing"), 'could not find ResourceClaim "default/missing"'),
        (claiming(pod("p"), "leaving"), 'resourceclaim "leaving" is being deleted'),
        (
            claiming_from_template(pod("p"), "t"),
            'pod "default/p": ResourceClaim not created yet',
        ),
        (
            claiming_from_template(pod("p"), "t", "c"),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
        ),
    ],
)
def test_a_pod_is_kept_out_until_its_claims_are_there_for_it(asking: Pod, reason: str) -> None:
    leaving = claim("leaving")
    gone = replace(leaving.metadata, deletion_timestamp="2025-01-01T00:00:00Z")
    lab = Devices(claim("c", request()), replace(leaving, metadata=gone))
    gated = lab.framework.gate(lab.pending(asking))
    assert (gated.plugin, gated.message) == ("DynamicResources", reason)


def test_claims_made_from_a_template_are_the_pod_s_own() -> None:
    lab = Devices(claim("c", request(), owner="p"))
    assert lab.framework.gate(lab.pending(claiming_from_template(pod("p"), "t", "c"))).ok
    assert lab.feasible(claiming_from_template(pod("p"), "t", "c")) == ["n1", "n2"]
    # A controller found that there is nothing to claim.
    assert lab.feasible(claiming_from_template(pod("p"), "t", None)) == ["n1", "n2", "n3"]


def test_a_class_must_exist() -> None:
    lab = Devices(claim("c", request("r", of="none")))
    lab_of_alternatives = Devices(claim("c", first_of("r", alternative("s", of="none"))))
    text = "0/3 nodes are available: request {}: device class none does not exist."
    assert lab.message(claiming(pod("p"), "c")) == text.format("r")
    assert lab_of_alternatives.message(claiming(pod("p"), "c")) == text.format("r/s")


def test_no_node_has_so_many_devices() -> None:
    lab = Devices(claim("c", request(count=3)))
    assert lab.message(claiming(pod("p"), "c")) == (
        "0/3 nodes are available: 3 cannot allocate all claims."
    )


def test_an_invalid_pool_is_named_as_the_reason() -> None:
    lab = Devices(claim("c", request(count=3)), slice_of("s3", device("d"), device("d"), node="n3"))
    assert lab.message(claiming(pod("p"), "c")) == (
        "0/3 nodes are available: 1 invalid resource pools were encountered, "
        "2 cannot allocate all claims."
    )


def test_a_selector_that_fails_ends_the_attempt() -> None:
    lab = Devices(claim("c", request("r", 'device.attributes["gpu.example.com"].none == 1')))
    with pytest.raises(AttemptError, match='running "DynamicResources" filter plugin: claim def'):
        lab.find(claiming(pod("p"), "c"))


def test_a_search_that_takes_too_long_ends_the_attempt() -> None:
    devices = [device(f"d{number}", a=number % 5, b=number) for number in range(30)]
    asked = claim("c", *(request(f"r{n}", count=3) for n in range(6)), constraints=[different("a")])
    args = {"DynamicResources": DynamicResourcesArgs(filter_timeout=Duration(1))}
    lab = Devices(asked, slice_of("s3", *devices, node="n3"), args=args)
    with pytest.raises(AttemptError, match="node n3: timed out trying to allocate devices"):
        lab.find(claiming(pod("p"), "c"))


# --- nodes --------------------------------------------------------------------------------------


def test_nodes_need_enough_devices_that_match_and_are_free() -> None:
    lab = Devices(
        claim("one", request()), claim("two", request(count=2)), claim("x", request("r", IS_X))
    )
    assert lab.feasible(claiming(pod("p"), "one")) == ["n1", "n2"]
    assert lab.feasible(claiming(pod("p"), "two")) == ["n1"]
    assert lab.feasible(claiming(pod("p"), "x")) == ["n1"]
    assert lab.feasible(claiming(pod("p"), "one", "x")) == ["n1"]
    fill(lab.cluster, allocated(claim("other"), result("a", "n1")))
    assert lab.feasible(claiming(pod("p"), "one")) == ["n1", "n2"]
    assert lab.feasible(claiming(pod("p"), "two")) == []
    assert lab.feasible(claiming(pod("p"), "x")) == []


def test_constraints_are_searched_for_on_each_node() -> None:
    lab = Devices(claim("c", request(count=2), constraints=[same("model")]))
    assert lab.feasible(claiming(pod("p"), "c")) == []
    fill(lab.cluster, slice_of("s3", device("d", model="x"), device("e", model="x"), node="n3"))
    assert lab.feasible(claiming(pod("p"), "c")) == ["n3"]


def test_a_tainted_device_is_not_there() -> None:
    lab = Devices(claim("c", request()), slice_of("s2", device("c", taints=[taint()]), node="n2"))
    assert lab.feasible(claiming(pod("p"), "c")) == ["n1"]
    without = FeatureGates.of({"DRADeviceTaints": False, "DRADeviceTaintRules": False})
    lab = Devices(
        claim("c", request()),
        slice_of("s2", device("c", taints=[taint()]), node="n2"),
        gates=without,
    )
    assert lab.feasible(claiming(pod("p"), "c")) == ["n1", "n2"]


def test_devices_on_the_network_can_be_had_anywhere_but_once() -> None:
    lab = Devices(claim("c", request(count=2)), slice_of("net", device("far"), everywhere=True))
    assert lab.feasible(claiming(pod("p"), "c")) == ["n1", "n2"]
    fill(lab.cluster, allocated(claim("other"), result("far", "net")))
    assert lab.feasible(claiming(pod("p"), "c")) == ["n1"]


def test_an_allocated_claim_can_be_used_where_its_devices_are() -> None:
    on_ssd = NodeSelector(node_selector_terms=(term(requirement("disk", "In", "ssd")),))
    lab = Devices(allocated(claim("c", request()), result("a"), selector=on_ssd))
    lab.cluster.put_node(node("n2", labels={"disk": "ssd"}))
    assert lab.feasible(claiming(pod("p"), "c")) == ["n2"]


def test_devices_for_which_kubelets_leave_something_out_need_nodes_that_can() -> None:
    lab = Devices(allocated(claim("c", request()), result("a", skips=["Prepare"])))
    lab.cluster.put_node(node("n2", features=["Other", "DRAOptionalNodeOperations"]))
    assert lab.feasible(claiming(pod("p"), "c")) == ["n2"], "with the gate and without"
    lab.cluster.put_node(node("n2", features=["Other"]))
    assert "3 resourceclaim not available on the node" in lab.message(claiming(pod("p"), "c"))


def test_a_claim_that_another_pod_is_getting_devices_for_has_to_be_waited_for() -> None:
    lab = Devices(claim("c", request()))
    lab.reserve(claiming(pod("first"), "c"), "n1")
    assert lab.message(claiming(pod("second"), "c")) == (
        "0/3 nodes are available: resource claim default/c is in the process of being allocated."
    )


# --- scores -------------------------------------------------------------------------------------


def test_nodes_with_an_earlier_alternative_are_preferred() -> None:
    lab = Devices(claim("c", first_of("r", alternative("x", IS_X), alternative("any"))))
    assert lab.scores("DynamicResources", claiming(pod("p"), "c"), raw=True) == {"n1": 8, "n2": 7}
    assert lab.scores("DynamicResources", claiming(pod("p"), "c")) == {"n1": 100, "n2": 87}


def test_without_alternatives_there_is_no_preference() -> None:
    lab = Devices(claim("c", request()))
    assert lab.scores("DynamicResources", claiming(pod("p"), "c")) == {"n1": 0, "n2": 0}


# --- after a failure ------------------------------------------------------------------------------


def test_without_claims_there_is_nothing_to_free() -> None:
    lab = Devices()
    assert lab.post_filter(pod("p", cpu="9")) == (Code.UNSCHEDULABLE, "")


def test_a_pod_that_it_never_saw_is_an_error_as_in_kube_scheduler() -> None:
    """PreFilter of an earlier plugin rejected the pod; preemption is then not tried either."""
    lab, asking = Devices(), pod("p", cpu="9")
    plugin = lab.plugin("DynamicResources")
    status = plugin.post_filter(CycleState(), lab.pending(asking), lab.diagnosis(asking)).status
    assert (status.code, status.message) == (Code.ERROR, "not found")


def elsewhere(*users: str) -> ResourceClaim:
    nowhere = NodeSelector(node_selector_terms=(term(requirement("disk", "In", "none")),))
    return allocated(claim("c", request()), result("a"), selector=nowhere, users=users)


@pytest.mark.parametrize(
    ("users", "said"),
    [
        ((), "deallocation of ResourceClaim completed"),
        (("p",), "deallocation of ResourceClaim completed"),
        (("p", "other"), ""),
    ],
)
def test_an_allocation_that_is_of_no_use_is_given_up_unless_another_pod_has_it(
    users: tuple[str, ...], said: str
) -> None:
    lab = Devices(elsewhere(*users))
    assert lab.post_filter(claiming(pod("p"), "c")) == (Code.UNSCHEDULABLE, said)


def test_a_claim_is_kept_if_nodes_are_rejected_for_another_reason() -> None:
    lab = Devices(elsewhere())
    assert lab.post_filter(claiming(pod("p", cpu="9"), "c")) == (Code.UNSCHEDULABLE, "")


# --- one node -----------------------------------------------------------------------------------


def test_devices_are_chosen_on_the_node_that_won_and_count_as_taken() -> None:
    lab = Devices(claim("c", request()), claim("d", request()))
    state = lab.reserve(claiming(pod("p"), "c"), "n2")
    chosen = lab.cluster.devices.claims.pending("claim-c")
    assert chosen is not None
    assert [each.device for each in chosen.devices.results] == ["c"]
    assert lab.feasible(claiming(pod("q"), "d")) == ["n1"]
    lab.framework.unreserve(state, lab.pending(claiming(pod("p"), "c")), "n2")
    assert lab.feasible(claiming(pod("q"), "d")) == ["n1", "n2"]
    lab.cluster.devices.validate()


def test_many_pods_share_what_there_is() -> None:
    lab = Devices(*(claim(f"c{number}", request()) for number in range(4)))
    got = []
    for number in range(4):
        asking = claiming(pod(f"p{number}"), f"c{number}")
        found = lab.feasible(asking)
        if found:
            lab.reserve(asking, found[0])
            pending = lab.cluster.devices.claims.pending(f"claim-c{number}")
            assert pending is not None
            got += [each.device for each in pending.devices.results]
    assert got == ["a", "b", "c"]


# --- devices that have to be made ready -----------------------------------------------------------


def made_ready(
    condition: str, status: str = "True", *, since: str = "2999-01-01T00:00:00Z"
) -> ResourceClaim:
    got = result("a", conditions=["Ready"], failures=["Failed"])
    made = allocated(claim("c", request()), got)
    assert made.status.allocation is not None
    said = DeviceCondition(type=condition, status=status, reason="why", message='so "it" is')
    about = AllocatedDeviceStatus(driver=DRIVER, pool="n1", device="a", conditions=(said,))
    timed = replace(made.status.allocation, allocation_timestamp=since)
    return replace(made, status=replace(made.status, allocation=timed, devices=(about,)))


@pytest.mark.parametrize(
    ("made", "fits"),
    [
        (made_ready("Ready"), True),
        (made_ready("Ready", "False"), True),
        (made_ready("Ready", "False", since="2020-01-01T00:00:00Z"), False),
        (made_ready("Failed"), False),
    ],
)
def test_a_claim_whose_devices_cannot_be_made_ready_is_of_no_use(
    made: ResourceClaim, fits: bool
) -> None:
    lab = Devices(made)
    assert bool(lab.feasible(claiming(pod("p"), "c"))) == fits


# --- extended resources ---------------------------------------------------------------------------


def test_an_extended_resource_may_be_devices() -> None:
    lab = Devices(device_class("gpu", resource=GPU))
    asking = pod("p", requests={GPU: "2"})
    assert lab.feasible(asking) == ["n1"]
    state = lab.reserve(asking, "n1")
    assert lab.feasible(pod("q", requests={GPU: "1"})) == ["n2"]
    lab.framework.unreserve(state, lab.pending(asking), "n1")
    assert lab.feasible(pod("q", requests={GPU: "1"})) == ["n1", "n2"]
    implicit = "deviceclass.resource.kubernetes.io/gpu"
    assert lab.feasible(pod("p", requests={implicit: "1"})) == ["n1", "n2"]


def test_a_device_plugin_comes_first_where_there_is_one() -> None:
    lab = Devices(device_class("gpu", resource=GPU))
    lab.cluster.put_node(node("n3", resources={GPU: "1"}))
    assert lab.feasible(pod("p", requests={GPU: "1"})) == ["n1", "n2", "n3"]
    asking = pod("p", requests={GPU: "1"})
    lab.reserve(asking, "n3")
    assert lab.cluster.devices.claims.pending_count == 0
    assert lab.feasible(pod("p", requests={GPU: "2"})) == ["n1"]


def test_a_resource_that_neither_a_device_plugin_nor_a_class_offers_fits_nowhere() -> None:
    lab = Devices(device_class("gpu", resource=GPU), only=["DynamicResources"])
    asking = pod("p", requests={GPU: "1", "example.com/other": "1"})
    assert lab.message(asking) == "0/3 nodes are available: 3 cannot fit resource."


def test_a_class_that_comes_to_stand_for_a_resource_is_seen_at_once() -> None:
    lab, asking = Devices(), pod("p", requests={GPU: "1"})
    assert lab.feasible(asking) == []
    fill(lab.cluster, device_class("gpu", resource=GPU))
    assert lab.feasible(asking) == ["n1", "n2"]
    fill(lab.cluster, device_class("gpu"))
    assert lab.feasible(asking) == []


def test_a_claim_left_by_an_attempt_that_failed_is_deleted_first() -> None:
    left = claim("left", request(), owner="p", annotations={ANNOTATION_EXTENDED_RESOURCES: "true"})
    lab = Devices(device_class("gpu", resource=GPU), left)
    asking = pod("p", containers=[container(requests={GPU: "1"})])
    assert (
        lab.message(asking) == "0/3 nodes are available: 3 cannot schedule extended resource claim."
    )
    assert lab.post_filter(asking) == (Code.UNSCHEDULABLE, "deletion of ResourceClaim completed")
