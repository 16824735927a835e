"""Beside another scheduler, on a real API server: both give away the same room.

A plugin of the test holds pods back between decision and binding. Meanwhile the test binds a pod to
their node, as another scheduler would, and waits until the watch has shown it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject
from .device_cluster import DeviceCluster
from .pod_groups import GATES, RUNTIME_CONFIG, create_gang, create_members, nodes_of
from .scheduler_process import (
    SchedulerProcess,
    assert_no_node_is_overcommitted,
    configuration,
    delete_pod,
    events_of,
    node,
    node_of,
    pod,
    pods_path,
    profile,
    run_scheduler,
    wait_until_bound,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")

RACE = "Node is oversubscribed, because another scheduler took the same room"
REJECTED = (
    'running Bind plugin "DefaultBinder": node "n0" changed before the pod was bound: '
    "Insufficient cpu"
)


@pytest.fixture(scope="module")
def control_plane(assets: Path) -> Iterator[ControlPlane]:
    """A control plane that serves pod groups."""
    with ControlPlane(assets, feature_gates=GATES, runtime_config=RUNTIME_CONFIG) as plane:
        yield plane


class Holding:
    """A scheduler whose pods are held back after all other PreBind plugins."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self.plane = plane
        self.namespace = namespace
        self._go_on = folder / "go-on"
        self._arrived = folder / "arrived"
        self._plugin = folder / "held.py"
        self._plugin.write_text(
            textwrap.dedent(
                f"""\
                import asyncio
                from pathlib import Path

                from kubesched.framework.plugin import PreBind
                from kubesched.framework.status import SUCCESS

                class Held(PreBind):
                    name = "Held"

                    async def pre_bind(self, state, pod, node_name):
                        with Path({str(self._arrived)!r}).open("a") as arrived:
                            arrived.write(pod.full_name + "\\n")
                        while not Path({str(self._go_on)!r}).exists():
                            await asyncio.sleep(0.01)
                        return SUCCESS
                """
            )
        )

    @contextmanager
    def running(self, state: str) -> Iterator[SchedulerProcess]:
        plugins = {"multiPoint": {"enabled": [{"name": "Held"}]}}
        settings = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
        config = configuration(
            self.plane.scheduler_kubeconfig, profile(plugins=plugins), **settings
        )
        flags = (
            f"--plugin={self._plugin}",
            f"--check-before-binding={state}",
            f"--feature-gates={GATES}",
        )
        with run_scheduler(self.plane, config, *flags) as scheduler:
            yield scheduler

    def wait_for(self, count: int) -> None:
        """Wait until so many pods are held back."""

        def held() -> bool:
            return self._arrived.exists() and len(self._arrived.read_text().splitlines()) == count

        until(held)

    def let_go(self) -> None:
        """Let all pods go on, from now on."""
        self._go_on.touch()

    def take(self, scheduler: SchedulerProcess, node_name: str) -> None:
        """Bind a pod of another scheduler, and wait until ours has seen it."""
        self.plane.request("POST", pods_path(self.namespace), theirs(node_name))
        scheduler.wait_for_log(RACE)

    def wait_for_event(self, name: str, note: str) -> None:
        """Wait until a pod's events say something."""
        until(
            lambda: note in [each["note"] for each in events_of(self.plane, self.namespace, name)]
        )


def theirs(node_name: str) -> JsonObject:
    spec: JsonObject = {
        "schedulerName": "theirs",
        "nodeName": node_name,
        "terminationGracePeriodSeconds": 0,
    }
    return pod("theirs", requests={"cpu": "3"}, **spec)


@pytest.fixture
def holding(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Holding:
    return Holding(control_plane, namespace, tmp_path)


def create(plane: ControlPlane, namespace: str, name: str) -> None:
    plane.request("POST", pods_path(namespace), pod(name, requests={"cpu": "2"}))


def test_without_a_check_the_race_is_counted_and_logged(
    control_plane: ControlPlane, namespace: str, holding: Holding
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n0"))
    with holding.running("none") as scheduler:
        create(control_plane, namespace, "ours")
        holding.wait_for(1)
        holding.take(scheduler, "n0")
        holding.let_go()
        wait_until_bound(control_plane, namespace, "ours")
        (line,) = [each for each in scheduler.log_lines("W") if RACE in each]
    assert line.endswith(
        f'node="n0" resource="cpu" pod="{namespace}/ours" otherPod="{namespace}/theirs" '
        'otherScheduler="theirs"'
    )
    with pytest.raises(AssertionError):
        assert_no_node_is_overcommitted(control_plane)


@pytest.mark.parametrize("state", ["cache", "live"])
def test_a_pod_whose_room_was_taken_is_not_bound_there(
    control_plane: ControlPlane, namespace: str, holding: Holding, state: str
) -> None:
    control_plane.request("POST", "/api/v1/nodes", node("n0"))
    with holding.running(state) as scheduler:
        create(control_plane, namespace, "ours")
        holding.wait_for(1)
        holding.take(scheduler, "n0")
        holding.let_go()
        holding.wait_for_event("ours", REJECTED)
        assert node_of(control_plane, namespace, "ours") == ""
        delete_pod(control_plane, namespace, "theirs")
        wait_until_bound(control_plane, namespace, "ours")
    assert_no_node_is_overcommitted(control_plane)


def test_the_devices_of_a_pod_that_is_turned_back_are_given_up(
    control_plane: ControlPlane, namespace: str, holding: Holding
) -> None:
    """Its claim was allocated before the check; on the next node it gets a device of that one."""
    cluster = DeviceCluster(control_plane, namespace)
    cluster.publish("n0", [{"name": "a"}])
    with holding.running("cache") as scheduler:
        cluster.claim("ours")
        cluster.pod("ours", requests={"cpu": "2"})
        holding.wait_for(1)
        cluster.wait_for_devices("ours", "a")
        holding.take(scheduler, "n0")
        control_plane.request("POST", "/api/v1/nodes", node("n1"))
        cluster.publish("n1", [{"name": "b"}])
        holding.let_go()
        holding.wait_for_event("ours", REJECTED)
        assert wait_until_bound(control_plane, namespace, "ours") == {"ours": "n1"}
    assert cluster.devices_of("ours") == ["b"]


def test_a_member_of_a_gang_that_is_turned_back_is_tried_again(
    control_plane: ControlPlane, namespace: str, holding: Holding
) -> None:
    for name in ("n0", "n1"):
        control_plane.request("POST", "/api/v1/nodes", node(name))
    with holding.running("cache") as scheduler:
        create_gang(control_plane, namespace, "g", 2)
        create_members(control_plane, namespace, "a", "b", cpu="3")
        holding.wait_for(2)
        holding.take(scheduler, "n0")
        holding.let_go()
        bound = until(
            lambda: nodes_of(control_plane, namespace).items() & {("a", "n1"), ("b", "n1")}
        )
        other = "b" if ("a", "n1") in bound else "a"
        holding.wait_for_event(other, REJECTED)
        delete_pod(control_plane, namespace, "theirs")
        assert wait_until_bound(control_plane, namespace, other) == {other: "n0"}
    assert_no_node_is_overcommitted(control_plane)
