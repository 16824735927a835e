"""What the scheduler is for: pods get nodes, with no more than a scheduler's rights."""

from __future__ import annotations

import time

import pytest

from .control_plane import ControlPlane, PlaneApiError
from .scheduler_process import (
    all_pods,
    assert_no_node_is_overcommitted,
    configuration,
    node,
    node_of,
    pod,
    pods_path,
    profile,
    run_command,
    run_scheduler,
    wait_until_bound,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")


def test_a_thousand_pods_fill_a_hundred_nodes_to_the_brim(
    control_plane: ControlPlane, namespace: str
) -> None:
    # Ten of these pods fill a node, so that one pod too many anywhere leaves another without one.
    control_plane.create_many("/api/v1/nodes", [node(f"n{i}") for i in range(100)])
    names = [f"p{i}" for i in range(1000)]
    pods = [pod(name, requests={"cpu": "400m"}) for name in names]
    control_plane.create_many(pods_path(namespace), pods)

    with run_scheduler(control_plane):
        nodes = wait_until_bound(control_plane, namespace, seconds=60)

    assert sorted(nodes) == sorted(names)
    assert sorted(nodes.values()) == sorted(10 * [f"n{i}" for i in range(100)])
    assert_no_node_is_overcommitted(control_plane)
    # LAST SEEN, TYPE, REASON, OBJECT, MESSAGE
    printed = control_plane.kubectl("get", "events", "-n", namespace, "--no-headers").splitlines()
    told = sorted(line.split(maxsplit=4)[1:] for line in printed)
    assert told == sorted(
        [
            "Normal",
            "Scheduled",
            f"pod/{name}",
            f"Successfully assigned {namespace}/{name} to {nodes[name]}",
        ]
        for name in names
    )


def test_pods_that_come_later_are_bound_as_they_come(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with run_scheduler(control_plane) as scheduler:
        scheduler.wait_until_scheduling()
        for name in ("first", "second"):
            control_plane.request("POST", pods_path(namespace), pod(name))
            assert wait_until_bound(control_plane, namespace, name, seconds=2) == {name: "n1"}


def test_pods_of_higher_priority_go_first(control_plane: ControlPlane, namespace: str) -> None:
    room_for_one = node("n1", allocatable={"pods": "1"})
    control_plane.request("POST", "/api/v1/nodes", room_for_one)
    control_plane.request("POST", pods_path(namespace), pod("early"))
    late = pod("late", priorityClassName="system-node-critical")
    control_plane.request("POST", pods_path(namespace), late)
    with run_scheduler(control_plane):
        wait_until_bound(control_plane, namespace, "late")
    assert node_of(control_plane, namespace, "early") == ""


def test_the_flags_alone_are_enough(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    control_plane.request("POST", pods_path(namespace), pod("p1"))
    flags = (f"--kubeconfig={control_plane.scheduler_kubeconfig}", "--leader-elect=false")
    with run_command(control_plane.folder / "flags.log", *flags):
        wait_until_bound(control_plane, namespace, "p1")


def test_each_profile_places_its_pods_in_its_own_way(
    control_plane: ControlPlane, namespace: str
) -> None:
    def scored_by(strategy: str) -> dict[str, dict[str, object]]:
        resources = [{"name": "cpu", "weight": 1}]
        return {"NodeResourcesFit": {"scoringStrategy": {"type": strategy, "resources": resources}}}

    tainted = {"key": "keep", "value": "out", "effect": "NoSchedule"}
    nodes = [node("half-full"), node("empty"), node("tainted", taints=[tainted])]
    control_plane.create_many("/api/v1/nodes", nodes)
    filler = pod("filler", requests={"cpu": "2", "memory": "4Gi"}, nodeName="half-full")
    control_plane.request("POST", pods_path(namespace), filler)
    small = {"cpu": "200m", "memory": "400Mi"}
    wants = {"packer": "half-full", "spreader": "empty", "fearless": "tainted"}
    pods = [
        pod(f"{name}-{i}", requests=small, schedulerName=name) for name in wants for i in (1, 2, 3)
    ]
    control_plane.create_many(pods_path(namespace), pods)
    no_taints = {"filter": {"disabled": [{"name": "TaintToleration"}]}}
    config = configuration(
        control_plane.scheduler_kubeconfig,
        profile("packer", args=scored_by("MostAllocated")),
        profile("spreader", args=scored_by("LeastAllocated")),
        profile(
            "fearless",
            plugins=no_taints,
            args={"NodeAffinity": {"addedAffinity": _only_on("tainted")}},
        ),
    )

    with run_scheduler(control_plane, config):
        placed = wait_until_bound(control_plane, namespace)

    assert {name: where for name, where in placed.items() if name != "filler"} == {
        f"{name}-{i}": where for name, where in wants.items() for i in (1, 2, 3)
    }


def _only_on(name: str) -> dict[str, object]:
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [field]}]
        }
    }


