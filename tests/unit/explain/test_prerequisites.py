"""What a pod lacks before any node can take it is named, and tried."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.config.features import FeatureGates
from kubesched.explain.explaining import explain
from tests.support.device_objects import claim as device_claim
from tests.support.device_objects import claiming, claiming_from_template, request
from tests.support.group_objects import member
from tests.support.objects import node, pod, taint
from tests.support.storage_objects import DRIVER, claim, storage_class, using
from tests.support.worlds import explained, titles, world_of

NODE = node("n1", cpu="4")


def test_a_claim_that_does_not_exist_is_to_be_created() -> None:
    said = explained(using(pod("p"), "data"), NODE)

    (change,) = said.changes
    assert (change.kind, change.title) == ("create", "create PersistentVolumeClaim default/data")
    assert (change.nodes, change.examples, change.patch) == (1, ("n1",), ())
    assert change.note == "Its size and class are yours to choose."


def test_what_a_claim_waits_for_is_to_be_provided() -> None:
    fast = storage_class("fast", mode="Immediate")
    local = storage_class("local", provisioner="kubernetes.io/no-provisioner", mode="Immediate")

    assert titles(using(pod("p"), "data"), NODE, claim("data", storage_class="gone")) == [
        "create StorageClass gone"
    ]
    assert titles(using(pod("p"), "data"), NODE, fast, claim("data", storage_class="fast")) == [
        f"have {DRIVER} bind PersistentVolumeClaim default/data"
    ]
    assert titles(using(pod("p"), "data"), NODE, local, claim("data", storage_class="local")) == [
        "create a PersistentVolume of class local for PersistentVolumeClaim default/data"
    ]


def test_claims_to_devices_that_are_missing_are_to_be_created() -> None:
    unknown_class = device_claim("gpus", request(of="h100"))

    assert titles(claiming(pod("p"), "gpus"), NODE) == ["create ResourceClaim default/gpus"]
    assert titles(claiming_from_template(pod("p"), "gpus"), NODE) == [
        "create ResourceClaimTemplate default/gpus"
    ]
    assert titles(claiming(pod("p"), "gpus"), NODE, unknown_class) == ["create DeviceClass h100"]


def test_a_gate_is_to_be_removed_even_if_the_pod_does_not_fit_then() -> None:
    (fits,) = explained(pod("p", gates=["quota"]), NODE).changes
    assert (fits.title, fits.nodes) == ("remove gate quota", 1)

    said = explained(pod("p", gates=["quota"], cpu="8"), NODE)

    assert said.outcome == "Gated"
    assert said.changes[0].title == "remove gate quota, and request 4 cpu instead of 8"
    assert [each.op for each in said.changes[0].patch] == ["remove", "replace"]


def test_several_things_that_lack_come_before_what_else_is_in_the_way() -> None:
    tainted = node("n1", taints=[taint("gpu:NoSchedule")])

    said = explained(using(pod("p"), "a", "b"), tainted)

    first = said.changes[0]
    assert first.title == (
        "create PersistentVolumeClaim default/a and create PersistentVolumeClaim default/b, "
        "and tolerate taint gpu:NoSchedule"
    )
    assert first.steps == 3
    # The pod itself keeps its volumes.
    assert [each.path for each in first.patch] == ["/spec/tolerations"]


def test_a_pod_group_that_does_not_exist_is_to_be_created() -> None:
    gates = FeatureGates.of({"GenericWorkload": True})
    world = world_of(NODE, gates=gates)

    said = explain(world, member("p", "train"))

    assert [each.title for each in said.changes] == ["create PodGroup default/train"]


def test_another_scheduler_comes_first_for_a_pod_that_none_takes() -> None:
    other: Pod = pod("p", cpu="8")
    other = replace(other, spec=replace(other.spec, scheduler_name="volcano"))

    said = explained(other, NODE)

    assert said.changes[0].title == (
        "schedulerName default-scheduler instead of volcano, and request 4 cpu instead of 8"
    )
