"""NodeVolumeLimits: a node takes so many volumes of a driver."""

from __future__ import annotations

import pytest

from kubesched.api.core import Node, Pod, Volume
from kubesched.config.features import FeatureGates
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.status import SKIP, error, unresolvable, unschedulable
from kubesched.queue.events import Action, Resource
from tests.support.objects import node, pod
from tests.support.storage_objects import (
    DRIVER,
    attachment,
    aws_disk,
    claim,
    csi_driver,
    csi_node,
    ephemeral_volume,
    gce_disk,
    iscsi_disk,
    persistent_volume,
    storage_class,
    using,
    with_volumes,
)

from .hinting import deleted, helps
from .storage_lab import StorageLab, StorageObject, came, changed, went

PLUGIN = "NodeVolumeLimits"
TOO_MANY = unschedulable("node(s) exceed max volume count")
GCE_DRIVER = "pd.csi.storage.gke.io"
AWS_DRIVER = "ebs.csi.aws.com"


def bound(name: str, *, driver: str = DRIVER, handle: str | None = None) -> list[StorageObject]:
    """Make a claim and its volume, under one name."""
    return [claim(name, volume=name), persistent_volume(name, driver=driver, handle=handle)]


def lab_with(
    *objects: Node | Pod | StorageObject, limit: int = 1, gates: FeatureGates | None = None
) -> StorageLab:
    """Make a laboratory with one node, and with claims a, b and c to volumes of one driver."""
    claims = [each for name in "abc" for each in bound(name)]
    everything = [node("n"), csi_node("n", {DRIVER: limit}), *claims, *objects]
    return StorageLab(PLUGIN, *everything, gates=gates or FeatureGates.of())


# --- counting -----------------------------------------------------------------------------------


def test_a_node_takes_as_many_volumes_as_its_limit_says() -> None:
    lab = lab_with(using(pod("there", node="n"), "a"), limit=2)

    assert lab.refused(using(pod(), "b")) == {}
    assert lab.refused(using(pod(), "b", "c")) == {"n": TOO_MANY}


def test_a_limit_of_none_at_all() -> None:
    assert lab_with(limit=0).refused(using(pod(), "a")) == {"n": TOO_MANY}


def test_a_volume_that_the_node_has_already_is_not_new() -> None:
    lab = lab_with(using(pod("there", node="n"), "a"), limit=1)

    assert lab.refused(using(pod(), "a")) == {}
    assert lab.refused(using(pod(), "a", "b")) == {"n": TOO_MANY}


def test_a_volume_of_several_pods_counts_once() -> None:
    lab = lab_with(using(pod("one", node="n"), "a"), using(pod("two", node="n"), "a"), limit=2)

    assert lab.refused(using(pod(), "b")) == {}


def test_two_claims_to_one_disk_count_once() -> None:
    lab = lab_with(*bound("d", handle="a"), using(pod("there", node="n"), "a"), limit=1)

    assert lab.refused(using(pod(), "d")) == {}


def test_each_driver_has_its_own_limit() -> None:
    lab = lab_with(
        csi_node("n", {DRIVER: 1, "other": 1}),
        *bound("x", driver="other"),
        *bound("y", driver="unlimited"),
        using(pod("there", node="n"), "a", "y"),
    )

    assert lab.refused(using(pod(), "x")) == {}
    assert lab.refused(using(pod(), "y")) == {}
    assert lab.refused(using(pod(), "x", "b")) == {"n": TOO_MANY}


def test_nodes_without_limits_take_any_number() -> None:
    lab = lab_with(
        node("no-csi-node"),
        node("no-limit"),
        csi_node("no-limit", {DRIVER: None}),
        limit=0,
    )

    assert lab.refused(using(pod(), "a")) == {"n": TOO_MANY}


def test_claims_without_a_volume_count_for_the_driver_of_their_class() -> None:
    lab = lab_with(
        storage_class("fast"),
        claim("new", storage_class="fast"),
        claim("lost", storage_class="fast", volume="gone"),
        claim("elsewhere", storage_class="unknown"),
        claim("no-class"),
        limit=1,
    )

    assert lab.refused(using(pod(), "new")) == {}
    assert lab.refused(using(pod(), "new", "lost")) == {"n": TOO_MANY}
    assert lab.refused(using(pod(), "new", "elsewhere", "no-class")) == {}


