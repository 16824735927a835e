"""How groups wait: for members, for their group, for room, and for gates to open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import stays

from .control_plane import MERGE_PATCH, ControlPlane, JsonObject
from .group_scenarios import HOSTNAME, g, staged_plane
from .pod_groups import (
    create_gang,
    create_group,
    create_members,
    create_single,
    group_condition,
    groups_path,
    nodes_of,
    wait_for_group,
)
from .scheduler_process import (
    condition_of,
    delete_pod,
    node,
    pods_path,
    wait_until_bound,
    wait_until_refused,
)
from .volume_objects import claim, claims_path, create_class, local_volume

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clean_pods")]

GATED: JsonObject = {"schedulingGates": [{"name": "example.com/not-yet"}]}
POLICIES = pytest.mark.parametrize(
    "policy", [{"gang": {"minCount": 2}}, {"basic": {}}], ids=["gang", "basic"]
)


@pytest.fixture(scope="module")
def control_plane(assets: Path) -> Iterator[ControlPlane]:
    """A control plane with a scheduler."""
    with staged_plane(assets) as plane:
        yield plane


def create_node(plane: ControlPlane, cpu: str = "4", name: str = "n1") -> None:
    plane.request("POST", "/api/v1/nodes", node(name, allocatable={"cpu": cpu}))


def assert_not_tried(plane: ControlPlane, namespace: str, *names: str) -> None:
    """Check that pods wait without an attempt, which a pod that came after them has had."""
    create_single(plane, namespace, "witness", cpu="0")
    wait_until_bound(plane, namespace, "witness")
    for name in names:
        assert condition_of(plane, namespace, name) is None, name
    delete_pod(plane, namespace, "witness")


def need(plane: ControlPlane, namespace: str, count: int) -> None:
    """Let the gang need so many."""
    patch = {"spec": {"schedulingPolicy": {"gang": {"minCount": count}}}}
    plane.request("PATCH", groups_path(namespace, "g"), patch, content_type=MERGE_PATCH)


def test_members_that_come_late_join_a_bound_gang(
    control_plane: ControlPlane, namespace: str
) -> None:
    create_node(control_plane)
    create_gang(control_plane, namespace, "g", 3)
    create_members(control_plane, namespace, "a", "b", "c")
    wait_until_bound(control_plane, namespace)
    create_members(control_plane, namespace, "d")
    wait_until_bound(control_plane, namespace, "d")


def test_what_is_more_than_a_gang_needs_may_wait_for_room(
    control_plane: ControlPlane, namespace: str
) -> None:
    create_node(control_plane)
    create_single(control_plane, namespace, "blocker", cpu="1")
    wait_until_bound(control_plane, namespace)
    create_members(control_plane, namespace, *"abcd", cpu="1")
    create_gang(control_plane, namespace, "g", 3)
    wait_until_bound(control_plane, namespace, "a", "b", "c")
    wait_until_refused(control_plane, namespace, "d")
    delete_pod(control_plane, namespace, "blocker")
    wait_until_bound(control_plane, namespace, "d")


def test_a_basic_group_takes_the_room_there_is(control_plane: ControlPlane, namespace: str) -> None:
    create_node(control_plane)
    create_single(control_plane, namespace, "blocker", cpu="2")
    wait_until_bound(control_plane, namespace)
    create_members(control_plane, namespace, *"abc", cpu="1")
    assert_not_tried(control_plane, namespace, *"abc")
    create_group(control_plane, namespace, {"basic": {}})
    wait_until_bound(control_plane, namespace, "a", "b")
    wait_until_refused(control_plane, namespace, "c")
    delete_pod(control_plane, namespace, "blocker")
    wait_until_bound(control_plane, namespace, "c")


@pytest.mark.parametrize("first", ["g", "h"])
def test_two_gangs_that_compete_do_not_wait_for_each_other(
    control_plane: ControlPlane, namespace: str, first: str
) -> None:
    create_node(control_plane)
    for name in "gh":
        create_gang(control_plane, namespace, name, 3)
    other = "h" if first == "g" else "g"
    for number in range(3):
        for group in (first, other):
            create_members(control_plane, namespace, f"{group}{number}", group=group, cpu="1")
    wait_until_bound(control_plane, namespace, *(f"{first}{number}" for number in range(3)))
    for number in range(3):
        wait_until_refused(control_plane, namespace, f"{other}{number}")


def test_a_single_pod_between_the_members_of_a_gang_is_bound(
    control_plane: ControlPlane, namespace: str
) -> None:
    create_node(control_plane)
    create_gang(control_plane, namespace, "g", 3)
    create_single(control_plane, namespace, "single", cpu="2")
    create_members(control_plane, namespace, *"abc", cpu="1")
    wait_until_bound(control_plane, namespace, "single")
    for name in "abc":
        wait_until_refused(control_plane, namespace, name)


def test_a_gang_that_needs_fewer_starts(control_plane: ControlPlane, namespace: str) -> None:
    create_node(control_plane)
    create_gang(control_plane, namespace, "g", 5)
    create_members(control_plane, namespace, *"abcd")
    assert_not_tried(control_plane, namespace, *"abcd")
    need(control_plane, namespace, 6)
    assert_not_tried(control_plane, namespace, *"abcd")
    need(control_plane, namespace, 4)
    wait_until_bound(control_plane, namespace)


def test_a_gang_without_room_starts_when_it_needs_fewer(
    control_plane: ControlPlane, namespace: str
) -> None:
    create_node(control_plane)
    create_gang(control_plane, namespace, "g", 5)
    create_members(control_plane, namespace, *"abcde", cpu="1")
    for name in "abcde":
        wait_until_refused(control_plane, namespace, name)
    need(control_plane, namespace, 4)
    wait_until_bound(control_plane, namespace, *"abcd")
    wait_until_refused(control_plane, namespace, "e")


@POLICIES
def test_a_gated_member_holds_all_of_them(
    control_plane: ControlPlane, namespace: str, policy: dict[str, object]
) -> None:
    create_node(control_plane)
    create_members(control_plane, namespace, "a", "b")
    create_members(control_plane, namespace, "c", **GATED)
    create_group(control_plane, namespace, policy)
    assert_not_tried(control_plane, namespace, "a", "b")
    open_gate = {"spec": {"schedulingGates": None}}
    path = pods_path(namespace, "c")
    control_plane.request("PATCH", path, open_gate, content_type=MERGE_PATCH)
    wait_until_bound(control_plane, namespace)


@POLICIES
def test_a_gated_member_that_comes_late_holds_those_that_wait(
    control_plane: ControlPlane, namespace: str, policy: dict[str, object]
) -> None:
    create_node(control_plane, cpu="1")
    create_single(control_plane, namespace, "blocker", cpu="1")
    wait_until_bound(control_plane, namespace)
    create_members(control_plane, namespace, "a", "b", cpu="500m")
    create_group(control_plane, namespace, policy)
    wait_until_refused(control_plane, namespace, "a")
    create_members(control_plane, namespace, "c", cpu="0", **GATED)
    create_node(control_plane, name="n2")
    stays(lambda: not nodes_of(control_plane, namespace)["a"], seconds=2.5)
    delete_pod(control_plane, namespace, "c")
    wait_until_bound(control_plane, namespace)


@POLICIES
def test_pods_of_a_deleted_group_wait_for_another_one(
    control_plane: ControlPlane, namespace: str, policy: dict[str, object]
) -> None:
    create_node(control_plane)
    create_members(control_plane, namespace, "a", "b")
    create_group(control_plane, namespace, policy)
    wait_until_bound(control_plane, namespace)
    control_plane.purge(groups_path(namespace))
    create_members(control_plane, namespace, "c", "d")
    assert_not_tried(control_plane, namespace, "c", "d")
    create_group(control_plane, namespace, policy)
    wait_until_bound(control_plane, namespace)


def test_pods_of_a_group_that_is_deleted_while_they_wait_are_not_tried(
    control_plane: ControlPlane, namespace: str
) -> None:
    create_node(control_plane, cpu="1")
    create_members(control_plane, namespace, "a", "b", cpu="1")
    create_gang(control_plane, namespace, "g", 2)
    wait_for_group(control_plane, namespace, "False")
    control_plane.purge(groups_path(namespace))
    create_node(control_plane, name="n2")
    stays(lambda: not any(nodes_of(control_plane, namespace).values()), seconds=2.5)
    create_gang(control_plane, namespace, "g", 2)
    wait_until_bound(control_plane, namespace)


@pytest.mark.parametrize(("nodes", "fits"), [(("n1", "n2"), True), (("n1",), False)])
def test_members_see_the_affinity_of_those_before_them(
    control_plane: ControlPlane, namespace: str, nodes: tuple[str, ...], fits: bool
) -> None:
    for name in nodes:
        create_node(control_plane, name=name)
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "plain"}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    apart: JsonObject = {"affinity": {"podAntiAffinity": rule}}
    create_members(control_plane, namespace, "a", **apart)
    create_members(control_plane, namespace, "b", labels={"app": "plain"})
    create_gang(control_plane, namespace, "g", 2)
    if fits:
        assert len(set(wait_until_bound(control_plane, namespace).values())) == 2
    else:
        for name in "ab":
            wait_until_refused(control_plane, namespace, name)


@pytest.mark.parametrize(("second", "fits"), [("claim-2", True), ("claim-1", False)])
def test_members_see_the_claims_of_those_before_them(
    control_plane: ControlPlane, namespace: str, second: str, fits: bool
) -> None:
    create_node(control_plane)
    with_class = f"class-{namespace}"
    create_class(control_plane, with_class)
    for number in (1, 2):
        wanted = claim(f"claim-{number}", with_class)
        wanted["spec"]["accessModes"] = ["ReadWriteOncePod"]
        control_plane.request("POST", claims_path(namespace), wanted)
        volume = local_volume(f"{namespace}-{number}", with_class, "n1")
        volume["spec"]["accessModes"] = ["ReadWriteOncePod"]
        volume["spec"]["claimRef"] = {"namespace": namespace, "name": f"claim-{number}"}
        control_plane.request("POST", "/api/v1/persistentvolumes", volume)
        bind(control_plane, namespace, number)
    for name, of in (("a", "claim-1"), ("b", second)):
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": of}}]
        create_members(control_plane, namespace, name, volumes=volumes)
    create_gang(control_plane, namespace, "g", 2)
    if fits:
        wait_until_bound(control_plane, namespace)
    else:
        for name in "ab":
            wait_until_refused(control_plane, namespace, name)
        wait_for_group(control_plane, namespace, "False")


def bind(plane: ControlPlane, namespace: str, number: int) -> None:
    """Bind a claim to its volume, as the volume controller does."""
    path, volume = claims_path(namespace, f"claim-{number}"), f"{namespace}-{number}"
    note = {"pv.kubernetes.io/bind-completed": "yes"}
    patch = {"metadata": {"annotations": note}, "spec": {"volumeName": volume}}
    plane.request("PATCH", path, patch, content_type=MERGE_PATCH)
    status = {"status": {"phase": "Bound"}}
    plane.request("PATCH", f"{path}/status", status, content_type=MERGE_PATCH)


def test_a_tree_waits_for_its_root_and_for_enough_groups(
    control_plane: ControlPlane, namespace: str
) -> None:
    create_node(control_plane)
    composites = f"/apis/scheduling.k8s.io/v1alpha3/namespaces/{namespace}/compositepodgroups"
    create_members(control_plane, namespace, "a", group="first")
    control_plane.request("POST", groups_path(namespace), g("first", gang=1, parent="c"))
    assert_not_tried(control_plane, namespace, "a")
    control_plane.request("POST", composites, g("c", gang=2, composite=True))
    assert_not_tried(control_plane, namespace, "a")
    control_plane.request("POST", groups_path(namespace), g("second", gang=1, parent="c"))
    assert_not_tried(control_plane, namespace, "a")
    create_members(control_plane, namespace, "b", group="second")
    wait_until_bound(control_plane, namespace)
    for name in ("first", "second"):
        wait_for_group(control_plane, namespace, "True", name=name)


def test_no_condition_is_written_of_a_group_that_was_not_tried(
    control_plane: ControlPlane, namespace: str
) -> None:
    create_node(control_plane)
    create_gang(control_plane, namespace, "g", 2)
    create_members(control_plane, namespace, "a")
    assert_not_tried(control_plane, namespace, "a")
    assert group_condition(control_plane, namespace) is None