def test_pods_of_other_schedulers_are_left_alone(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    foreign = [
        pod("fits", schedulerName="someone-else"),
        pod("too-large", schedulerName="someone-else", requests={"cpu": "64"}),
    ]
    before = control_plane.create_many(pods_path(namespace), foreign)
    with run_scheduler(control_plane):
        control_plane.request("POST", pods_path(namespace), pod("ours"))
        wait_until_bound(control_plane, namespace, "ours")
        time.sleep(0.5)  # time in which the others could be touched
    after = {
        each["metadata"]["name"]: each["metadata"] for each in all_pods(control_plane, namespace)
    }
    assert [after["fits"], after["too-large"]] == [each["metadata"] for each in before]


def test_a_deleted_pod_is_forgotten_with_what_it_took(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n1"))
    with run_scheduler(control_plane) as scheduler:
        scheduler.wait_until_scheduling()
        for round_number in range(5):
            name = f"whole-node-{round_number}"
            control_plane.request("POST", pods_path(namespace), pod(name, requests={"cpu": "4"}))
            wait_until_bound(control_plane, namespace, name, seconds=3)
            control_plane.request("DELETE", pods_path(namespace, name), {"gracePeriodSeconds": 0})
            with pytest.raises(PlaneApiError, match="not found"):
                control_plane.request("GET", pods_path(namespace, name))
        assert scheduler.log_lines() == []


def test_absurd_values_that_the_api_server_accepts_do_no_harm(
    control_plane: ControlPlane, namespace: str
) -> None:
    largest = "9223372036854775807"
    long_name = ".".join(["n" * 63] * 3 + ["n" * 61])
    image = {"names": ["registry.invalid/c:latest"], "sizeBytes": int(largest)}
    many_labels = {f"key-{i}": "v" * 63 for i in range(1000)} | {"kubernetes.io/hostname": "n"}
    nodes = [
        node("normal", labels={"normal": ""}),
        node("endless", allocatable={"cpu": "9P", "memory": "1E", "pods": "1E", "a.b/c": largest}),
        node("beyond", allocatable={"cpu": "1E", "memory": "1e30", "pods": largest}),
        node("fractions", allocatable={"cpu": "0.0000000001", "memory": "1m", "pods": "1"}),
        node(long_name, images=[image], labels=many_labels),
    ]
    control_plane.create_many("/api/v1/nodes", nodes)
    absurd = [
        pod("cpu", requests={"cpu": "1e18"}),
        pod("memory", requests={"memory": "1e25"}),
        pod("device", requests={"a.b/c": largest, "cpu": "1n"}),
        pod("ports", host_ports=tuple(range(1, 1001))),
        pod("priority", priorityClassName="system-node-critical", labels=many_labels),
        pod(
            "tolerations", tolerations=[{"key": f"k{i}", "operator": "Exists"} for i in range(1000)]
        ),
        pod("containers", initContainers=[_container(i) for i in range(200)]),
    ]
    control_plane.create_many(pods_path(namespace), absurd)
    with run_scheduler(control_plane) as scheduler:
        # The placement that one absurd pod has must not be what lets the last one be placed.
        reasonable = pod("reasonable", requests={"cpu": "1"}, nodeSelector={"normal": ""})
        control_plane.request("POST", pods_path(namespace), reasonable)
        assert wait_until_bound(control_plane, namespace, "reasonable") == {"reasonable": "normal"}
        wait_until_bound(control_plane, namespace, "device", "ports", "priority", "tolerations")
        wait_until_bound(control_plane, namespace, "containers")
        time.sleep(0.5)  # a complaint too many would come by then
        complaints = scheduler.log_lines()
    # More than 64 bits count is a mistake that is named, not a number that wraps around.
    assert len(complaints) == 2
    for name in ("cpu", "memory"):
        assert node_of(control_plane, namespace, name) == ""
        [line] = [
            each for each in complaints if f"pod {namespace}/{name}: requests: {name}: " in each
        ]
        assert "out of range" in line


def _container(number: int) -> dict[str, object]:
    requests = {"cpu": "1n", "memory": "1"}
    return {"name": f"c{number}", "image": "i", "resources": {"requests": requests}}
