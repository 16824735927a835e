"""VolumeBinding: which pods may be scheduled, and which nodes their volumes allow."""

from __future__ import annotations

import pytest

from kubesched.api.core import (
    AWSElasticBlockStoreVolumeSource,
    GCEPersistentDiskVolumeSource,
    Pod,
    Volume,
)
from kubesched.api.meta import LabelSelector
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.cluster.node_rows import NodeRows
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import SKIP, Code
from tests.support.objects import pod
from tests.support.storage_objects import ephemeral_volume, using, with_volumes
from tests.support.volume_scheduling import (
    DRIVER,
    StorageObject,
    VolumeLab,
    capacity,
    claim,
    csi_node,
    driver,
    host,
    in_zones,
    on_hosts,
    storage_class,
    volume,
)

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
NO_SUCH_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

NO_PROVISIONER = "kubernetes.io/no-provisioner"


def lab_of(*objects: StorageObject) -> VolumeLab:
    """Three nodes, each in a zone of its own."""
    nodes = [host("n1", zone="a"), host("n2", zone="b"), host("n3", zone="c")]
    return VolumeLab(*nodes).have(*objects)


# --- PreFilter ----------------------------------------------------------------------------------


def test_pods_without_claims_are_none_of_its_business() -> None:
    lab = lab_of()
    scratch = with_volumes(pod(), Volume(name="scratch"))

    assert lab.pre_filter(pod()) == SKIP
    assert lab.pre_filter(scratch) == SKIP
    assert lab.feasible(scratch) == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        (
            [claim(phase="Lost", volume="gone", bound=True)],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "gone"',
        ),
        ([claim(deleting=True)], 'persistentvolumeclaim "c" is being deleted'),
        (
            [storage_class(mode="Immediate"), claim()],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        # What is to be bound to a certain volume is not for the scheduler to bind,
        ([storage_class(), claim(volume="v")], "pod has unbound immediate PersistentVolumeClaims"),
        # nor what has no class, or one that is not there.
        ([claim(storage_class=None)], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(storage_class="")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim()], "pod has unbound immediate PersistentVolumeClaims"),
    ],
)
def test_pods_whose_claims_are_not_ready_are_turned_away(
    found: list[StorageObject], message: str
) -> None:
    status = lab_of(*found).pre_filter(using(pod(), "c"))

    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == message


def test_the_first_claim_that_cannot_be_used_is_the_one_to_be_told_of() -> None:
    lab = lab_of(claim("a", deleting=True), claim("b", phase="Lost"))
    asking = using(pod(), "b", "a")
    assert lab.pre_filter(asking).message.startswith('persistentvolumeclaim "b" bound to')


def test_a_class_that_does_not_say_when_to_bind_is_an_error() -> None:
    status = lab_of(storage_class(mode=None), claim()).pre_filter(using(pod(), "c"))

    assert status.code is Code.ERROR
    assert status.message == 'VolumeBindingMode not set for StorageClass "wait"'


def test_the_class_in_the_annotation_goes_before_the_one_in_the_spec() -> None:
    lab = lab_of(
        storage_class("now", mode="Immediate"),
        storage_class(),
        claim("annotated", storage_class="now", annotated_class="wait"),
        claim("empty", annotated_class=""),
    )
    assert lab.pre_filter(using(pod(), "annotated")).ok
    assert not lab.pre_filter(using(pod(), "empty")).ok


class TestEphemeral:
    """Claims that are made for one pod."""

    asking = with_volumes(pod("p", uid="p-uid"), ephemeral_volume("scratch"))

    def test_its_claim_may_take_a_while_to_appear(self) -> None:
        status = lab_of().pre_filter(self.asking)
        assert status.message == (
            "waiting for ephemeral volume controller to create the "
            'persistentvolumeclaim "p-scratch"'
        )

    def test_it_must_belong_to_the_pod(self) -> None:
        lab = lab_of(storage_class(), claim("p-scratch", owner="another pod"))
        assert lab.pre_filter(self.asking).message == (
            "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
        )

    def test_then_it_is_a_claim_like_any_other(self) -> None:
        lab = lab_of(storage_class(zones=["b"]), claim("p-scratch", owner="p-uid"))
        assert lab.feasible(self.asking) == ["n2"]


# --- claims that have a volume ------------------------------------------------------------------


def bound_to(*names: str) -> list[PersistentVolumeClaim]:
    return [claim(f"c-{name}", volume=name, bound=True) for name in names]


