"""VolumeRestrictions: disks and claims that belong to one pod at a time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod, Volume
from kubesched.api.storage import READ_WRITE_ONCE_POD
from kubesched.framework.status import SKIP, unresolvable, unschedulable
from kubesched.queue.events import Action, Resource
from tests.support.objects import node, pod
from tests.support.storage_objects import (
    aws_disk,
    claim,
    ephemeral_volume,
    gce_disk,
    iscsi_disk,
    rbd_image,
    using,
    with_volumes,
)

from .hinting import added, deleted, helps
from .storage_lab import StorageLab, came

PLUGIN = "VolumeRestrictions"
DISK_TAKEN = unschedulable("node(s) had no available disk")
CLAIM_TAKEN = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
EXCLUSIVE = claim("mine", modes=[READ_WRITE_ONCE_POD])


# --- disks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "disk",
    [gce_disk("d"), aws_disk("d"), iscsi_disk("d"), rbd_image("d", "monitor")],
    ids=["gce", "aws", "iscsi", "rbd"],
)
def test_a_disk_is_taken_on_the_node_of_the_pod_that_has_it(disk: Volume) -> None:
    lab = StorageLab(
        PLUGIN, node("busy"), node("free"), with_volumes(pod("there", node="busy"), disk)
    )

    assert lab.refused(with_volumes(pod(), disk)) == {"busy": DISK_TAKEN}


def test_readers_share_a_disk() -> None:
    reading = gce_disk("d", read_only=True)
    lab = StorageLab(PLUGIN, node("n"), with_volumes(pod("there", node="n"), reading))

    assert lab.refused(with_volumes(pod(), reading)) == {}
    assert lab.refused(with_volumes(pod(), gce_disk("d"))) == {"n": DISK_TAKEN}


def test_disks_of_other_namespaces_are_the_same_disks() -> None:
    there = with_volumes(pod("there", node="n", namespace="other"), aws_disk("d"))
    lab = StorageLab(PLUGIN, node("n"), there)

    assert lab.refused(with_volumes(pod(), aws_disk("d"))) == {"n": DISK_TAKEN}


# --- claims -------------------------------------------------------------------------------------


def test_pods_without_volumes_that_matter_are_not_looked_at() -> None:
    lab = StorageLab(PLUGIN, node(), claim("c"))

    assert lab.pre_filter(pod()).status == SKIP
    assert lab.pre_filter(with_volumes(pod(), Volume(name="token"))).status == SKIP
    assert lab.pre_filter(using(pod(), "c")).status == SKIP, "many pods may use it"
    assert lab.pre_filter(with_volumes(pod(), ephemeral_volume("e"))).status == SKIP


def test_a_claim_that_is_not_there_turns_the_pod_away() -> None:
    lab = StorageLab(PLUGIN, node(), claim("other"))

    expected = unresolvable('persistentvolumeclaim "c" not found')
    assert lab.pre_filter(using(pod(), "other", "c")).status == expected


def test_a_claim_for_one_pod_is_free_until_somebody_uses_it() -> None:
    lab = StorageLab(PLUGIN, node("n1"), node("n2"), EXCLUSIVE)
    waiting = using(pod(), "mine")
    assert lab.pre_filter(waiting).status == SKIP

    lab.cluster.put_pod(using(pod("there", node="n2"), "mine"))
    assert lab.refused(waiting) == {"n1": CLAIM_TAKEN, "n2": CLAIM_TAKEN}

    lab.cluster.remove_pod("there")
    assert lab.pre_filter(waiting).status == SKIP


def test_the_claim_of_the_same_name_in_another_namespace_is_another_claim() -> None:
    there = using(pod("there", node="n", namespace="other"), "mine")
    lab = StorageLab(PLUGIN, node("n"), there, EXCLUSIVE)

    assert lab.pre_filter(using(pod(), "mine")).status == SKIP


def test_a_disk_that_is_taken_is_told_before_a_claim_that_is() -> None:
    there = using(with_volumes(pod("there", node="n1"), gce_disk("d")), "mine")
    lab = StorageLab(PLUGIN, node("n1"), node("n2"), there, EXCLUSIVE)

    refused = lab.refused(using(with_volumes(pod(), gce_disk("d")), "mine"))
    assert refused == {"n1": DISK_TAKEN, "n2": CLAIM_TAKEN}


# --- preemption ---------------------------------------------------------------------------------


def test_evicting_the_pod_that_has_the_claim_helps_on_its_node() -> None:
    lab = StorageLab(
        PLUGIN,
        node("n1"),
        node("n2"),
        using(pod("holder", node="n2", priority=1), "mine"),
        pod("bystander", node="n1", priority=1),
        EXCLUSIVE,
        preemption=True,
    )

    evicted = lab.evicted_for(using(pod(priority=10), "mine"))

    assert evicted == [("p1", "n2", ["holder"])]
    lab.cluster.validate()


def test_evicting_the_pod_that_has_the_disk_helps() -> None:
    lab = StorageLab(
        PLUGIN,
        node("n1"),
        with_volumes(pod("holder", node="n1", priority=1), gce_disk("d")),
        pod("bystander", node="n1", priority=1),
        preemption=True,
    )

    assert lab.evicted_for(with_volumes(pod(priority=10), gce_disk("d"))) == [
        ("p1", "n1", ["holder"])
    ]


def test_a_pod_of_another_namespace_counts_when_it_is_supposed_to_go() -> None:
    # It names a claim of the same name, and going lowers the count: so says kube-scheduler.
    lab = StorageLab(
        PLUGIN,
        node("n1"),
        node("n2"),
        using(pod("holder", node="n1", priority=100), "mine"),
        using(pod("stranger", node="n2", namespace="other", priority=1), "mine"),
        EXCLUSIVE,
        preemption=True,
    )

    assert lab.evicted_for(using(pod(priority=10), "mine")) == [("p1", "n2", ["stranger"])]


def test_room_is_left_for_nominated_pods_with_the_same_disk() -> None:
    lab = StorageLab(PLUGIN, node("n1"), node("n2"))
    nominated = with_volumes(pod("first", priority=10, nominated="n1"), gce_disk("d"))
    lab.cluster.nominator.nominate(lab.pending(nominated), "n1")

    assert lab.feasible(with_volumes(pod("second"), gce_disk("d"))) == ["n2"]


# --- hints --------------------------------------------------------------------------------------


def test_what_is_registered() -> None:
    registered = StorageLab(PLUGIN).plugin(PLUGIN).events_to_register()

    assert [(each.event.resource, each.event.action) for each in registered] == [
        (Resource.ASSIGNED_POD, Action.DELETE),
        (Resource.NODE, Action.ADD),
        (Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD),
    ]


@pytest.mark.parametrize(
    ("gone", "want"),
    [
        pytest.param(with_volumes(pod("o", node="n"), gce_disk("d")), True, id="the disk"),
        pytest.param(with_volumes(pod("o", node="n"), gce_disk("x")), False, id="another disk"),
        pytest.param(using(pod("o", node="n"), "x", "mine"), True, id="the claim"),
        pytest.param(using(pod("o", node="n"), "x"), False, id="another claim"),
        pytest.param(
            using(pod("o", node="n", namespace="other"), "mine"), False, id="another namespace"
        ),
        pytest.param(pod("o", node="n"), False, id="nothing"),
    ],
)
def test_a_pod_goes(gone: Pod, want: bool) -> None:
    waiting = using(with_volumes(pod(), gce_disk("d")), "mine")
    lab = StorageLab(PLUGIN)

    assert helps(lab, PLUGIN, waiting, deleted(gone)) is want
    assert helps(lab, PLUGIN, pod("unconcerned"), deleted(gone)) is False


def test_a_claim_comes() -> None:
    lab, waiting = StorageLab(PLUGIN), using(pod(), "c")

    assert helps(lab, PLUGIN, waiting, came(claim("c")))
    assert not helps(lab, PLUGIN, waiting, came(claim("d")))
    assert not helps(lab, PLUGIN, waiting, came(claim("c", namespace="other")))


def test_a_node_comes() -> None:
    assert helps(StorageLab(PLUGIN), PLUGIN, using(pod(), "c"), added(node()))


def test_hints_look_at_each_change_anew() -> None:
    lab, waiting = StorageLab(PLUGIN), using(pod(), "mine")
    gone = using(pod("o", node="n"), "mine")

    assert helps(lab, PLUGIN, waiting, deleted(gone))
    without = replace(gone, spec=replace(gone.spec, volumes=()))
    assert not helps(lab, PLUGIN, waiting, deleted(without))
