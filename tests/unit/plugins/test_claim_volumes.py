"""What claims stand for: the volume of a CSI driver, or one that it will make."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.errors import ObjectError
from kubesched.plugins.claim_volumes import ClaimVolumes, MissingClaimError, VolumeId
from kubesched.plugins.csi_migration import GCE_PD, SUCCESSORS
from tests.support.objects import node, pod
from tests.support.scheduling import cluster_of
from tests.support.storage_objects import (
    DRIVER,
    claim,
    ephemeral_volume,
    gce_disk,
    persistent_volume,
    storage_class,
    using,
    with_volumes,
)

GCE = SUCCESSORS[GCE_PD].driver


@pytest.fixture
def cluster() -> Cluster:
    return cluster_of(node("n"))


def volumes(
    cluster: Cluster, asking: Pod, *, known: ClaimVolumes | None = None, on_csi_node: bool = True
) -> set[VolumeId]:
    known = known or ClaimVolumes(cluster.storage, prefix="new")
    return known.of_pod(cluster.compiler.pending(asking), has_csi_node=on_csi_node)


def test_a_bound_claim_is_its_volume(cluster: Cluster) -> None:
    cluster.storage.claims.put(claim("c", volume="v"))
    cluster.storage.volumes.put(persistent_volume("v", handle="h"))

    assert volumes(cluster, using(pod(), "c")) == {VolumeId(DRIVER, "h")}


def test_a_claim_without_a_volume_is_one_that_its_class_will_make(cluster: Cluster) -> None:
    cluster.storage.claims.put(claim("c", storage_class="fast"))
    asking = using(pod(), "c")
    assert volumes(cluster, asking) == set(), "the class does not exist"

    cluster.storage.classes.put(storage_class("fast"))
    assert volumes(cluster, asking) == {VolumeId(DRIVER, "new-default/c")}


def test_two_claims_to_one_volume_count_once(cluster: Cluster) -> None:
    cluster.storage.volumes.put(persistent_volume("v", handle="h"))
    for name in ("c", "d"):
        cluster.storage.claims.put(claim(name, volume="v"))

    assert volumes(cluster, using(pod(), "c", "d")) == {VolumeId(DRIVER, "h")}


def test_volumes_that_csi_has_taken_over_count_where_there_is_a_csi_node(cluster: Cluster) -> None:
    cluster.storage.claims.put(claim("c", storage_class="old"))
    cluster.storage.classes.put(storage_class("old", provisioner=GCE_PD))
    asking = with_volumes(using(pod(), "c"), gce_disk("disk"))

    assert {each.driver for each in volumes(cluster, asking)} == {GCE}
    assert len(volumes(cluster, asking)) == 2
    assert volumes(cluster, asking, on_csi_node=False) == set()


def test_a_claim_that_is_missing_is_an_error_for_new_pods_only(cluster: Cluster) -> None:
    known, info = ClaimVolumes(cluster.storage), cluster.compiler.pending(using(pod(), "c"))
    assert known.of_pod(info, has_csi_node=True) == set()

    with pytest.raises(MissingClaimError, match=r'looking up PVC default/c: .*"c" not found'):
        known.of_pod(info, has_csi_node=True, must_exist=True)


def test_a_claim_for_a_pod_is_that_pod_s(cluster: Cluster) -> None:
    cluster.storage.claims.put(claim("p-scratch", volume="v", owner="p"))
    cluster.storage.volumes.put(persistent_volume("v", handle="h"))
    asking = with_volumes(pod("p"), ephemeral_volume("scratch"))
    assert volumes(cluster, asking) == {VolumeId(DRIVER, "h")}

    other = replace(asking, metadata=replace(asking.metadata, uid="other"))
    with pytest.raises(ObjectError, match=r"was not created for pod default/p \(pod is not owner"):
        volumes(cluster, other)


def test_answers_are_cached_until_they_are_forgotten(cluster: Cluster) -> None:
    cluster.storage.claims.put(claim("c", volume="v"))
    cluster.storage.volumes.put(persistent_volume("v", handle="h"))
    known, asking = ClaimVolumes(cluster.storage), using(pod(), "c")
    assert volumes(cluster, asking, known=known) == {VolumeId(DRIVER, "h")}

    cluster.storage.volumes.put(persistent_volume("v", handle="other"))
    assert volumes(cluster, asking, known=known) == {VolumeId(DRIVER, "h")}

    known.forget([("default", "c")])
    assert volumes(cluster, asking, known=known) == {VolumeId(DRIVER, "other")}


def test_volumes_that_are_not_made_yet_differ_from_one_scheduler_to_the_next(
    cluster: Cluster,
) -> None:
    assert ClaimVolumes(cluster.storage).prefix != ClaimVolumes(cluster.storage).prefix
