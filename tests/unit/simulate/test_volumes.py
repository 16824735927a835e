"""Volumes in a simulation: claims that wait for a pod are bound when it is placed."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import PersistentVolumeClaimVolumeSource, Pod, Volume
from kubesched.api.meta import ObjectMeta
from kubesched.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
)
from kubesched.simulate.playing import play
from tests.support.objects import node, pod

from .plays import conditions_of, nodes_of


def _with_claim(name: str, claim: str) -> Pod:
    source = PersistentVolumeClaimVolumeSource(claim_name=claim)
    one = pod(name, cpu="1")
    volumes = (Volume(name="data", persistent_volume_claim=source),)
    return replace(one, spec=replace(one.spec, volumes=volumes))


def _claim(name: str, storage_class: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace="default", uid=name, resource_version="1"),
        spec=PersistentVolumeClaimSpec(
            storage_class_name=storage_class, access_modes=("ReadWriteOnce",)
        ),
    )


def _class(name: str, provisioner: str) -> StorageClass:
    return StorageClass(
        metadata=ObjectMeta(name=name),
        provisioner=provisioner,
        volume_binding_mode="WaitForFirstConsumer",
    )


def test_a_volume_is_made_where_the_pod_goes_and_keeps_the_next_one_there() -> None:
    conditions = conditions_of(
        [node("n1", zone="a"), _with_claim("first", "data"), node("n2", zone="b")]
    )
    snapshot = conditions.snapshot
    snapshot.add("StorageClass", _class("fast", "disks.example"))
    snapshot.add("PersistentVolumeClaim", _claim("data", "fast"))

    found = play(conditions)

    claim = found.cluster.storage.claims.observed("default", "data")
    assert claim is not None
    volume = found.cluster.storage.volumes.observed(claim.spec.volume_name)
    assert volume is not None
    zone = {"n1": "a", "n2": "b"}[nodes_of(found)["first"]]
    assert volume.spec.node_affinity is not None
    assert volume.spec.node_affinity.required is not None
    [term] = volume.spec.node_affinity.required.node_selector_terms
    assert term.match_expressions[0].values == (zone,)
    found.cluster.validate()


def test_a_volume_that_is_there_is_bound_to_its_claim() -> None:
    conditions = conditions_of([node("n1"), _with_claim("first", "data")])
    snapshot = conditions.snapshot
    snapshot.add("StorageClass", _class("local", "kubernetes.io/no-provisioner"))
    snapshot.add("PersistentVolumeClaim", _claim("data", "local"))
    snapshot.add(
        "PersistentVolume",
        PersistentVolume(
            metadata=ObjectMeta(name="disk", resource_version="1"),
            spec=PersistentVolumeSpec(
                capacity={"storage": "1Gi"},
                access_modes=("ReadWriteOnce",),
                storage_class_name="local",
            ),
            status=PersistentVolumeStatus(phase="Available"),
        ),
    )

    found = play(conditions)

    assert nodes_of(found) == {"first": "n1"}
    claim = found.cluster.storage.claims.observed("default", "data")
    assert claim is not None
    assert claim.spec.volume_name == "disk"