def test_volumes_that_are_attached_and_not_used_count() -> None:
    lab = lab_with(attachment("x", node="n", volume="b"), limit=1)
    assert lab.refused(using(pod(), "a")) == {"n": TOO_MANY}
    assert lab.refused(using(pod(), "b")) == {"n": TOO_MANY}, "as kube-scheduler counts it, twice"

    lab.cluster.put_pod(using(pod("there", node="n"), "b"))
    assert lab.refused(using(pod(), "b")) == {}, "a volume of a pod is not new"

    lab.remove(attachment("x", node="n", volume="b"))
    assert lab.refused(using(pod(), "a")) == {"n": TOO_MANY}


@pytest.mark.parametrize(
    "nothing",
    [
        attachment("x", node="other", volume="b"),
        attachment("x", node="n", volume=None),
        attachment("x", node="n", volume="unknown"),
        attachment("x", node="n", volume="b", attacher=""),
        attachment("x", node="n", volume="b", attacher="other"),
    ],
    ids=["another node", "no volume", "an unknown volume", "no driver", "another driver"],
)
def test_attachments_that_do_not_count(nothing: StorageObject) -> None:
    assert lab_with(nothing, limit=1).refused(using(pod(), "a")) == {}


# --- disks without a claim ----------------------------------------------------------------------


def test_disks_that_a_csi_driver_took_over_count_as_its_volumes() -> None:
    lab = lab_with(
        csi_node("n", {GCE_DRIVER: 1, AWS_DRIVER: 1}),
        node("no-csi-node"),
        with_volumes(pod("there", node="n"), gce_disk("d")),
    )

    assert lab.refused(with_volumes(pod(), gce_disk("d"))) == {}
    assert lab.refused(with_volumes(pod(), gce_disk("e"))) == {"n": TOO_MANY}
    assert lab.refused(with_volumes(pod(), aws_disk("vol-1"))) == {}


def test_claims_of_a_class_that_a_csi_driver_took_over() -> None:
    lab = lab_with(
        csi_node("n", {GCE_DRIVER: 0}),
        node("no-csi-node"),
        storage_class("old", provisioner="kubernetes.io/gce-pd"),
        storage_class("file", provisioner="kubernetes.io/azure-file"),
        claim("d", storage_class="old"),
        claim("f", storage_class="file"),
    )

    assert lab.refused(using(pod(), "d")) == {"n": TOO_MANY}
    assert lab.refused(using(pod(), "f")) == {}, "shares are not attached"


def test_pods_without_volumes_that_could_be_attached_are_not_looked_at() -> None:
    lab = lab_with()

    assert lab.pre_filter(pod()).status == SKIP
    others = with_volumes(pod(), Volume(name="token"), iscsi_disk("d"))
    assert lab.pre_filter(others).status == SKIP
    assert lab.pre_filter(with_volumes(pod(), gce_disk("d"))).status.ok


# --- what cannot be counted ---------------------------------------------------------------------


def test_a_claim_that_is_not_there() -> None:
    lab = lab_with(node("no-csi-node"))
    missing = unresolvable('looking up PVC default/x: persistentvolumeclaim "x" not found')

    assert lab.refused(using(pod(), "x")) == {"n": missing, "no-csi-node": missing}


def test_claims_of_pods_that_are_there_may_be_missing() -> None:
    lab = lab_with(using(pod("there", node="n"), "x"), limit=1)

    assert lab.refused(using(pod(), "a")) == {}


def test_a_claim_for_an_ephemeral_volume_must_be_the_pods_own() -> None:
    lab = lab_with(claim("p1-e", volume="a"), limit=1)
    waiting = with_volumes(pod("p1", uid="u1"), ephemeral_volume("e"))
    refusal = error("PVC default/p1-e was not created for pod default/p1 (pod is not owner)")
    assert lab.refused(waiting) == {"n": refusal}

    lab.put(claim("p1-e", volume="a", owner="u1"))
    assert lab.refused(waiting) == {}


def test_the_ephemeral_volume_of_a_pod_that_is_there_must_be_its_own_where_it_matters() -> None:
    lab = lab_with(
        node("no-limits"),
        csi_node("no-limits", {DRIVER: None}),
        with_volumes(pod("p1", node="n"), ephemeral_volume("e")),
        with_volumes(pod("p2", node="no-limits"), ephemeral_volume("e")),
        claim("p1-e"),
        claim("p2-e"),
    )
    refusal = error("PVC default/p1-e was not created for pod default/p1 (pod is not owner)")
    assert lab.refused(using(pod("new"), "a")) == {"n": refusal}
    with pytest.raises(AttemptError, match="was not created for pod"):
        lab.find(using(pod("new"), "a"))

    lab.put(claim("p1-e", owner="p1"))
    assert lab.refused(using(pod("new"), "a")) == {}


