"""What the volumes of a pod mean."""

from __future__ import annotations

import pytest

from kubesched.api.core import Volume
from kubesched.cluster.pod_volumes import (
    NO_VOLUMES,
    ClaimMount,
    any_conflict,
    compile_volumes,
    is_migratable,
)
from tests.support.objects import pod
from tests.support.storage_objects import (
    aws_disk,
    claim_volume,
    ephemeral_volume,
    gce_disk,
    iscsi_disk,
    rbd_image,
    with_volumes,
)


def test_volumes_that_mean_nothing_cost_nothing() -> None:
    assert compile_volumes(pod()) is NO_VOLUMES
    assert compile_volumes(with_volumes(pod(), Volume(name="token"))) is NO_VOLUMES


def test_claims_are_in_the_pods_namespace_and_in_its_order() -> None:
    volumes = compile_volumes(
        with_volumes(
            pod("p", namespace="ns"), claim_volume("b"), ephemeral_volume("scratch"), gce_disk("d")
        )
    )

    assert volumes.attachable == (
        ClaimMount("b", "ns", "b"),
        ClaimMount("scratch", "ns", "p-scratch", ephemeral=True),
        gce_disk("d"),
    )
    assert [mount.key for mount in volumes.mounts] == [("ns", "b"), ("ns", "p-scratch")]
    assert [mount.name for mount in volumes.named_claims] == ["b"]


def test_a_pod_uses_the_claims_that_it_names_and_those_made_for_it() -> None:
    volumes = compile_volumes(
        with_volumes(pod("p", namespace="ns"), claim_volume("b"), ephemeral_volume("scratch"))
    )

    assert volumes.uses_claim("ns", "b")
    assert not volumes.uses_claim("other", "b")
    assert not volumes.uses_claim("ns", "p-scratch")
    assert volumes.uses_claim("ns", "p-scratch", or_ephemeral=True)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(gce_disk("d"), gce_disk("d"), True, id="the same disk"),
        pytest.param(gce_disk("d"), gce_disk("e"), False, id="other disks"),
        pytest.param(
            gce_disk("d", read_only=True), gce_disk("d", read_only=True), False, id="two readers"
        ),
        pytest.param(gce_disk("d", read_only=True), gce_disk("d"), True, id="reader and writer"),
        pytest.param(
            aws_disk("d", read_only=True), aws_disk("d", read_only=True), True, id="aws readers"
        ),
        pytest.param(gce_disk("d"), aws_disk("d"), False, id="kinds of disks"),
        pytest.param(iscsi_disk("d"), iscsi_disk("d"), True, id="iscsi"),
        pytest.param(
            iscsi_disk("d", read_only=True),
            iscsi_disk("d", read_only=True),
            False,
            id="iscsi readers",
        ),
        pytest.param(rbd_image("i", "a", "b"), rbd_image("i", "b", "c"), True, id="one monitor"),
        pytest.param(rbd_image("i", "a"), rbd_image("i", "b"), False, id="no monitor in common"),
        pytest.param(rbd_image("i"), rbd_image("i"), False, id="no monitors"),
        pytest.param(rbd_image("i", "a"), rbd_image("j", "a"), False, id="other images"),
        pytest.param(
            rbd_image("i", "a"), rbd_image("i", "a", pool="other"), False, id="other pools"
        ),
        pytest.param(
            rbd_image("i", "a", read_only=True), rbd_image("i", "a"), True, id="rbd with a writer"
        ),
    ],
)
def test_disks_that_a_node_cannot_have_twice(one: Volume, other: Volume, expected: bool) -> None:
    first = compile_volumes(with_volumes(pod("a"), one)).disks
    second = compile_volumes(with_volumes(pod("b"), other)).disks

    assert any_conflict(first, second) is expected
    assert any_conflict(second, first) is expected


def test_kinds_of_disks_that_csi_drivers_took_over() -> None:
    assert is_migratable(gce_disk("d"))
    assert is_migratable(aws_disk("d"))
    assert not is_migratable(iscsi_disk("d"))
    assert not is_migratable(rbd_image("i", "a"))
    assert not is_migratable(claim_volume("c"))