def test_a_pod_goes_where_its_volumes_can_be_reached() -> None:
    lab = lab_of(
        *bound_to("here", "there", "anywhere"),
        volume("here", reach=[in_zones("a", "b")]),
        volume("there", reach=[on_hosts("n2", "n3")]),
        volume("anywhere"),
    )
    assert lab.feasible(using(pod(), "c-anywhere")) == ["n1", "n2", "n3"]
    assert lab.feasible(using(pod(), "c-here")) == ["n1", "n2"]
    assert lab.feasible(using(pod(), "c-here", "c-anywhere", "c-there")) == ["n2"]
    assert lab.rejections(using(pod(), "c-here", "c-there")) == {
        "n1": (NODE_CONFLICT,),
        "n3": (NODE_CONFLICT,),
    }


def test_a_volume_that_is_not_there_can_be_reached_from_nowhere() -> None:
    lab = lab_of(*bound_to("gone", "v"), volume(reach=[in_zones("a")]))

    assert lab.rejections(using(pod(), "c-gone")) == dict.fromkeys(
        ("n1", "n2", "n3"), (NO_SUCH_VOLUME,)
    )
    # Of a node's claims, the first that does not fit tells.
    assert lab.rejections(using(pod(), "c-v", "c-gone")) == {
        "n1": (NO_SUCH_VOLUME,),
        "n2": (NODE_CONFLICT,),
        "n3": (NODE_CONFLICT,),
    }


def test_rejections_cannot_be_resolved_by_preemption() -> None:
    lab = lab_of(*bound_to("v"), volume(reach=[]))
    state, info = CycleState(), lab.pending(using(pod(), "c-v"))
    nodes = NodeRows.all_of(lab.cluster.table)
    lab.plugin.pre_filter(state, info, nodes)

    status = lab.plugin.filter(state, info, nodes).status_of(0)

    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


class TestMigration:
    """In-tree volumes that a CSI driver serves know the driver's labels there."""

    disk = GCEPersistentDiskVolumeSource(pd_name="disk")

    def lab(self, *objects: StorageObject, migrated: str = "kubernetes.io/gce-pd") -> VolumeLab:
        nodes = [
            host("n1", zone="us-east-a", **{"topology.gke.io/zone": "us-east-b"}),
            host("n2", zone="us-east-b", **{"topology.gke.io/zone": "us-east-a"}),
        ]
        lab = VolumeLab(*nodes).have(*bound_to("v"), *objects)
        return lab.have(csi_node("n1", migrated=migrated), csi_node("n2"))

    def test_where_it_is_migrated_the_drivers_label_counts(self) -> None:
        in_a = volume(reach=[in_zones("us-east-a")], gce_persistent_disk=self.disk)
        assert self.lab(in_a).feasible(using(pod(), "c-v")) == []
        assert self.lab(in_a, migrated="").feasible(using(pod(), "c-v")) == ["n1"]
        in_b = volume(reach=[in_zones("us-east-b")], gce_persistent_disk=self.disk)
        assert self.lab(in_b).feasible(using(pod(), "c-v")) == ["n1", "n2"]

    def test_what_is_migrated_may_change(self) -> None:
        in_b = volume(reach=[in_zones("us-east-b")], gce_persistent_disk=self.disk)
        lab = self.lab(in_b, migrated="kubernetes.io/aws-ebs,kubernetes.io/cinder")
        assert lab.feasible(using(pod(), "c-v")) == ["n2"]
        lab.have(csi_node("n1", migrated="kubernetes.io/aws-ebs,kubernetes.io/gce-pd"))
        assert lab.feasible(using(pod(), "c-v")) == ["n1", "n2"]

    def test_a_volume_that_cannot_be_migrated_ends_the_attempt(self) -> None:
        broken = AWSElasticBlockStoreVolumeSource(volume_id="aws://zone/disk-1")
        lab = self.lab(volume(aws_elastic_block_store=broken), migrated="kubernetes.io/aws-ebs")

        with pytest.raises(AttemptError, match=r"could not translate pv: .*\(aws://zone/disk-1\)"):
            lab.decide(using(pod(), "c-v"))
        assert lab.failures == ["predicate"]


# --- claims that wait for their pod: existing volumes -------------------------------------------


def test_a_pod_goes_where_there_is_a_volume_for_its_claim() -> None:
    lab = lab_of(
        storage_class(provisioner=NO_PROVISIONER),
        claim(size="2Gi"),
        volume("small", size="1Gi", reach=[on_hosts("n1")]),
        volume("large", size="3Gi", reach=[on_hosts("n2")]),
        volume("other", size="3Gi", reach=[on_hosts("n3")], storage_class="other"),
    )
    assert lab.feasible(using(pod(), "c")) == ["n2"]
    assert lab.rejections(using(pod(), "c")) == {"n1": (BIND_CONFLICT,), "n3": (BIND_CONFLICT,)}


