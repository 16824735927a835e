"""What signals do: SIGTERM drains, a second one ends at once, SIGUSR2 dumps, SIGHUP reads."""

from __future__ import annotations

import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.support.waiting import until

from .control_plane import ControlPlane
from .replicas import run_patched
from .scheduler_process import (
    all_pods,
    configuration,
    events_of,
    node,
    pod,
    pods_path,
    run_command,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)
from .serving_callers import LOOPBACK

pytestmark = pytest.mark.usefixtures("clean_cluster")

#: Bindings take their time on the way to the API server.
_SLOW_BINDINGS = """
import asyncio
from kubesched.scheduler.api_calls import ApiCalls

bind = ApiCalls.bind

async def slowly(self, pod, node_name):
    await asyncio.sleep({seconds})
    await bind(self, pod, node_name)

ApiCalls.bind = slowly
"""

# ---------------------------------------------------------------------- SIGTERM


def _bound(plane: ControlPlane, namespace: str) -> int:
    return sum(bool(each["spec"].get("nodeName")) for each in all_pods(plane, namespace))


def test_bindings_under_way_are_finished(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    plane, count = control_plane, 20
    plane.create_many("/api/v1/nodes", [node("n1")])
    # All there before it starts: the last is not to come after the first was bound.
    plane.create_many(pods_path(namespace), [pod(f"p{number}") for number in range(count)])
    config = configuration(plane.scheduler_kubeconfig)
    code = _SLOW_BINDINGS.format(seconds=3.0)
    with run_patched(tmp_path, code, config, "--secure-port=0", "--v=3") as scheduler:
        attempted = '"Attempting to schedule pod"'
        until(lambda: scheduler.log().count(attempted) == count)
        assert _bound(plane, namespace) == 0
        started = time.monotonic()
        code_of_exit = scheduler.terminate(seconds=10)
        took_s = time.monotonic() - started
        assert code_of_exit == 0
        assert took_s < 8, "it waited for more than what was under way"
    assert _bound(plane, namespace) == count
    # What was done is told, too.
    told = {each["regarding"]["name"] for each in events_of(plane, namespace)}
    assert len(told) == count


def test_what_takes_too_long_is_given_up(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [node("n1")])
    code = "from kubesched import app\napp.DRAIN_TIMEOUT_S = 1.0\n"
    code += _SLOW_BINDINGS.format(seconds=60)
    config = configuration(plane.scheduler_kubeconfig)
    with run_patched(tmp_path, code, config, "--secure-port=0", "--v=3") as scheduler:
        scheduler.wait_until_scheduling()
        plane.request("POST", pods_path(namespace), pod("p"))
        scheduler.wait_for_log('"Attempting to schedule pod"')
        assert scheduler.terminate(seconds=6) == 0
        assert "Traceback" not in scheduler.log()
    assert _bound(plane, namespace) == 0


@pytest.mark.parametrize("moment_s", [0.0, 0.008, 0.016, 0.024])
def test_a_signal_in_the_midst_of_connecting_leaves_no_traceback(
    control_plane: ControlPlane, tmp_path: Path, moment_s: float
) -> None:
    """Right after it begins to ask for the lease, many connections are being made."""
    flags = (f"--kubeconfig={control_plane.scheduler_kubeconfig}", "--secure-port=0")
    with run_command(tmp_path / "scheduler.log", *flags) as scheduler:
        scheduler.wait_for_log("Attempting to acquire leader lease")
        time.sleep(moment_s)  # moments are what is tested
        scheduler.interrupt()
        until(lambda: not scheduler.is_running)
        assert "Fatal" not in scheduler.log()
        assert "Traceback" not in scheduler.log()


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, second: int
) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [node("n1")])
    config = configuration(plane.scheduler_kubeconfig)
    code = _SLOW_BINDINGS.format(seconds=60)
    with run_patched(tmp_path, code, config, "--secure-port=0", "--v=3") as scheduler:
        scheduler.wait_until_scheduling()
        plane.request("POST", pods_path(namespace), pod("p"))
        scheduler.wait_for_log('"Attempting to schedule pod"')
        scheduler.send(signal.SIGTERM)
        time.sleep(0.5)  # time in which it could end
        assert scheduler.is_running, "it drains"
        started = time.monotonic()
        scheduler.send(second)
        assert scheduler.wait_for_end(seconds=5) == 1
        assert time.monotonic() - started < 2


# ---------------------------------------------------------------------- SIGUSR2


