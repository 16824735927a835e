"""Pods with volumes, against a real API server: claims are bound before their pods are.

The volume controller and a provisioner are pretended, and fail as the tests ask them to.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from kubesched.api.storage import (
    ANNOTATION_BIND_COMPLETED,
    ANNOTATION_BOUND_BY_CONTROLLER,
    ANNOTATION_SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.client import ApiClient, kubeconfig
from kubesched.cluster.storage import Storage
from kubesched.errors import ConflictError, NotFoundError
from kubesched.plugins.volume_binder import with_selected_node
from kubesched.plugins.volume_matching import bound_to_claim
from kubesched.scheduler.volume_writes import VolumeWrites
from tests.support.waiting import until

from .control_plane import MERGE_PATCH, ControlPlane, JsonObject, PlaneApiError
from .pretend_provisioner import PretendProvisioner, Verdict
from .scheduler_process import (
    DEFAULT_SCHEDULER,
    configuration,
    delete_pod,
    events_of,
    node_of,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)
from .volume_objects import (
    claim,
    claims_path,
    create_class,
    create_volumes,
    local_volume,
    pod_with,
    zoned,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")


T = TypeVar("T")


# --- objects ------------------------------------------------------------------------------------


def volume_config(plane: ControlPlane, *, bind_timeout_s: int = 60) -> JsonObject:
    """The default profile, every plugin that there is included; quick to try again."""
    profile = {
        "schedulerName": DEFAULT_SCHEDULER,
        "pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": bind_timeout_s}}],
    }
    settings = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
    return configuration(plane.scheduler_kubeconfig, profile, **settings)


def volume_named(plane: ControlPlane, name: str) -> JsonObject:
    return plane.request("GET", f"/api/v1/persistentvolumes/{name}")


def claim_named(plane: ControlPlane, namespace: str, name: str) -> JsonObject:
    return plane.request("GET", claims_path(namespace, name))


def annotations_of(obj: JsonObject) -> dict[str, str]:
    return dict(obj["metadata"].get("annotations") or {})


def selected_node(plane: ControlPlane, namespace: str, name: str) -> str | None:
    return annotations_of(claim_named(plane, namespace, name)).get(ANNOTATION_SELECTED_NODE)


def wait_for_failure(plane: ControlPlane, namespace: str, name: str, text: str) -> None:
    """Wait until a pod's owner is told of a failure in some words."""

    def told() -> bool | None:
        notes = [str(each.get("note", "")) for each in events_of(plane, namespace, name)]
        return any(text in note for note in notes) or None

    until(told, seconds=30)


# --- it works -----------------------------------------------------------------------------------


