"""VolumeBinding after the decision: assume, write, wait, and give back what comes to nothing."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from kubesched.api.storage import (
    ANNOTATION_BOUND_BY_CONTROLLER,
    ANNOTATION_SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.args import VolumeBindingArgs
from kubesched.errors import ConflictError, PluginError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.null_writers import NullVolumeWriter
from kubesched.framework.status import SKIP, SUCCESS, Code, Status
from tests.support.objects import pod
from tests.support.storage_objects import using
from tests.support.volume_scheduling import (
    StorageObject,
    VolumeLab,
    claim,
    host,
    in_zones,
    on_hosts,
    storage_class,
    volume,
)

NO_PROVISIONER = "kubernetes.io/no-provisioner"
CONFLICT = ConflictError("the object has been modified", code=409, reason="Conflict")


def lab_of(*objects: StorageObject, args: VolumeBindingArgs | None = None) -> VolumeLab:
    nodes = [host("n1", zone="a"), host("n2", zone="b")]
    return VolumeLab(*nodes, args=args).have(*objects)


def local_lab(*more: StorageObject) -> VolumeLab:
    """A claim that waits, and a volume for it on n1."""
    return lab_of(
        storage_class(provisioner=NO_PROVISIONER), claim(), volume(reach=[on_hosts("n1")]), *more
    )


def made_lab(*more: StorageObject, args: VolumeBindingArgs | None = None) -> VolumeLab:
    """A claim for which a volume is to be made."""
    return lab_of(storage_class(), claim(), *more, args=args)


def pre_bind(lab: VolumeLab, state: CycleState, info: PodInfo, node_name: str = "n1") -> Status:
    return asyncio.run(lab.plugin.pre_bind(state, info, node_name))


ASKING = using(pod(), "c")


# --- Reserve and Unreserve ----------------------------------------------------------------------


def test_a_volume_counts_as_bound_at_once() -> None:
    lab = local_lab(claim("c2"))
    lab.reserve(ASKING, "n1")

    shown, seen = lab.storage.volumes.get("v"), lab.storage.volumes.observed("v")
    assert shown is not None
    assert shown.spec.claim_ref is not None
    assert shown.spec.claim_ref.uid == "c"
    assert shown.metadata.annotations == {ANNOTATION_BOUND_BY_CONTROLLER: "yes"}
    assert seen == volume(reach=[on_hosts("n1")])
    assert lab.feasible(using(pod("p2"), "c2")) == [], "it is no other claim's any more"
    lab.storage.validate()


def test_a_node_counts_as_selected_at_once() -> None:
    lab = made_lab()
    assert lab.feasible(using(pod("p2"), "c")) == ["n1", "n2"]
    lab.reserve(ASKING, "n2")

    shown = lab.storage.claims.get("default", "c")
    assert shown is not None
    assert shown.metadata.annotations == {ANNOTATION_SELECTED_NODE: "n2"}
    assert lab.feasible(using(pod("p2"), "c")) == ["n2"], "whoever shares the claim must go there"


def test_giving_back_leaves_no_trace() -> None:
    lab = lab_of(
        storage_class("local", provisioner=NO_PROVISIONER),
        storage_class(),
        claim("found", storage_class="local"),
        claim("made"),
        volume(storage_class="local"),
    )
    asking = using(pod(), "found", "made")
    state, info = lab.reserve(asking, "n1")
    assert lab.storage.volumes.is_assumed("v")
    assert lab.storage.claims.is_assumed(("default", "made"))

    lab.plugin.unreserve(state, info, "n1")
    lab.plugin.unreserve(state, info, "n1")

    assert lab.storage.volumes.get("v") == volume(storage_class="local")
    assert lab.storage.claims.get("default", "made") == claim("made")


def test_giving_back_leaves_alone_what_another_pod_has_assumed() -> None:
    lab = local_lab()
    lab.reserve(ASKING, "n1")
    state, info = lab.reserve(using(pod("p2"), "c"), "n1")

    lab.plugin.unreserve(state, info, "n1")

    assert lab.storage.volumes.is_assumed("v")


def test_a_volume_that_changed_since_the_decision_cannot_be_assumed() -> None:
    lab = lab_of(
        storage_class("local", provisioner=NO_PROVISIONER),
        claim("a", storage_class="local"),
        claim("b", size="2Gi", storage_class="local"),
        volume("small", storage_class="local"),
        volume("large", size="2Gi", storage_class="local"),
    )
    state, info = lab.decide(using(pod(), "a", "b"))
    lab.have(volume("large", size="2Gi", storage_class="local", version="2"))

    status = lab.plugin.reserve(state, info, "n1")

    assert status.code is Code.ERROR
    assert status.message == '"large" is out of sync (stored: 2, assume: 1)'
    assert not lab.storage.volumes.is_assumed("small"), "nothing stays assumed"
    assert lab.failures == ["assume"]


def test_a_volume_that_went_since_the_decision_cannot_be_assumed() -> None:
    lab = local_lab()
    state, info = lab.decide(ASKING)
    lab.storage.volumes.remove(volume())

    assert lab.plugin.reserve(state, info, "n1").message == 'persistentvolumes "v" not found'


def test_a_claim_that_went_since_the_decision_cannot_be_assumed() -> None:
    lab = made_lab()
    state, info = lab.decide(ASKING)
    lab.storage.claims.remove(claim())

    status = lab.plugin.reserve(state, info, "n1")

    assert status.message == 'persistentvolumeclaims "default/c" not found'


def test_nodes_may_change_between_the_decision_and_the_reservation() -> None:
    """Extenders are asked in between, and that takes time."""
    lab = local_lab()
    state, info = lab.decide(ASKING)
    lab.cluster.put_node(host("n1", zone="moved"))
    assert lab.plugin.reserve(state, info, "n1").ok

    lab.plugin.unreserve(state, info, "n1")
    lab.cluster.remove_node("n1")
    lab.cluster.put_node(host("n3"))  # takes the row

    assert lab.plugin.reserve(state, info, "n3").code is Code.ERROR
    assert not lab.storage.volumes.is_assumed("v")


# --- what is bound already ----------------------------------------------------------------------


def test_pods_with_nothing_to_bind_are_not_held_up() -> None:
    lab = lab_of(claim(volume="v", bound=True), volume())
    state, info = lab.reserve(using(pod(), "c"), "n1")

    assert lab.plugin.pre_bind_pre_flight(state, info, "n1") == SKIP
    assert pre_bind(lab, state, info) == SUCCESS
    lab.plugin.unreserve(state, info, "n1")


def test_claims_that_were_bound_since_the_decision_are_not_bound_again() -> None:
    lab = made_lab()
    state, info = lab.decide(ASKING)
    lab.have(claim(volume="v", bound=True, version="2"), volume())

    assert lab.plugin.reserve(state, info, "n1").ok
    assert lab.plugin.pre_bind_pre_flight(state, info, "n1") == SKIP


# --- PreBind: existing volumes ------------------------------------------------------------------


def written(lab: VolumeLab, number: int = 0) -> PersistentVolume | PersistentVolumeClaim:
    return lab.writer.written[number]


def bound_volume(version: str = "101") -> PersistentVolume:
    return volume(
        reach=[on_hosts("n1")], kept_for="c", kept_for_uid="c", phase="Bound", version=version
    )


BOUND_CLAIM = claim(volume="v", bound=True, version="102")


def test_a_volume_is_written_and_waited_for() -> None:
    lab = local_lab()
    state, info = lab.reserve(ASKING, "n1")
    assert lab.plugin.pre_bind_pre_flight(state, info, "n1").ok
    lab.writer.then(lambda: lab.have(bound_volume()), lambda: lab.have(BOUND_CLAIM))

    assert pre_bind(lab, state, info) == SUCCESS

    assert len(lab.writer.written) == 1
    sent = written(lab)
    assert isinstance(sent, PersistentVolume)
    assert sent.spec.claim_ref is not None
    assert sent.spec.claim_ref.name == "c"
    assert sent.metadata.resource_version == "1", "the version that the decision was made from"
    assert lab.writer.waited_for == {("default", "c")}
    assert not lab.storage.volumes.is_assumed("v")
    assert lab.failures == []


def test_a_volume_that_is_the_claims_already_is_not_written_again() -> None:
    lab = lab_of(storage_class(provisioner=NO_PROVISIONER), claim(), bound_volume("1"))
    state, info = lab.reserve(ASKING, "n1")
    lab.writer.then(lambda: lab.have(BOUND_CLAIM))

    assert pre_bind(lab, state, info) == SUCCESS
    assert lab.writer.written == []


def test_what_the_watch_has_not_brought_yet_is_not_believed() -> None:
    """The claim looks bound, but to a volume as it was before we wrote."""
    lab = local_lab()
    state, info = lab.reserve(ASKING, "n1")
    lab.writer.then(lambda: lab.have(BOUND_CLAIM))

    assert pre_bind(lab, state, info).message == "binding volumes: context deadline exceeded"


@pytest.mark.parametrize(
    ("brought", "message"),
    [
        (
            volume(reach=[on_hosts("n1")], version="103"),
            'binding volumes: ClaimRef got reset for pv "v"',
        ),
        (
            volume(reach=[on_hosts("n1")], kept_for="c", version="103"),
            'binding volumes: ClaimRef got reset for pv "v"',
        ),
        (
            replace(bound_volume(), spec=volume(reach=[on_hosts("n2")]).spec),
            (
                'binding volumes: pv "v" node affinity doesn\'t match node "n1": '
                "no matching NodeSelectorTerms"
            ),
        ),
    ],
)
def test_a_volume_that_somebody_else_changes_ends_the_wait(
    brought: PersistentVolume, message: str
) -> None:
    lab = local_lab()
    state, info = lab.reserve(ASKING, "n1")
    lab.writer.then(lambda: lab.have(brought))

    status = pre_bind(lab, state, info)

    assert (status.code, status.message) == (Code.ERROR, message)
    assert lab.failures == ["bind"]


def test_a_volume_that_goes_ends_the_wait() -> None:
    lab = local_lab()
    state, info = lab.reserve(ASKING, "n1")
    lab.writer.then(lambda: lab.storage.volumes.remove(volume()))

    assert pre_bind(lab, state, info).message == (
        'binding volumes: failed to check binding: persistentvolumes "v" not found'
    )


def test_a_claim_that_goes_ends_the_wait() -> None:
    lab = local_lab()
    state, info = lab.reserve(ASKING, "n1")
    lab.writer.then(lambda: lab.storage.claims.remove(claim()))

    assert pre_bind(lab, state, info).message == (
        'binding volumes: failed to check binding: persistentvolumeclaims "default/c" not found'
    )


# --- PreBind: volumes to be made ----------------------------------------------------------------


def selected(version: str = "101", **changes: object) -> PersistentVolumeClaim:
    return claim(selected="n1", version=version, **changes)  # type: ignore[arg-type]


def test_a_node_is_selected_and_the_volume_waited_for() -> None:
    lab = made_lab(args=VolumeBindingArgs(bind_timeout_seconds=7))
    state, info = lab.reserve(ASKING, "n1")
    lab.writer.then(
        lambda: lab.have(selected()),
        lambda: lab.have(selected("102", volume="new")),
        # The claim came before its volume: that will come, too.
        lambda: lab.have(selected("103", volume="new", bound=True)),
        lambda: lab.have(volume("new", reach=[in_zones("a")], kept_for="c", phase="Bound")),
    )

    assert pre_bind(lab, state, info) == SUCCESS

    sent = written(lab)
    assert isinstance(sent, PersistentVolumeClaim)
    assert sent.metadata.annotations == {ANNOTATION_SELECTED_NODE: "n1"}
    assert lab.writer.timeout_s == 7
    assert not lab.storage.claims.is_assumed(("default", "c"))


def test_a_node_that_was_selected_before_is_not_written_again() -> None:
    lab = made_lab(selected("5"))
    state, info = lab.reserve(ASKING, "n1")
    lab.writer.then(lambda: lab.have(selected("6", volume="v", bound=True), volume()))

    assert pre_bind(lab, state, info) == SUCCESS
    assert lab.writer.written == []


@pytest.mark.parametrize(
    ("brought", "message"),
    [
        (claim(version="102"), 'selectedNode annotation reset for PVC "c"'),
        (
            claim(version="102", annotated_class="wait"),
            'provisioning failed for PVC "c"',
        ),
        (claim(version="102", selected="n2"), 'provisioning failed for PVC "c"'),
    ],
)
def test_a_provisioner_gives_up_by_taking_the_node_away(
    brought: PersistentVolumeClaim, message: str
) -> None:
    lab = made_lab()
    state, info = lab.reserve(ASKING, "n1")
    lab.writer.then(lambda: lab.have(brought))

    assert pre_bind(lab, state, info).message == f"binding volumes: {message}"


def test_the_claim_as_it_was_before_we_wrote_says_nothing() -> None:
    lab = made_lab()
    state, info = lab.reserve(ASKING, "n1")
    lab.writer.then(lambda: lab.have(claim(version="50")))

    assert pre_bind(lab, state, info).message == "binding volumes: context deadline exceeded"


def test_a_volume_made_in_the_wrong_place_is_an_error() -> None:
    lab = made_lab()
    state, info = lab.reserve(ASKING, "n1")
    far = volume("far", reach=[in_zones("b")], kept_for="c")
    lab.writer.then(lambda: lab.have(far, selected("102", volume="far")))

    assert pre_bind(lab, state, info).message.startswith(
        'binding volumes: pv "far" node affinity doesn\'t match node "n1": '
    )


# --- PreBind: the world moves on ----------------------------------------------------------------


def test_a_pod_that_goes_ends_the_wait() -> None:
    lab = made_lab()
    state, info = lab.reserve(ASKING, "n1")
    lab.writer.then(lambda: lab.cluster.forget(info.uid))

    assert pre_bind(lab, state, info).message == (
        'binding volumes: pod does not exist any more: pod "p1" not found'
    )


def test_a_node_that_goes_ends_the_wait() -> None:
    lab = made_lab()
    state, info = lab.reserve(ASKING, "n1")
    lab.writer.then(lambda: lab.cluster.remove_node("n1"))

    assert pre_bind(lab, state, info).message == (
        'binding volumes: failed to get node "n1": node "n1" not found'
    )


def test_a_write_that_fails_is_told_as_it_is_and_nothing_stays_assumed() -> None:
    lab = made_lab()
    state, info = lab.reserve(ASKING, "n1")
    lab.writer.failure = CONFLICT

    status = pre_bind(lab, state, info)
    lab.plugin.unreserve(state, info, "n1")

    assert (status.code, status.message) == (Code.ERROR, "the object has been modified")
    assert not lab.storage.claims.is_assumed(("default", "c"))
    assert lab.failures == ["bind"]


def test_what_was_written_before_another_write_failed_still_shows() -> None:
    """The watch is about to bring it: nobody may take the volume until then."""
    lab = lab_of(
        storage_class("local", provisioner=NO_PROVISIONER),
        storage_class(),
        claim("found", storage_class="local"),
        claim("made"),
        volume(storage_class="local"),
    )
    state, info = lab.reserve(using(pod(), "found", "made"), "n1")
    lab.writer.failure, lab.writer.writes_before_failure = CONFLICT, 1

    status = pre_bind(lab, state, info)
    lab.plugin.unreserve(state, info, "n1")

    assert not status.ok
    assert lab.storage.volumes.is_assumed("v")
    assert not lab.storage.claims.is_assumed(("default", "made"))
    lab.have(volume(storage_class="local", kept_for="found", kept_for_uid="found", version="101"))
    assert not lab.storage.volumes.is_assumed("v"), "the watch has brought it"


def test_a_framework_without_a_writer_says_what_is_missing() -> None:
    with pytest.raises(PluginError, match="pass volume_writer to build_framework"):
        asyncio.run(NullVolumeWriter().write_volume(volume()))
    with pytest.raises(PluginError, match="claim default/c cannot be bound"):
        asyncio.run(NullVolumeWriter().write_claim(claim()))
    with pytest.raises(PluginError, match="1 claims cannot be bound"):
        asyncio.run(NullVolumeWriter().poll(lambda: True, claims=[("d", "c")], timeout_s=1))
