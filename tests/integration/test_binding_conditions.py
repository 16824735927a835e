"""Devices that drivers get ready for a node first: met, failed, timed out, and what comes after."""

from __future__ import annotations

import pytest

from tests.support.waiting import until

from .control_plane import ControlPlane
from .device_cluster import DeviceCluster
from .scheduler_process import (
    configuration,
    events_of,
    node_of,
    profile,
    run_scheduler,
    wait_until_bound,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")

READY, FAILED = "example.com/ready", "example.com/failed"
CONDITIONED = {
    "name": "conditioned",
    "bindingConditions": [READY],
    "bindingFailureConditions": [FAILED],
}
PLAIN = {"name": "plain"}
#: Conditions are looked at when the claim changes, and every five seconds.
PATIENCE = 40


def timeout(plane: ControlPlane, duration: str) -> dict[str, object]:
    args = {"DynamicResources": {"bindingTimeout": duration}}
    return configuration(plane.scheduler_kubeconfig, profile(args=args))


def test_a_pod_is_bound_when_its_devices_are_ready(
    control_plane: ControlPlane, namespace: str
) -> None:
    cluster = DeviceCluster(control_plane, namespace)
    cluster.publish("a-conditioned", [CONDITIONED], nodeName="n0")
    cluster.publish("b-plain", [PLAIN], nodeName="n0")
    with run_scheduler(control_plane):
        cluster.claiming_pod("first")
        wait_until_bound(control_plane, namespace, "first")
        assert cluster.devices_of("first") == ["plain"]  # no pod waits for it
        cluster.claiming_pod("second")
        cluster.wait_for_devices("second", "conditioned")
        result = cluster.status("second")["allocation"]["devices"]["results"][0]
        assert result["bindingConditions"] == [READY]
        assert result["bindingFailureConditions"] == [FAILED]
        assert cluster.status("second")["allocation"]["allocationTimestamp"]
        until(lambda: _reasons(control_plane, namespace) >= {"BindingConditionsPending"})
        assert node_of(control_plane, namespace, "second") == ""
        cluster.report("second", "a-conditioned", "conditioned", FAILED)
        # The devices are given up, and the same ones are tried again: there are no others.
        until(lambda: not cluster.status("second").get("devices"), seconds=PATIENCE)
        cluster.wait_for_devices("second", "conditioned", seconds=PATIENCE)
        cluster.report("second", "a-conditioned", "conditioned", READY)
        wait_until_bound(control_plane, namespace, "second", seconds=PATIENCE)
    assert [each["name"] for each in cluster.status("second")["reservedFor"]] == ["second"]


@pytest.mark.parametrize("is_tainted", [True, False])
def test_a_device_that_fails_is_replaced_on_another_node(
    control_plane: ControlPlane, namespace: str, *, is_tainted: bool
) -> None:
    cluster = DeviceCluster(control_plane, namespace, nodes=2)
    cluster.publish("n0", [CONDITIONED])
    with run_scheduler(control_plane):
        cluster.claiming_pod("p")
        cluster.wait_for_devices("p", "conditioned")
        taint = {"key": "example.com/preparation-failed", "effect": "NoSchedule"}
        cluster.publish("n0", [{**CONDITIONED, "taints": [taint]}] if is_tainted else [])
        cluster.publish("n1", [PLAIN])
        cluster.report("p", "n0", "conditioned", FAILED)
        cluster.wait_for_devices("p", "plain", seconds=PATIENCE)
        assert wait_until_bound(control_plane, namespace, "p") == {"p": "n1"}
    failures = [each["note"] for each in events_of(control_plane, namespace, "p")]
    assert any("device binding failed: claim=p, reason=Testing" in each for each in failures)


@pytest.mark.slow
def test_drivers_that_take_too_long(control_plane: ControlPlane, namespace: str) -> None:
    cluster = DeviceCluster(control_plane, namespace)
    cluster.publish("a-conditioned", [CONDITIONED], nodeName="n0")
    with run_scheduler(control_plane, timeout(control_plane, "5s")):
        cluster.claiming_pod("p")
        cluster.wait_for_devices("p", "conditioned")
        said = cluster.wait_until_told("p", "device binding timeout", seconds=PATIENCE)
        assert node_of(control_plane, namespace, "p") == "", said
        cluster.publish("b-plain", [PLAIN], nodeName="n0")
        cluster.wait_for_devices("p", "plain", seconds=PATIENCE)
        wait_until_bound(control_plane, namespace, "p", seconds=PATIENCE)


def _reasons(plane: ControlPlane, namespace: str) -> set[str]:
    return {each["reason"] for each in events_of(plane, namespace)}
