"""Gangs of scheduler-plugins on a real API server, with the gate GenericWorkload off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import yaml

from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject, PlaneApiError
from .scheduler_process import (
    SchedulerProcess,
    all_pods,
    configuration,
    delete_pod,
    node,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)

DEPLOY = Path(__file__).resolve().parents[2] / "deploy" / "coscheduling"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROLES = "/apis/rbac.authorization.k8s.io/v1"
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1"
LABEL = "scheduling.x-k8s.io/pod-group"

pytestmark = pytest.mark.usefixtures("clean_cluster")


@pytest.fixture(scope="module")
def control_plane(assets: Path) -> Iterator[ControlPlane]:
    """A control plane of which the scheduler's user may read groups, once there are any."""
    with ControlPlane(assets) as plane:
        role, binding = yaml.safe_load_all((DEPLOY / "rbac.yaml").read_text())
        plane.request("POST", f"{ROLES}/clusterroles", role)
        plane.request("POST", f"{ROLES}/clusterrolebindings", binding)
        yield plane


@pytest.mark.slow
def test_it_works_without_the_kind_and_notices_when_it_comes(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with scheduler(control_plane) as running:
        create_members(control_plane, namespace, "g", "a", "b")
        control_plane.request("POST", pods_path(namespace), pod("single"))
        wait_until_bound(control_plane, namespace, "single")
        assert nodes_of(control_plane, namespace) == {"a": "", "b": "", "single": "n1"}

        define(control_plane)
        create_group(control_plane, namespace, "g", 2)

        # The API server is asked once a minute for what it does not serve.
        wait_until_bound(control_plane, namespace, "a", "b", seconds=90)
        assert not running.log_lines("EF")


def test_a_gang_is_bound_as_a_whole_and_its_status_follows_its_pods(
    control_plane: ControlPlane, namespace: str
) -> None:
    define(control_plane)
    control_plane.request("POST", "/api/v1/nodes", node("n1", allocatable={"cpu": "2"}))
    with scheduler(control_plane):
        create_group(control_plane, namespace, "g", 3, minResources={"cpu": "2"})
        until(lambda: phase(control_plane, namespace) == "Pending")
        create_members(control_plane, namespace, "g", "a", "b", "c", cpu="1")
        refused = wait_until_refused(control_plane, namespace, "c")
        assert refused == "0/1 nodes are available: 1 Insufficient cpu."
        assert wait_until_refused(control_plane, namespace, "a").startswith(
            "pod group is unschedulable, minMember (3) cannot be satisfied: 2 scheduled, 0"
        )
        assert set(nodes_of(control_plane, namespace).values()) == {""}
        until(lambda: phase(control_plane, namespace) == "Scheduling")

        control_plane.request("POST", "/api/v1/nodes", node("n2", allocatable={"cpu": "1"}))
        assert sorted(wait_until_bound(control_plane, namespace).values()) == ["n1", "n1", "n2"]
        until(lambda: status_of(control_plane, namespace).get("scheduled") == 3)
        assert status_of(control_plane, namespace)["scheduleStartTime"]

        set_phase(control_plane, namespace, "Running", "a", "b", "c")
        until(lambda: phase(control_plane, namespace) == "Running")
        set_phase(control_plane, namespace, "Succeeded", "a", "b", "c")
        until(lambda: phase(control_plane, namespace) == "Finished")
        assert status_of(control_plane, namespace)["succeeded"] == 3


def test_two_gangs_that_need_more_than_half_do_not_wait_for_each_other(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Pod by pod, each of them would get a part of the room, and neither enough."""
    define(control_plane)
    nodes = [node(f"n{number}", allocatable={"cpu": "2"}) for number in range(3)]
    control_plane.create_many("/api/v1/nodes", nodes)
    for group in ("red", "blue"):
        create_group(control_plane, namespace, group, 4)
    for number in range(4):
        for group in ("red", "blue"):
            create_members(control_plane, namespace, group, f"{group}-{number}", cpu="1")
    with scheduler(control_plane):

        def winner() -> str | None:
            bound = [name for name, on in nodes_of(control_plane, namespace).items() if on]
            groups = {name.partition("-")[0] for name in bound}
            assert len(groups) <= 1
            return groups.pop() if len(bound) == 4 else None

        first = until(winner)
        (second,) = {"red", "blue"} - {first}
        for number in range(4):
            delete_pod(control_plane, namespace, f"{first}-{number}")
        wait_until_bound(control_plane, namespace, *(f"{second}-{number}" for number in range(4)))


# --- objects ------------------------------------------------------------------------------------


def scheduler(plane: ControlPlane) -> AbstractContextManager[SchedulerProcess]:
    """Run a scheduler with the profile of deploy/."""
    (profile,) = yaml.safe_load((DEPLOY / "scheduler.yaml").read_text())["profiles"]
    return run_scheduler(plane, configuration(plane.scheduler_kubeconfig, profile))


def define(plane: ControlPlane) -> None:
    """Install the kind, and wait until it is served."""
    kind = yaml.safe_load((DEPLOY / "crd.yaml").read_text())
    if not answers(plane, f"{DEFINITIONS}/{kind['metadata']['name']}"):
        plane.request("POST", DEFINITIONS, kind)
    until(lambda: answers(plane, f"{GROUPS}/podgroups"))


def answers(plane: ControlPlane, path: str) -> bool:
    try:
        plane.request("GET", path)
    except PlaneApiError:
        return False
    return True


def create_group(
    plane: ControlPlane, namespace: str, name: str, members: int, **spec: object
) -> None:
    body = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": members, **spec},
    }
    plane.request("POST", f"{GROUPS}/namespaces/{namespace}/podgroups", body)


def create_members(
    plane: ControlPlane, namespace: str, group: str, *names: str, cpu: str = "100m"
) -> None:
    for name in names:
        grace: JsonObject = {"terminationGracePeriodSeconds": 0}
        made = pod(name, requests={"cpu": cpu}, labels={LABEL: group}, **grace)
        plane.request("POST", pods_path(namespace), made)


def set_phase(plane: ControlPlane, namespace: str, phase: str, *names: str) -> None:
    for name in names:
        path = f"{pods_path(namespace)}/{name}/status"
        body = {"status": {"phase": phase}}
        plane.request("PATCH", path, body, content_type="application/merge-patch+json")


# --- how things stand ---------------------------------------------------------------------------


def nodes_of(plane: ControlPlane, namespace: str) -> dict[str, str]:
    return {
        each["metadata"]["name"]: str(each["spec"].get("nodeName", ""))
        for each in all_pods(plane, namespace)
    }


def status_of(plane: ControlPlane, namespace: str) -> JsonObject:
    found = plane.request("GET", f"{GROUPS}/namespaces/{namespace}/podgroups/g")
    status: JsonObject = found.get("status") or {}
    return status


def phase(plane: ControlPlane, namespace: str) -> str:
    return str(status_of(plane, namespace).get("phase", ""))