def test_volumes_are_made_for_the_node_and_the_pod_follows_them(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Twenty pods with a claim each; zone b is the only one that the class allows."""
    plane = control_plane
    nodes = [zoned(f"n{i}", "ab"[i % 2]) for i in range(6)]
    plane.create_many("/api/v1/nodes", nodes)
    create_class(plane, "made", zones=("b",))
    count = 20
    plane.create_many(claims_path(namespace), [claim(f"c{i}", "made") for i in range(count)])

    with PretendProvisioner(plane).running(), run_scheduler(plane, volume_config(plane)):
        pods = [pod_with(f"p{i}", f"c{i}") for i in range(count)]
        started = time.monotonic()
        plane.create_many(pods_path(namespace), pods)
        placed = wait_until_bound(plane, namespace)
        took_s = time.monotonic() - started

    for number in range(count):
        where = placed[f"p{number}"]
        assert where in {"n1", "n3", "n5"}
        found = claim_named(plane, namespace, f"c{number}")
        annotations = annotations_of(found)
        assert annotations[ANNOTATION_SELECTED_NODE] == where
        assert ANNOTATION_BIND_COMPLETED in annotations
        made = volume_named(plane, found["spec"]["volumeName"])
        assert made["spec"]["claimRef"]["name"] == f"c{number}"
    assert took_s < 15, "changes of claims wake who waits for them"


def test_existing_volumes_are_taken_smallest_first(
    control_plane: ControlPlane, namespace: str
) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [zoned("n1", "a"), zoned("n2", "a"), zoned("n3", "a")])
    create_class(plane, "local", provisioner="kubernetes.io/no-provisioner")
    plane.create_many(
        claims_path(namespace), [claim("small", "local"), claim("big", "local", "5Gi")]
    )

    with PretendProvisioner(plane).running(), run_scheduler(plane, volume_config(plane)):
        create_volumes(
            plane,
            local_volume("tiny", "local", "n1", "512Mi"),
            local_volume("fits", "local", "n2", "1Gi"),
            local_volume("large", "local", "n2", "8Gi"),
        )
        plane.request("POST", pods_path(namespace), pod_with("p", "big", "small"))
        assert wait_until_bound(plane, namespace, "p") == {"p": "n2"}
        plane.request("POST", claims_path(namespace), claim("another", "local"))
        plane.request("POST", pods_path(namespace), pod_with("q", "another"))
        refused = wait_until_refused(plane, namespace, "q")

    assert refused.startswith(
        "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind."
    )
    for name, wanted in (("small", "fits"), ("big", "large")):
        assert claim_named(plane, namespace, name)["spec"]["volumeName"] == wanted
        taken = volume_named(plane, wanted)
        reference = taken["spec"]["claimRef"]
        assert (reference["namespace"], reference["name"]) == (namespace, name)
        assert reference["uid"] == claim_named(plane, namespace, name)["metadata"]["uid"]
        assert annotations_of(taken)[ANNOTATION_BOUND_BY_CONTROLLER] == "yes"
        assert taken["spec"]["local"] == {"path": "/mnt"}, "what we do not read stays as it is"


def test_a_pod_goes_where_its_bound_volume_is(control_plane: ControlPlane, namespace: str) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [zoned("n1", "a"), zoned("n2", "b")])
    create_class(plane, "local", provisioner="kubernetes.io/no-provisioner")
    plane.request("POST", claims_path(namespace), claim("c", "local"))

    with PretendProvisioner(plane).running(), run_scheduler(plane, volume_config(plane)):
        create_volumes(plane, local_volume("v", "local", "n2"))
        for name in ("first", "second"):
            plane.request("POST", pods_path(namespace), pod_with(name, "c"))
            assert wait_until_bound(plane, namespace, name) == {name: "n2"}


def test_pods_wait_for_their_claims_and_for_volumes(
    control_plane: ControlPlane, namespace: str
) -> None:
    plane = control_plane
    plane.request("POST", "/api/v1/nodes", zoned("n1", "a"))
    create_class(plane, "local", provisioner="kubernetes.io/no-provisioner")

    with PretendProvisioner(plane).running(), run_scheduler(plane, volume_config(plane)):
        plane.request("POST", pods_path(namespace), pod_with("p", "c"))
        refused = wait_until_refused(plane, namespace, "p")
        assert refused.startswith('0/1 nodes are available: persistentvolumeclaim "c" not found')
        plane.request("POST", claims_path(namespace), claim("c", "local"))

        def looks_for_a_volume() -> bool | None:
            return "didn't find available" in wait_until_refused(plane, namespace, "p") or None

        until(looks_for_a_volume)
        create_volumes(plane, local_volume("v", "local", "n1"))
        assert wait_until_bound(plane, namespace, "p") == {"p": "n1"}


# --- it fails, and goes on ----------------------------------------------------------------------


def test_a_provisioner_that_gives_up_on_a_node_gets_another(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Zone a has no room for volumes, which only the provisioner knows."""
    plane = control_plane
    plane.create_many("/api/v1/nodes", [zoned("n1", "a"), zoned("n2", "b", cpu="2")])
    create_class(plane, "made")
    plane.request("POST", claims_path(namespace), claim("c", "made"))

    def decide(_: PersistentVolumeClaim, node_name: str) -> Verdict:
        return Verdict.REFUSE if node_name == "n1" else Verdict.MAKE

    provisioner = PretendProvisioner(plane, decide)
    with provisioner.running(), run_scheduler(plane, volume_config(plane)):
        # n1 has more room, so it is the first choice, until it is cordoned.
        asking = pod_with("p", "c", requests={"cpu": "1"})
        plane.request("POST", pods_path(namespace), asking)
        wait_for_failure(plane, namespace, "p", "selectedNode annotation reset")
        patch = {"spec": {"unschedulable": True}}
        plane.request("PATCH", "/api/v1/nodes/n1", patch, content_type=MERGE_PATCH)
        assert wait_until_bound(plane, namespace, "p", seconds=30) == {"p": "n2"}

    assert provisioner.verdicts["c", Verdict.REFUSE] >= 1
    assert selected_node(plane, namespace, "c") == "n2"


def test_a_volume_that_somebody_else_takes_first_is_left_to_them(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The scheduler decides on a version of the volume that is not the newest any more.

    A webhook would be needed to hit the moment between Reserve and PreBind for sure; here many
    volumes change hands while many pods want them, and no claim may end up with another's.
    """
    plane = control_plane
    plane.request("POST", "/api/v1/nodes", zoned("n1", "a"))
    create_class(plane, "local", provisioner="kubernetes.io/no-provisioner")
    count = 12
    plane.create_many(claims_path(namespace), [claim(f"c{i}", "local") for i in range(count)])
    plane.create_many(claims_path(namespace), [claim(f"x{i}", "local") for i in range(count)])
    uids = {
        each["metadata"]["name"]: each["metadata"]["uid"]
        for each in plane.request("GET", claims_path(namespace))["items"]
    }
    with PretendProvisioner(plane).running(), run_scheduler(plane, volume_config(plane)) as ours:
        ours.wait_until_scheduling()
        volumes = [local_volume(f"v{i:02}", "local", "n1") for i in range(2 * count)]
        create_volumes(plane, *volumes)
        plane.create_many(pods_path(namespace), [pod_with(f"p{i}", f"c{i}") for i in range(count)])
        for i in range(count):
            reference = {"namespace": namespace, "name": f"x{i}", "uid": uids[f"x{i}"]}
            path = f"/api/v1/persistentvolumes/v{i:02}"
            seen = plane.request("GET", path)
            if seen["spec"].get("claimRef"):
                continue
            version = seen["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "spec": {"claimRef": reference}}
            with contextlib.suppress(PlaneApiError):  # the scheduler was quicker
                plane.request("PATCH", path, patch, content_type=MERGE_PATCH)
        wait_until_bound(plane, namespace, seconds=60)

    owners: dict[str, str] = {}
    for i in range(count):
        found = claim_named(plane, namespace, f"c{i}")["spec"]["volumeName"]
        assert found not in owners, f"{found} is bound to c{i} and {owners[found]}"
        owners[found] = f"c{i}"
        assert volume_named(plane, found)["spec"]["claimRef"]["uid"] == uids[f"c{i}"]


def test_a_volume_that_is_deleted_while_it_is_being_bound_is_replaced(
    control_plane: ControlPlane, namespace: str
) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [zoned("n1", "a"), zoned("n2", "a")])
    create_class(plane, "local", provisioner="kubernetes.io/no-provisioner")
    plane.request("POST", claims_path(namespace), claim("c", "local"))
    provisioner = PretendProvisioner(plane)

    with provisioner.running(), run_scheduler(plane, volume_config(plane)):
        create_volumes(plane, local_volume("doomed", "local", "n1"))
        provisioner.binds = False
        plane.request("POST", pods_path(namespace), pod_with("p", "c"))
        until(lambda: volume_named(plane, "doomed")["spec"].get("claimRef"))
        plane.request("DELETE", "/api/v1/persistentvolumes/doomed")
        wait_for_failure(
            plane,
            namespace,
            "p",
            'binding volumes: failed to check binding: persistentvolumes "doomed" not found',
        )
        assert node_of(plane, namespace, "p") == ""
        provisioner.binds = True
        create_volumes(plane, local_volume("spare", "local", "n2"))
        assert wait_until_bound(plane, namespace, "p", seconds=30) == {"p": "n2"}


#: Keeps pods between Reserve and PreBind until a file says that they may go on.
_PAUSE = """
import asyncio
import pathlib

from kubesched.framework.plugin import Permit
from kubesched.framework.status import SUCCESS, Code, Status

GO_ON = pathlib.Path({path!r})


class Pause(Permit):
    name = "Pause"

    def __init__(self, waiting):
        self._waiting = waiting

    @classmethod
    def create(cls, context):
        return cls(context.waiting)

    def permit(self, state, pod, node_name):
        if GO_ON.exists():
            return SUCCESS, 0.0
        asyncio.get_running_loop().call_later(0.05, self._look, pod.uid)
        return Status(Code.WAIT), 60.0

    def _look(self, uid):
        waiting = self._waiting.get(uid)
        if waiting is None:
            return
        if GO_ON.exists():
            waiting.allow(self.name)
        else:
            asyncio.get_running_loop().call_later(0.05, self._look, uid)
"""


def test_a_volume_that_is_deleted_between_reserve_and_pre_bind_is_replaced(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    plane, go_on, plugin = control_plane, tmp_path / "go-on", tmp_path / "pause.py"
    plugin.write_text(_PAUSE.format(path=str(go_on)))
    plane.create_many("/api/v1/nodes", [zoned("n1", "a"), zoned("n2", "a")])
    create_class(plane, "local", provisioner="kubernetes.io/no-provisioner")
    plane.request("POST", claims_path(namespace), claim("c", "local"))
    config = volume_config(plane)
    config["profiles"][0]["plugins"] = {"multiPoint": {"enabled": [{"name": "Pause"}]}}

    with PretendProvisioner(plane).running(), run_scheduler(plane, config, f"--plugin={plugin}"):
        create_volumes(plane, local_volume("doomed", "local", "n1"))
        plane.request("POST", pods_path(namespace), pod_with("p", "c"))
        # Reserved: the scheduler says where the pod is about to go, and has written no volume.
        status = until(
            lambda: plane.request("GET", pods_path(namespace, "p"))["status"].get(
                "nominatedNodeName"
            )
        )
        assert status == "n1"
        assert "claimRef" not in volume_named(plane, "doomed")["spec"]
        plane.request("DELETE", "/api/v1/persistentvolumes/doomed")
        go_on.touch()
        wait_for_failure(plane, namespace, "p", 'persistentvolumes "doomed" not found')
        assert node_of(plane, namespace, "p") == ""
        assert selected_node(plane, namespace, "c") is None
        create_volumes(plane, local_volume("spare", "local", "n2"))
        assert wait_until_bound(plane, namespace, "p", seconds=30) == {"p": "n2"}
        assert volume_named(plane, "spare")["spec"]["claimRef"]["name"] == "c"


def test_waiting_ends_in_time_and_is_taken_up_again(
    control_plane: ControlPlane, namespace: str
) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [zoned("n1", "a"), zoned("n2", "b")])
    create_class(plane, "made")
    plane.request("POST", claims_path(namespace), claim("c", "made"))
    provisioner = PretendProvisioner(plane, lambda _claim, _node: Verdict.LEAVE)
    config = volume_config(plane, bind_timeout_s=1)

    with provisioner.running(), run_scheduler(plane, config):
        plane.request("POST", pods_path(namespace), pod_with("p", "c"))
        wait_for_failure(plane, namespace, "p", "binding volumes: context deadline exceeded")
        first = selected_node(plane, namespace, "c")
        provisioner.decide = lambda _claim, _node: Verdict.MAKE
        placed = wait_until_bound(plane, namespace, "p", seconds=30)

    assert placed == {"p": first}, "once selected, a node stays selected"


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_a_scheduler_that_ends_while_it_waits_is_followed_by_one_that_goes_on(
    control_plane: ControlPlane, namespace: str, end: str
) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [zoned("n1", "a"), zoned("n2", "b")])
    create_class(plane, "made")
    create_class(plane, "local", provisioner="kubernetes.io/no-provisioner")
    plane.create_many(claims_path(namespace), [claim("made", "made"), claim("found", "local")])
    provisioner = PretendProvisioner(plane, lambda _claim, _node: Verdict.LEAVE)

    with provisioner.running():
        create_volumes(plane, local_volume("v", "local", "n2"))
        with run_scheduler(plane, volume_config(plane)) as first:
            plane.request("POST", pods_path(namespace), pod_with("p", "made", "found"))
            until(lambda: selected_node(plane, namespace, "made"))
            assert node_of(plane, namespace, "p") == ""
            if end == "kill":
                first.kill()
                # What was logged of its death is not of interest here.
            else:
                assert first.terminate(seconds=20) == 0
        with run_scheduler(plane, volume_config(plane)):
            provisioner.decide = lambda _claim, _node: Verdict.MAKE
            placed = wait_until_bound(plane, namespace, "p", seconds=30)

    assert placed == {"p": "n2"}
    assert claim_named(plane, namespace, "found")["spec"]["volumeName"] == "v"
    made = plane.request("GET", "/api/v1/persistentvolumes")["items"]
    assert len(made) == 2, "one was there, and one was made"


def test_a_pod_that_is_deleted_while_it_waits_frees_its_room(
    control_plane: ControlPlane, namespace: str
) -> None:
    plane = control_plane
    plane.request("POST", "/api/v1/nodes", zoned("n1", "a", cpu="1"))
    create_class(plane, "made")
    plane.request("POST", claims_path(namespace), claim("c", "made"))
    provisioner = PretendProvisioner(plane, lambda _claim, _node: Verdict.LEAVE)

    with provisioner.running(), run_scheduler(plane, volume_config(plane)):
        asking = pod_with("waits", "c", requests={"cpu": "1"})
        plane.request("POST", pods_path(namespace), asking)
        until(lambda: selected_node(plane, namespace, "c"))
        plane.request("POST", pods_path(namespace), pod("next", requests={"cpu": "1"}))
        wait_until_refused(plane, namespace, "next")
        delete_pod(plane, namespace, "waits")
        assert wait_until_bound(plane, namespace, "next") == {"next": "n1"}


# --- what is written ----------------------------------------------------------------------------


def as_scheduler(plane: ControlPlane, work: Callable[[VolumeWrites], Awaitable[T]]) -> T:
    """Write as the scheduler's user, without a scheduler."""

    async def run() -> T:
        async with ApiClient(kubeconfig.load(plane.scheduler_kubeconfig)) as client:
            return await work(VolumeWrites(client, Storage()))

    return asyncio.run(run())


def test_a_volume_that_changed_after_the_decision_is_not_overwritten(
    control_plane: ControlPlane, namespace: str
) -> None:
    """What happens between Reserve and PreBind: the volume changes, and then it goes."""
    plane = control_plane
    made = plane.request("POST", claims_path(namespace), claim("c", "local"))
    path = "/api/v1/persistentvolumes/v"
    created = plane.request("POST", "/api/v1/persistentvolumes", local_volume("v", "local", "n1"))
    wanted = msgspec.convert(made, PersistentVolumeClaim)
    decided, _ = bound_to_claim(msgspec.convert(created, PersistentVolume), wanted)
    patch = {"metadata": {"labels": {"somebody": "else"}}}
    changed = plane.request("PATCH", path, patch, content_type=MERGE_PATCH)

    with pytest.raises(ConflictError, match='persistentvolumes "v": the object has been modified'):
        as_scheduler(plane, lambda writes: writes.write_volume(decided))
    assert volume_named(plane, "v") == changed

    again, _ = bound_to_claim(msgspec.convert(changed, PersistentVolume), wanted)
    written = as_scheduler(plane, lambda writes: writes.write_volume(again))
    assert written.spec.claim_ref is not None
    assert written.spec.claim_ref.uid == made["metadata"]["uid"]
    assert int(written.metadata.resource_version) > int(changed["metadata"]["resourceVersion"])

    plane.request("DELETE", path)
    with pytest.raises(NotFoundError, match='persistentvolumes "v" not found'):
        as_scheduler(plane, lambda writes: writes.write_volume(again))


def test_a_claim_that_changed_after_the_decision_is_not_overwritten(
    control_plane: ControlPlane, namespace: str
) -> None:
    plane = control_plane
    made = plane.request("POST", claims_path(namespace), claim("c", "made"))
    decided = with_selected_node(msgspec.convert(made, PersistentVolumeClaim), "n1")
    patch = {"metadata": {"annotations": {"somebody": "else"}}}
    changed = plane.request("PATCH", claims_path(namespace, "c"), patch, content_type=MERGE_PATCH)

    with pytest.raises(ConflictError):
        as_scheduler(plane, lambda writes: writes.write_claim(decided))
    again = with_selected_node(msgspec.convert(changed, PersistentVolumeClaim), "n1")
    as_scheduler(plane, lambda writes: writes.write_claim(again))

    found = claim_named(plane, namespace, "c")
    assert annotations_of(found) == {"somebody": "else", ANNOTATION_SELECTED_NODE: "n1"}
    assert found["spec"] == made["spec"]


# --- what the scheduler is allowed --------------------------------------------------------------


def test_the_bootstrap_roles_let_the_scheduler_patch_volumes_and_claims(
    control_plane: ControlPlane,
) -> None:
    review = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    for resource in ("persistentvolumes", "persistentvolumeclaims"):
        asked = {
            "spec": {
                "user": "system:kube-scheduler",
                "resourceAttributes": {"verb": "patch", "resource": resource},
            }
        }
        assert control_plane.request("POST", review, asked)["status"]["allowed"]