def test_a_disk_that_cannot_be_translated() -> None:
    lab = lab_with(node("no-csi-node"))
    refusal = error(
        "converting volume(aws) from inline to csi: failed to translate Kubernetes ID to EBS "
        "Volume ID Invalid format for AWS volume (aws://zone/disk)"
    )

    assert lab.refused(with_volumes(pod(), aws_disk("aws://zone/disk"))) == {"n": refusal}


# --- drivers that must be there -----------------------------------------------------------------


def test_drivers_may_ask_for_nodes_without_them_to_be_left_out() -> None:
    without = FeatureGates.of({"VolumeLimitScaling": False})
    missing = unschedulable(f"{DRIVER} CSI driver is not installed on the node")
    others: list[Node | StorageObject] = [
        node("no-csi-node"),
        node("other-driver"),
        csi_node("other-driver", {"other": 1}),
    ]

    lab = lab_with(*others, csi_driver(needed=True), limit=1)
    assert lab.refused(using(pod(), "a")) == {"no-csi-node": missing, "other-driver": missing}

    lab = lab_with(*others, csi_driver(needed=False), limit=1)
    assert lab.refused(using(pod(), "a")) == {}

    lab = lab_with(*others, csi_driver(needed=True), limit=1, gates=without)
    assert lab.refused(using(pod(), "a")) == {}, "not without the feature gate"


def test_a_driver_that_must_be_there_may_come_and_go() -> None:
    lab = lab_with(node("later"), csi_driver(needed=True))
    missing = unschedulable(f"{DRIVER} CSI driver is not installed on the node")
    assert lab.refused(using(pod(), "a")) == {"later": missing}

    lab.put(csi_node("later", {DRIVER: 1}))
    assert lab.refused(using(pod(), "a")) == {}

    lab.put(csi_node("later", {}))
    assert lab.refused(using(pod(), "a")) == {"later": missing}


def test_a_missing_driver_is_noticed_in_a_trial_too() -> None:
    lab = lab_with(node("bare"), csi_driver(needed=True))
    lab.cluster.nominator.nominate(lab.pending(pod("first", priority=10)), "bare")

    assert lab.feasible(using(pod("second"), "a")) == ["n"]


# --- pods that come and go ----------------------------------------------------------------------


def test_answers_follow_pods_claims_volumes_limits_and_nodes() -> None:
    lab = lab_with(limit=1)
    waiting = using(pod(), "a")
    assert lab.refused(waiting) == {}

    lab.cluster.put_pod(using(pod("there", node="n"), "b"))
    assert lab.refused(waiting) == {"n": TOO_MANY}

    lab.put(claim("b", version="2"))
    assert lab.refused(waiting) == {}, "the claim has lost its volume"

    lab.put(claim("b", volume="b", version="3"))
    assert lab.refused(waiting) == {"n": TOO_MANY}

    lab.put(persistent_volume("b", driver="other", version="2"))
    assert lab.refused(waiting) == {}, "the volume is another driver's"

    lab.put(persistent_volume("b", version="3"))
    lab.put(csi_node("n", {DRIVER: 2}))
    assert lab.refused(waiting) == {}

    lab.put(csi_node("n", {DRIVER: 1}))
    assert lab.refused(waiting) == {"n": TOO_MANY}

    lab.cluster.remove_pod("there")
    assert lab.refused(waiting) == {}

    lab.cluster.put_node(node("m"))
    lab.put(csi_node("m", {DRIVER: 0}))
    assert lab.refused(waiting) == {"m": TOO_MANY}


def test_a_class_that_comes_later_counts() -> None:
    lab = lab_with(
        claim("new", storage_class="fast"), using(pod("there", node="n"), "new"), limit=1
    )
    assert lab.refused(using(pod(), "a")) == {}

    lab.put(storage_class("fast"))
    assert lab.refused(using(pod(), "a")) == {"n": TOO_MANY}


