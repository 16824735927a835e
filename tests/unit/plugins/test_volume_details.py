"""The claims, volumes and classes behind a rejection by VolumeBinding."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import NodeSelector, ResourceRequirements
from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeNodeAffinity,
)
from tests.support.objects import node, pod, requirement, term
from tests.support.storage_objects import DRIVER, claim, persistent_volume, storage_class, using
from tests.support.worlds import details

NODES = (node("n1", zone="a"), node("n2", zone="b"))
ZONE = "topology.kubernetes.io/zone"


def sized(one: PersistentVolumeClaim, size: str) -> PersistentVolumeClaim:
    resources = ResourceRequirements(requests={"storage": size})
    return replace(one, spec=replace(one.spec, resources=resources))


def bound(name: str, volume: str) -> PersistentVolumeClaim:
    made = claim(name, volume=volume)
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    return replace(made, metadata=replace(made.metadata, annotations=done))


def test_a_claim_that_does_not_exist_is_named() -> None:
    found = details(using(pod("p"), "data"), *NODES)

    assert found['persistentvolumeclaim "data" not found'] == [
        "PersistentVolumeClaim default/data does not exist"
    ]


def test_claims_say_what_they_wait_for() -> None:
    found = details(
        using(pod("p"), "made", "lone", "static", "lost"),
        *NODES,
        storage_class("fast", mode="Immediate"),
        storage_class("local", provisioner="kubernetes.io/no-provisioner", mode="Immediate"),
        sized(claim("made", storage_class="fast"), "10Gi"),
        claim("lone", storage_class="gone"),
        sized(claim("static", storage_class="local"), "5Gi"),
        claim("lost", storage_class=""),
    )

    where = "PersistentVolumeClaim default/"
    assert found["pod has unbound immediate PersistentVolumeClaims"] == [
        f"{where}made waits for {DRIVER} to make a volume of 10Gi of class fast",
        f"{where}lone waits: StorageClass gone does not exist",
        f"{where}static waits for a PersistentVolume of 5Gi of class local",
        f"{where}lost has no StorageClass and waits for a PersistentVolume",
    ]


def test_a_volume_that_nodes_cannot_reach_says_which_can() -> None:
    only_b = NodeSelector(node_selector_terms=(term(requirement(ZONE, "In", "b")),))
    volume = persistent_volume("pv-1")
    volume = replace(
        volume, spec=replace(volume.spec, node_affinity=VolumeNodeAffinity(required=only_b))
    )

    found = details(using(pod("p", cpu="100"), "data"), *NODES, volume, bound("data", "pv-1"))

    assert found["node(s) didn't match PersistentVolume's node affinity"] == [
        f"claim default/data: PersistentVolume pv-1 is only for nodes with {ZONE}=b"
    ]


def test_a_class_that_does_not_provision_for_a_node_says_for_which_it_does() -> None:
    topology = TopologySelectorLabelRequirement(key=ZONE, values=("c",))
    allowed = (TopologySelectorTerm(match_label_expressions=(topology,)),)
    zonal = replace(storage_class("zonal"), allowed_topologies=allowed)

    found = details(using(pod("p"), "data"), *NODES, zonal, claim("data", storage_class="zonal"))

    assert found["node(s) didn't find available persistent volumes to bind"] == [
        f"claim default/data: StorageClass zonal provisions only on nodes with {ZONE} in (c)"
    ]


def test_a_class_without_provisioner_says_how_much_is_needed() -> None:
    found = details(
        using(pod("p"), "data"),
        *NODES,
        storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        sized(claim("data", storage_class="local"), "20Gi"),
    )

    assert found["node(s) didn't find available persistent volumes to bind"] == [
        (
            "claim default/data: no free PersistentVolume of 20Gi or more of class local "
            "is for the node"
        )
    ]


def test_too_little_storage_says_what_is_requested_and_the_most_there_is() -> None:
    found = details(
        using(pod("p"), "data"),
        *NODES,
        CSIDriver(metadata=ObjectMeta(name=DRIVER), spec=CSIDriverSpec(storage_capacity=True)),
        CSIStorageCapacity(
            metadata=ObjectMeta(name="c1", namespace="kube-system"),
            storage_class_name="fast",
            capacity="5Gi",
            node_topology=LabelSelector(),
        ),
        storage_class("fast"),
        sized(claim("data", storage_class="fast"), "10Gi"),
    )

    assert found["node(s) did not have enough free storage"] == [
        (
            f"claim default/data: 10Gi requested, {DRIVER} reports less for the node; the largest "
            "volume that it reports anywhere is 5Gi"
        )
    ]


def test_a_claim_whose_volume_is_gone_names_it() -> None:
    found = details(using(pod("p"), "data"), *NODES, bound("data", "pv-9"))

    (texts,) = [texts for text, texts in found.items() if "non-existent pv" in text]
    assert texts == ["claim default/data: PersistentVolume pv-9 does not exist"]
