"""Explain, on a real API server: says what the scheduler wrote, writes nothing, and what it
proposes works.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from .audited_plane import AuditedPlane
from .control_plane import JsonObject
from .scheduler_process import (
    environment,
    node,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)

SCHEDULER = "system:kube-scheduler"
NAMESPACE = "default"
ZONE = "topology.kubernetes.io/zone"

NODES = [
    node("small", allocatable={"cpu": "2", "memory": "4Gi"}, labels={ZONE: "a"}),
    node("busy", allocatable={"cpu": "8", "memory": "16Gi"}, labels={ZONE: "a"}),
    node(
        "gpu",
        allocatable={"cpu": "16", "memory": "64Gi"},
        labels={ZONE: "b"},
        taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
    ),
    node("closed", allocatable={"cpu": "16"}, labels={ZONE: "b"}, unschedulable=True),
]
PLACED = [
    pod("other", nodeName="busy", requests={"cpu": "5", "memory": "1Gi"}, labels={"app": "x"})
]
NEAR = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": ZONE}
PENDING = {
    "cpu": pod("cpu", requests={"cpu": "4"}),
    "both": pod("both", requests={"cpu": "12", "memory": "32Gi"}),
    "selector": pod("selector", nodeSelector={"disk": "ssd"}),
    "spread": pod(
        "spread",
        labels={"app": "x"},
        requests={"cpu": "3"},
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
        ],
    ),
    "away": pod(
        "away",
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NEAR]}},
    ),
}


@pytest.fixture(scope="module")
def plane(assets: Path) -> Iterator[AuditedPlane]:
    """A control plane whose pods were refused by our scheduler, which does not run any more."""
    with AuditedPlane(assets) as started:
        for each in NODES:
            started.request("POST", "/api/v1/nodes", each)
        for each in (*PLACED, *PENDING.values()):
            started.request("POST", pods_path(NAMESPACE), each)
        with run_scheduler(started):
            for name in PENDING:
                wait_until_refused(started, NAMESPACE, name)
        yield started


def _run(plane: AuditedPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "kubesched.cli.kubesched", *arguments]
    return subprocess.run(
        [*command, f"--kubeconfig={plane.scheduler_kubeconfig}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(),
    )


def _explained(plane: AuditedPlane, name: str) -> dict[str, Any]:
    ended = _run(plane, "explain", "pod", f"{NAMESPACE}/{name}", "-o", "json")
    assert ended.returncode == 0, ended.stderr
    said: dict[str, Any] = json.loads(ended.stdout)
    return said


@pytest.mark.parametrize("name", PENDING)
def test_it_says_what_the_scheduler_wrote(plane: AuditedPlane, name: str) -> None:
    written = wait_until_refused(plane, NAMESPACE, name)

    said = _explained(plane, name)

    assert said["outcome"] == "Unschedulable"
    assert said["message"] == written
    assert said["totalNodes"] == len(NODES)
    assert {each["node"] for each in said["nodes"]} == {"small", "busy", "gpu", "closed"}
    assert said["changes"], "something would help each of them"


def test_nothing_but_lists_is_asked_of_the_server(plane: AuditedPlane) -> None:
    before = len(plane.requests_of(SCHEDULER))

    _explained(plane, "cpu")

    asked = plane.requests_of(SCHEDULER)[before:]
    assert {each.verb for each in asked} == {"list"}
    assert {"nodes", "pods", "persistentvolumes"} <= {each.resource for each in asked}


def test_what_the_scheduler_may_not_see_is_noted(plane: AuditedPlane) -> None:
    notes = _explained(plane, "cpu")["notes"]

    # Neither is read by a scheduler, only for pods that are not there yet.
    assert [each.partition(" are not taken into account: ")[0] for each in notes] == [
        "priorityclasses.scheduling.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
    ]


@pytest.mark.parametrize("name", PENDING)
def test_a_proposed_change_of_the_pod_places_it(plane: AuditedPlane, name: str) -> None:
    said = _explained(plane, name)
    change = next(each for each in said["changes"] if "patch" in each)
    changed = f"changed-{name}"
    original = plane.request("GET", pods_path(NAMESPACE, name))
    try:
        plane.request("POST", pods_path(NAMESPACE), _with(original, changed, change["patch"]))
        with run_scheduler(plane):
            wait_until_bound(plane, NAMESPACE, changed)
    finally:
        plane.request("DELETE", pods_path(NAMESPACE, changed) + "?gracePeriodSeconds=0")


def _with(original: JsonObject, name: str, patch: list[JsonObject]) -> JsonObject:
    """A pod of another name, with a change."""
    changed: JsonObject = jsonpatch.apply_patch(original, patch)
    return {"metadata": {"name": name, "labels": original["metadata"].get("labels")}} | {
        "spec": changed["spec"]
    }


def test_a_snapshot_says_the_same_as_the_live_cluster(plane: AuditedPlane, tmp_path: Path) -> None:
    file = tmp_path / "cluster.gz"
    taken = _run(plane, "snapshot", "-o", str(file))
    assert taken.returncode == 0, taken.stderr

    command = [sys.executable, "-W", "error", "-m", "kubesched.cli.kubesched", "explain"]
    ended = subprocess.run(
        [*command, "pod", f"{NAMESPACE}/both", "--snapshot", str(file), "-o", "json"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )

    assert json.loads(ended.stdout) == _explained(plane, "both")


def test_a_pod_that_is_not_there_is_one_clear_line(plane: AuditedPlane) -> None:
    ended = _run(plane, "explain", "pod", f"{NAMESPACE}/spred")

    assert ended.returncode == 1
    assert ended.stderr == "Error: pod default/spred not found; there is default/spread\n"