def test_small_claims_choose_first_so_that_large_ones_find_what_they_need() -> None:
    lab = lab_of(
        storage_class(provisioner=NO_PROVISIONER),
        claim("large", size="3Gi"),
        claim("small", size="1Gi"),
        volume("v1", size="1Gi", reach=[on_hosts("n1")]),
        volume("v3", size="3Gi", reach=[on_hosts("n1")]),
        volume("w3", size="3Gi", reach=[on_hosts("n2")]),
    )
    assert lab.feasible(using(pod(), "large", "small")) == ["n1"]


def test_a_volume_that_is_kept_for_the_claim_is_the_only_one() -> None:
    lab = lab_of(
        storage_class(provisioner=NO_PROVISIONER),
        claim(),
        volume("kept", size="5Gi", reach=[on_hosts("n2")], kept_for="c", phase="Pending"),
        volume("free", reach=[on_hosts("n1", "n2", "n3")]),
    )
    assert lab.feasible(using(pod(), "c")) == ["n2"]


def test_a_claim_that_makes_no_sense_ends_the_attempt() -> None:
    selector = LabelSelector(match_labels={"not a key": "x"})
    lab = lab_of(storage_class(), claim(selector=selector))

    with pytest.raises(AttemptError, match="error creating internal label selector for claim"):
        lab.decide(using(pod(), "c"))


def test_several_reasons_are_told_together() -> None:
    lab = lab_of(
        storage_class(provisioner=NO_PROVISIONER),
        storage_class("made"),
        driver(),
        claim("waits"),
        claim("made", storage_class="made"),
        *bound_to("v", "gone"),
        volume(reach=[on_hosts("n1")]),
    )
    assert lab.rejections(using(pod(), "c-v", "waits"))["n2"] == (NODE_CONFLICT, BIND_CONFLICT)
    assert lab.rejections(using(pod(), "c-v", "made"))["n2"] == (NODE_CONFLICT, NOT_ENOUGH_SPACE)
    assert lab.rejections(using(pod(), "c-gone", "waits"))["n2"] == (BIND_CONFLICT, NO_SUCH_VOLUME)


# --- claims that wait for their pod: volumes to be made -----------------------------------------


def test_a_volume_can_be_made_where_the_class_allows() -> None:
    lab = lab_of(storage_class(zones=["a", "c"]), claim())

    assert lab.feasible(using(pod(), "c")) == ["n1", "n3"]
    assert lab.rejections(using(pod(), "c")) == {"n2": (BIND_CONFLICT,)}


@pytest.mark.parametrize("provisioner", ["", NO_PROVISIONER])
def test_a_class_without_a_provisioner_makes_none(provisioner: str) -> None:
    lab = lab_of(storage_class(provisioner=provisioner), claim())
    assert lab.rejections(using(pod(), "c")).keys() == {"n1", "n2", "n3"}


def test_once_a_node_is_selected_it_stays_the_only_one() -> None:
    lab = lab_of(storage_class(), claim(selected="n2"), volume(reach=[on_hosts("n1")]))

    assert lab.feasible(using(pod(), "c")) == ["n2"]
    assert lab.rejections(using(pod(), "c")) == {"n1": (BIND_CONFLICT,), "n3": (BIND_CONFLICT,)}


def test_a_selected_node_that_is_gone_leaves_none() -> None:
    lab = lab_of(storage_class(), claim(selected="gone"))
    assert lab.feasible(using(pod(), "c")) == []


def test_claims_with_different_selected_nodes_leave_none() -> None:
    lab = lab_of(storage_class(), claim("a", selected="n1"), claim("b", selected="n2"))
    assert lab.feasible(using(pod(), "a", "b")) == []