def test_state_and_queue_are_dumped_and_compared(
    control_plane: ControlPlane, namespace: str
) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [node("n1"), node("n2", unschedulable=True)])
    with run_scheduler(plane) as scheduler:
        scheduler.wait_until_scheduling()
        # The one that is refused comes last: then the scheduler has heard of all the others.
        plane.request("POST", pods_path(namespace), pod("gated", schedulingGates=[{"name": "a/b"}]))
        plane.request("POST", pods_path(namespace), pod("others", schedulerName="another"))
        plane.request("POST", pods_path(namespace), pod("placed", requests={"cpu": "1500m"}))
        plane.request("POST", pods_path(namespace), pod("waiting", nodeSelector={"no": "where"}))
        wait_until_bound(plane, namespace, "placed")
        wait_until_refused(plane, namespace, "waiting")
        scheduler.send(signal.SIGUSR2)
        scheduler.wait_for_log('"Cache matches the API server" kind="pods"')
        log = scheduler.log()

    dump = log[log.index('"Dump of cached NodeInfo"') :]
    nodes, _, rest = dump.partition('"Dump of scheduling queue"')
    for text in ("Node name: n1", "Node name: n2", "'cpu': 1500", "name: placed, "):
        assert text in nodes, text
    assert "name: waiting" not in nodes
    assert "activeQ:0; backoffQ:0; unschedulableEntities:2" in rest
    assert "name: waiting, " in rest
    assert "name: gated, " in rest
    assert "name: others" not in rest
    assert '"Cache matches the API server" kind="nodes" count=2' in rest
    assert '"Cache matches the API server" kind="pods" count=3' in rest
    assert "Cache mismatch" not in log


#: A scheduler that overlooks a node and a pod, and remembers a node that never was.
_CONFUSED = """
from kubesched.scheduler.handlers import NodeHandler, PodHandler

node_added, pod_added = NodeHandler.on_add, PodHandler.on_add

def on_node(self, obj, initial):
    if obj.metadata.name == "overlooked":
        return
    if obj.metadata.name == "n1":
        from msgspec.structs import replace
        node_added(self, replace(obj, metadata=replace(obj.metadata, name="imagined")), initial)
    node_added(self, obj, initial)

def on_pod(self, obj, initial):
    if obj.metadata.name != "overlooked":
        pod_added(self, obj, initial)

NodeHandler.on_add, PodHandler.on_add = on_node, on_pod
"""


def test_a_mismatch_is_named(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [node("n1"), node("overlooked")])
    overlooked = plane.request("POST", pods_path(namespace), pod("overlooked"))
    config = configuration(plane.scheduler_kubeconfig)
    with run_patched(tmp_path, _CONFUSED, config, "--secure-port=0") as scheduler:
        scheduler.wait_until_scheduling()
        scheduler.send(signal.SIGUSR2)
        uid = overlooked["metadata"]["uid"]
        scheduler.wait_for_log(f'"Cache mismatch" missedPods=["{uid}"] redundantPods=[]')
        nodes = '"Cache mismatch" missedNodes=["overlooked"] redundantNodes=["imagined"]'
        assert nodes in scheduler.log()
        assert scheduler.terminate() == 0


def test_dumps_do_not_disturb(control_plane: ControlPlane, namespace: str) -> None:
    """A scheduler that is asked again and again goes on with its work."""
    plane = control_plane
    plane.create_many("/api/v1/nodes", [node(f"n{number}") for number in range(10)])
    with run_scheduler(plane) as scheduler:
        scheduler.wait_until_scheduling()
        done = threading.Event()

        def ask() -> None:
            while not done.wait(0.05):
                scheduler.send(signal.SIGUSR2)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            plane.create_many(pods_path(namespace), [pod(f"p{number}") for number in range(50)])
            wait_until_bound(plane, namespace)
            until(lambda: scheduler.log().count('"Dump of scheduling queue"') > 1)
        finally:
            done.set()
            asking.join()
        assert scheduler.log_lines("E") == []


# ---------------------------------------------------------------------- SIGHUP


def test_there_is_no_file_to_read_again(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    plane = control_plane
    plane.create_many("/api/v1/nodes", [node("n1")])
    flags = (
        f"--kubeconfig={plane.scheduler_kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
    )
    with run_command(tmp_path / "scheduler.log", *flags) as scheduler:
        scheduler.wait_until_scheduling()
        scheduler.send(signal.SIGHUP)
        scheduler.wait_for_log('"There is no configuration file to reload: start with --config"')
        assert len(scheduler.log_lines("W")) == 1
        plane.request("POST", pods_path(namespace), pod("p"))
        wait_until_bound(plane, namespace, "p")


def test_signals_while_the_api_server_is_away(control_plane: ControlPlane, tmp_path: Path) -> None:
    """Neither SIGHUP nor SIGUSR2 ends a scheduler that has not found its API server yet."""
    kubeconfig = tmp_path / "kubeconfig"
    text = control_plane.scheduler_kubeconfig.read_text()
    flags = (f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0")
    # Bound, so that nobody else has the port; not listening, so that nobody answers.
    with socket.socket() as silent:
        silent.bind((LOOPBACK, 0))
        url = f"https://{LOOPBACK}:{silent.getsockname()[1]}"
        kubeconfig.write_text(text.replace(control_plane.url, url))
        with run_command(tmp_path / "scheduler.log", *flags) as scheduler:
            scheduler.wait_for_log('"Waiting for the API server"')
            scheduler.send(signal.SIGHUP)
            scheduler.send(signal.SIGUSR2)
            scheduler.wait_for_log('"Cache comparer could not read the cluster"')
            assert scheduler.is_running
