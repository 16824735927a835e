"""Pods of groups, which this version cannot place together: they wait, and say why.

Only with the gate by which kube-scheduler heeds groups, on an API server that has them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .control_plane import ControlPlane, JsonObject
from .replicas import free_port, page, serving
from .scheduler_process import (
    condition_of,
    environment,
    node,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)

GATES = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
UNSUPPORTED = (
    'pod group "training": groups are not supported by this version of kubesched; without the '
    "feature gate GenericWorkload, pods are scheduled one by one"
)
GROUPED: JsonObject = {"schedulingGroup": {"podGroupName": "training"}}
NAMESPACE = "default"


@pytest.fixture(scope="module")
def plane(assets: Path) -> Iterator[ControlPlane]:
    """An API server with pod groups."""
    with ControlPlane(
        assets,
        feature_gates=GATES,
        runtime_config="scheduling.k8s.io/v1alpha2=true",
    ) as started:
        started.request("POST", "/api/v1/nodes", node("n1"))
        yield started


@pytest.fixture(autouse=True)
def _fresh(plane: ControlPlane) -> Iterator[None]:
    yield
    plane.purge(pods_path(NAMESPACE))


def create(plane: ControlPlane, name: str, spec: JsonObject) -> None:
    made = pod(name)
    plane.request("POST", pods_path(NAMESPACE), {**made, "spec": {**made["spec"], **spec}})


def test_with_the_gate_a_pod_of_a_group_waits_and_says_why(plane: ControlPlane) -> None:
    port = free_port()
    with run_scheduler(plane, None, *serving(plane, port), f"--feature-gates={GATES}") as scheduler:
        create(plane, "member", GROUPED)
        said = wait_until_refused(plane, NAMESPACE, "member")
        create(plane, "alone", {})
        assert wait_until_bound(plane, NAMESPACE, "alone") == {"alone": "n1"}

        condition = condition_of(plane, NAMESPACE, "member")
        assert condition is not None
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        assert said.startswith(f"0/1 nodes are available: {UNSUPPORTED}.")
        told = (
            "feature gates that have no effect in kubesched: TopologyAwareWorkloadScheduling=true"
        )
        assert sum(told in line for line in scheduler.log_lines()) == 1
        assert "\n  TopologyAwareWorkloadScheduling=true\n" in page(plane, port, "/statusz").body

    arguments = ["explain", "pod", f"{NAMESPACE}/member", f"--feature-gates={GATES}", "-o", "json"]
    explained = subprocess.run(
        [
            *(sys.executable, "-m", "kubesched.cli.kubesched", *arguments),
            f"--kubeconfig={plane.admin_kubeconfig}",
        ],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    assert UNSUPPORTED in json.loads(explained.stdout)["message"]


def test_without_the_gate_the_group_is_ignored_as_in_kube_scheduler(plane: ControlPlane) -> None:
    with run_scheduler(plane):
        create(plane, "member", GROUPED)
        assert wait_until_bound(plane, NAMESPACE, "member") == {"member": "n1"}