class TestSpace:
    """Drivers that say how much space is left."""

    def test_space_is_needed_only_if_the_driver_says_so(self) -> None:
        asking = using(pod(), "c")
        lab = lab_of(storage_class(), claim())
        assert lab.feasible(asking) == ["n1", "n2", "n3"]
        lab.have(driver(storage_capacity=None))
        assert lab.feasible(asking) == ["n1", "n2", "n3"]
        lab.have(driver(storage_capacity=True))
        assert lab.rejections(asking) == dict.fromkeys(("n1", "n2", "n3"), (NOT_ENOUGH_SPACE,))

    @pytest.mark.parametrize(
        ("space", "feasible"),
        [
            ([capacity(size="5Gi")], ["n1", "n2", "n3"]),
            ([capacity(size="5119Mi")], []),
            ([capacity(size="1e30")], ["n1", "n2", "n3"]),
            ([capacity(size="5Gi", zone="a")], ["n1"]),
            ([capacity(size="5Gi", zone="a"), capacity("b", size="5Gi", zone="b")], ["n1", "n2"]),
            ([capacity(size="1Gi", zone="a"), capacity("b", size="5Gi", zone="a")], ["n1"]),
            ([capacity(size="50Gi", largest="1Gi")], []),
            ([capacity(size="1Gi", largest="50Gi")], ["n1", "n2", "n3"]),
            ([capacity(size=None)], []),
            ([capacity(size="50Gi", nowhere=True)], []),
            ([capacity(size="50Gi", storage_class="other")], []),
        ],
    )
    def test_enough_space(self, space: list[StorageObject], feasible: list[str]) -> None:
        lab = lab_of(storage_class(), driver(), claim(size="5Gi"), *space)
        assert lab.feasible(using(pod(), "c")) == feasible

    def test_a_claim_to_more_than_can_be_counted_is_too_large(self) -> None:
        lab = lab_of(storage_class(), driver(), claim(size="1e30"), capacity(size="1Ei"))
        assert lab.feasible(using(pod(), "c")) == []

    def test_a_claim_without_a_size_needs_none(self) -> None:
        lab = lab_of(storage_class(), driver(), claim(size=None))
        assert lab.feasible(using(pod(), "c")) == ["n1", "n2", "n3"]

    def test_new_reports_and_new_nodes_count_at_once(self) -> None:
        lab = lab_of(storage_class(), driver(), claim(size="5Gi"), capacity(size="1Gi", zone="a"))
        asking = using(pod(), "c")
        assert lab.feasible(asking) == []
        lab.have(capacity(size="5Gi", zone="a"))
        assert lab.feasible(asking) == ["n1"]
        lab.cluster.put_node(host("n4", zone="a"))
        assert lab.feasible(asking) == ["n1", "n4"]

    def test_where_a_volume_is_found_no_space_is_needed(self) -> None:
        lab = lab_of(storage_class(), driver(), claim(), volume(reach=[on_hosts("n2")]))
        assert lab.feasible(using(pod(), "c")) == ["n2"]

    def test_topology_is_told_before_space(self) -> None:
        lab = lab_of(storage_class(zones=["a"]), driver(), claim())
        assert lab.rejections(using(pod(), "c")) == {
            "n1": (NOT_ENOUGH_SPACE,),
            "n2": (BIND_CONFLICT,),
            "n3": (BIND_CONFLICT,),
        }


def test_what_others_ask_later_is_answered_for_their_rows_alone() -> None:
    lab = lab_of(storage_class(zones=["b"]), claim())
    state, info = CycleState(), lab.pending(using(pod(), "c"))
    table = lab.cluster.table
    lab.plugin.pre_filter(state, info, NodeRows.all_of(table))
    rows = NodeRows.all_of(table).row_numbers()[::-1][:2]  # n3, n2

    verdict = lab.plugin.filter(state, info, NodeRows(table, rows))

    assert [verdict.status_of(element) is None for element in range(2)] == [False, True]


def test_without_its_prefilter_the_plugin_says_so() -> None:
    lab = lab_of()
    info, nodes = lab.pending(pod()), NodeRows.all_of(lab.cluster.table)

    status = lab.plugin.filter(CycleState(), info, nodes).status_of(0)

    assert status is not None
    assert (status.code, status.message) == (Code.ERROR, "not found")
    assert lab.plugin.reserve(CycleState(), info, "n1").code is Code.ERROR


def test_the_same_claim_twice_needs_two_volumes() -> None:
    """A quirk of kube-scheduler's: it matches volumes of pods, not claims."""
    asking: Pod = using(pod(), "c", "c")
    lab = lab_of(
        storage_class(provisioner=NO_PROVISIONER),
        claim(),
        volume("a", reach=[on_hosts("n1")]),
        volume("b", reach=[on_hosts("n2")]),
        volume("c", reach=[on_hosts("n2")]),
    )
    assert lab.feasible(asking) == ["n2"]


def test_it_serves_claims_of_any_driver() -> None:
    lab = lab_of(storage_class(provisioner="kubernetes.io/aws-ebs"), claim(), driver(DRIVER))
    assert lab.feasible(using(pod(), "c")) == ["n1", "n2", "n3"]