def test_room_is_left_for_nominated_pods() -> None:
    lab = lab_with(limit=1)
    lab.cluster.nominator.nominate(lab.pending(using(pod("first", priority=10), "a")), "n")

    assert lab.message(using(pod("second"), "b")) == (
        "0/1 nodes are available: 1 node(s) exceed max volume count."
    )
    assert lab.feasible(using(pod("second"), "a")) == ["n"], "they share the volume"


def test_evicting_pods_makes_room_for_volumes() -> None:
    lab = StorageLab(
        PLUGIN,
        node("n"),
        csi_node("n", {DRIVER: 2}),
        *(each for name in "abc" for each in bound(name)),
        using(pod("with-a", node="n", priority=2), "a"),
        using(pod("with-b", node="n", priority=1), "b"),
        pod("bystander", node="n", priority=0),
        preemption=True,
    )

    assert lab.evicted_for(using(pod("p", priority=10), "c")) == [("p", "n", ["with-b"])]
    lab.cluster.validate()
    lab.plugin(PLUGIN).attached.validate()


# --- hints --------------------------------------------------------------------------------------


def test_what_is_registered() -> None:
    registered = StorageLab(PLUGIN).plugin(PLUGIN).events_to_register()

    assert [
        (each.event.resource, each.event.action, each.hint is not None) for each in registered
    ] == [
        (Resource.CSI_NODE, Action.ADD, False),
        (Resource.CSI_NODE, Action.UPDATE, True),
        (Resource.POD, Action.DELETE, True),
        (Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, True),
        (Resource.VOLUME_ATTACHMENT, Action.DELETE, True),
    ]


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        ({DRIVER: 1}, {DRIVER: 2}, True),
        ({DRIVER: 2}, {DRIVER: 1}, False),
        ({DRIVER: 1}, {DRIVER: 1}, False),
        ({}, {DRIVER: 1}, True),
        ({DRIVER: None}, {DRIVER: 1}, True),
        ({DRIVER: 1}, {DRIVER: None}, False),
        ({DRIVER: 1, "other": 1}, {DRIVER: 1, "other": 2}, True),
    ],
)
def test_limits_change(
    before: dict[str, int | None], after: dict[str, int | None], want: bool
) -> None:
    change = changed(csi_node("n", before), csi_node("n", after))
    assert helps(StorageLab(PLUGIN), PLUGIN, using(pod(), "a"), change) is want


@pytest.mark.parametrize(
    ("gone", "want"),
    [
        pytest.param(using(pod("o", node="n"), "x"), True, id="a claim"),
        pytest.param(using(pod("o", nominated="n"), "x"), True, id="nominated"),
        pytest.param(using(pod("o"), "x"), False, id="on no node"),
        pytest.param(with_volumes(pod("o", node="n"), ephemeral_volume("e")), True, id="ephemeral"),
        pytest.param(with_volumes(pod("o", node="n"), gce_disk("d")), True, id="a disk"),
        pytest.param(with_volumes(pod("o", node="n"), iscsi_disk("d")), False, id="another disk"),
        pytest.param(pod("o", node="n"), False, id="no volumes"),
    ],
)
def test_a_pod_goes(gone: Pod, want: bool) -> None:
    assert helps(StorageLab(PLUGIN), PLUGIN, using(pod(), "a"), deleted(gone)) is want


def test_a_claim_comes() -> None:
    lab = StorageLab(PLUGIN)
    waiting = using(with_volumes(pod("p"), ephemeral_volume("e")), "a")

    assert helps(lab, PLUGIN, waiting, came(claim("a")))
    assert helps(lab, PLUGIN, waiting, came(claim("p-e")))
    assert not helps(lab, PLUGIN, waiting, came(claim("b")))
    assert not helps(lab, PLUGIN, waiting, came(claim("a", namespace="other")))


def test_a_volume_is_detached() -> None:
    lab = StorageLab(PLUGIN)
    detached = went(attachment("x", node="n", volume="v", attacher=GCE_DRIVER))

    assert helps(lab, PLUGIN, using(pod(), "a"), detached)
    assert helps(lab, PLUGIN, with_volumes(pod(), gce_disk("d")), detached)
    assert not helps(lab, PLUGIN, with_volumes(pod(), aws_disk("vol-1")), detached)
    assert not helps(lab, PLUGIN, with_volumes(pod(), ephemeral_volume("e")), detached)


def test_a_csi_node_comes() -> None:
    assert helps(StorageLab(PLUGIN), PLUGIN, using(pod(), "a"), came(csi_node("n")))
