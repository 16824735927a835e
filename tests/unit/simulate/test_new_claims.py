"""Claims that come with pods: whose class they have, and whether they are bound already."""

from __future__ import annotations

import msgspec

from kubesched.api.meta import ObjectMeta
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.simulate.new_claims import NewClaims
from kubesched.snapshot.contents import Snapshot
from tests.support.objects import pod
from tests.support.worlds import snapshot_of

TEMPLATE = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def storage_class(
    name: str, *, waits: bool, default: bool = False, driver: str = "d"
) -> StorageClass:
    marks = {"storageclass.kubernetes.io/is-default-class": "true"} if default else None
    return StorageClass(
        metadata=ObjectMeta(name=name, annotations=marks),
        provisioner=driver,
        volume_binding_mode="WaitForFirstConsumer" if waits else "Immediate",
    )


def made(snapshot: Snapshot, **spec: object) -> PersistentVolumeClaim:
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], **spec}}  # type: ignore[dict-item]
    NewClaims(snapshot).add_for_ordinal([template], pod("web-0"), "web-0", "file")
    claims: list[PersistentVolumeClaim] = snapshot.objects["PersistentVolumeClaim"]
    return claims[-1]


def test_a_claim_without_class_gets_the_default_one() -> None:
    snapshot = snapshot_of(
        [storage_class("slow", waits=True), storage_class("fast", waits=True, default=True)]
    )

    assert made(snapshot).spec.storage_class_name == "fast"


def test_an_empty_class_is_no_missing_one() -> None:
    snapshot = snapshot_of([storage_class("fast", waits=True, default=True)])

    assert made(snapshot, storageClassName="").spec.storage_class_name == ""


def test_a_class_that_waits_leaves_the_claim_to_the_scheduler() -> None:
    snapshot = snapshot_of([storage_class("late", waits=True, default=True)])

    assert made(snapshot).spec.volume_name == ""


def test_a_class_that_binds_at_once_provisions_a_volume_for_all_nodes() -> None:
    snapshot = snapshot_of([storage_class("now", waits=False, default=True)])

    claim = made(snapshot)

    [volume] = snapshot.objects["PersistentVolume"]
    assert claim.spec.volume_name == volume.metadata.name
    assert claim.status.phase == "Bound"
    assert volume.spec.node_affinity is None


def test_a_volume_that_is_there_is_taken_once() -> None:
    tree = {
        "spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Available"},
    }
    volume = msgspec.convert({"metadata": {"name": "pv"}, **tree}, PersistentVolume)
    by_hand = storage_class(
        "by-hand", waits=False, default=True, driver="kubernetes.io/no-provisioner"
    )
    volume = msgspec.structs.replace(
        volume, spec=msgspec.structs.replace(volume.spec, storage_class_name="by-hand")
    )
    snapshot = snapshot_of([by_hand, volume])

    first = made(snapshot)
    NewClaims(snapshot).add_for_ordinal([TEMPLATE], pod("web-1"), "web-1", "file")
    second = snapshot.objects["PersistentVolumeClaim"][-1]

    assert first.spec.volume_name == "pv"
    assert second.spec.volume_name == "", "there is no other, and nothing provisions one"


def test_an_ephemeral_volume_has_a_claim_of_its_pod() -> None:
    snapshot = snapshot_of([])
    spec = {"volumes": [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": TEMPLATE}}]}

    NewClaims(snapshot).add_ephemeral(pod("p"), spec, "file")

    [claim] = snapshot.objects["PersistentVolumeClaim"]
    assert claim.metadata.name == "p-tmp"
    assert claim.metadata.owner_references[0].uid == "p"


def test_claims_that_others_add_are_settled_those_of_the_cluster_are_not() -> None:
    old = PersistentVolumeClaim(metadata=ObjectMeta(name="old", namespace="default"))
    snapshot = snapshot_of([storage_class("now", waits=False, default=True), old])
    claims = NewClaims(snapshot)
    new = PersistentVolumeClaim(metadata=ObjectMeta(name="new", namespace="default", uid="new"))
    snapshot.add("PersistentVolumeClaim", new)

    claims.settle()

    volumes = {
        each.metadata.name: each.spec.volume_name
        for each in snapshot.objects["PersistentVolumeClaim"]
    }
    assert volumes == {"old": "", "new": "pvc-new"}
