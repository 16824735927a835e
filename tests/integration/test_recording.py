"""Recordings of whole runs: replayed they give the very same placements, even after kill -9."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.app import App
from kubesched.client.access import ClusterAccess
from kubesched.clock import RealClock
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.embedded import EmbeddedCluster, NodeTemplate
from kubesched.recording.opening import open_journal
from kubesched.recording.options import RecordingOptions
from kubesched.recording.reader import Recording
from kubesched.replay.moments import Moments
from kubesched.replay.replaying import Replay, ReplayOptions
from kubesched.scheduler.engine import EngineOptions
from tests.support.waiting import eventually, until

from .control_plane import ControlPlane
from .scheduler_process import (
    all_pods,
    configuration,
    environment,
    node,
    pod,
    pods_path,
    profile,
    run_scheduler,
    run_to_its_end,
)

pytestmark = pytest.mark.slow

ZONE = "topology.kubernetes.io/zone"
_REPLAY = (sys.executable, "-W", "error", "-m", "kubesched.cli.kubesched", "replay")


# --- ten thousand pods ------------------------------------------------------------------------


def workload(count: int) -> list[dict[str, Any]]:
    """Pods of several kinds, some of which spread, some of which fit nowhere."""
    pods = []
    for number in range(count):
        app = f"app-{number % 7}"
        made = pod(
            f"p{number}",
            requests={"cpu": ("10m", "50m", "100m")[number % 3], "memory": "32Mi"},
            labels={"app": app},
        )
        made["metadata"]["namespace"] = "default"
        if number % 50 == 0:
            made["spec"]["topologySpreadConstraints"] = [
                {
                    "maxSkew": 5,
                    "topologyKey": ZONE,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": app}},
                }
            ]
        if number % 1000 == 999:
            made["spec"]["nodeSelector"] = {"no": "where"}
        pods.append(made)
    return pods


async def recorded_run(path: Path, pods: list[dict[str, Any]]) -> dict[str, str]:
    """Schedule pods, recorded, on an API server in this process; return node by uid."""
    gates = FeatureGates.of({})
    config = SchedulerConfiguration.default(gates)
    config = replace(config, client_connection=replace(config.client_connection, qps=0.0))
    placed: dict[str, str] = {}
    hopeless = sum("nodeSelector" in each["spec"] for each in pods)
    async with EmbeddedCluster(run_kubelet=False) as cluster:
        cluster.add_nodes(180, NodeTemplate(zones=("a", "b", "c")))
        cluster.create_all(pods)
        with open_journal(RecordingOptions(path=str(path)), RealClock()) as journal:
            options = EngineOptions(
                on_bound=lambda each, name: placed.__setitem__(each.info.uid, name)
            )
            access = ClusterAccess.plain(cluster.url)
            app = App(config, gates, access, observer=journal, options=options)
            running = asyncio.create_task(app.run())
            try:
                expected = len(pods) - hopeless
                await eventually(lambda: len(placed) >= expected, seconds=240, every=0.05)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
    return placed


def test_ten_thousand_pods_are_placed_exactly_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "run"
    placed = asyncio.run(recorded_run(path, workload(10_000)))
    assert len(placed) == 9990

    recording = Recording.open(path)
    assert not recording.cut_off
    replay = Replay(recording, ReplayOptions())
    said = replay.run()
    assert said.decisions >= 10_000
    assert (said.same, said.different) == (said.decisions, 0)
    again = replay.state.placements()
    assert {uid: again.get(uid) for uid in placed} == placed
    # Compact: a few hundred bytes a pod, whatever it went through.
    assert path.stat().st_size < 10_000 * 400


# --- processes --------------------------------------------------------------------------------


def replayed(path: Path, *flags: str) -> dict[str, Any]:
    """Run ``kubesched replay`` as anybody would."""
    done = subprocess.run(
        [*_REPLAY, str(path), "-o", "json", *flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment(),
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def create(plane: ControlPlane, namespace: str, count: int) -> None:
    nodes = [node(f"n{i}", labels={ZONE: f"z{i % 3}"}) for i in range(count // 10)]
    plane.create_many("/api/v1/nodes", nodes)
    pods = []
    for number in range(count):
        spec: dict[str, Any] = {"nodeSelector": {"no": "where"}} if number % 40 == 0 else {}
        pods.append(pod(f"p{number}", requests={"cpu": "350m"}, **spec))
    plane.create_many(pods_path(namespace), pods)


def bound(plane: ControlPlane, namespace: str) -> dict[str, str]:
    return {
        each["metadata"]["uid"]: each["spec"]["nodeName"]
        for each in all_pods(plane, namespace)
        if each["spec"].get("nodeName")
    }


@pytest.mark.usefixtures("clean_cluster")
def test_a_recording_of_a_killed_process_is_good_up_to_its_last_flush(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    with run_scheduler(control_plane, None, f"--record={path}", "--v=2") as scheduler:
        scheduler.wait_until_scheduling()
        create(control_plane, namespace, 2000)
        until(lambda: len(bound(control_plane, namespace)) >= 600, seconds=60)
        # What was decided more than a second ago is on the disk.
        known = set(bound(control_plane, namespace))
        time.sleep(1.5)  # a second and a half: how much a crash may cost is what is tested
        scheduler.kill()
    placed = bound(control_plane, namespace)

    recording = Recording.open(path)
    assert recording.cut_off
    assert recording.damage == ""
    decided = {each.uid: each.node for each in recording.decisions() if each.node}
    assert known <= decided.keys()
    assert {uid: decided[uid] for uid in placed if uid in decided}.items() <= placed.items()
    assert any(not each.node for each in recording.decisions())

    said = replayed(path)
    assert said["cutOff"]
    assert said["decisions"] == said["same"] >= 600
    # The web page and others look at single moments of it.
    snapshot = Moments(recording).snapshot_at(recording.entries)
    there = {each.metadata.uid: each.spec.node_name for each in snapshot.pods}
    assert {uid: there[uid] for uid in known} == {uid: placed[uid] for uid in known}


@pytest.mark.usefixtures("clean_cluster")
def test_a_process_that_ends_well_closes_its_recording_and_the_next_puts_it_aside(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    flags = (f"--record={path}", "--record-redact", "--record-max-size=8Mi", "--record-files=2")
    with run_scheduler(control_plane, None, *flags) as scheduler:
        create(control_plane, namespace, 200)
        until(lambda: len(bound(control_plane, namespace)) == 195)
        assert scheduler.terminate() == 0
    with run_scheduler(control_plane, None, *flags) as scheduler:
        scheduler.wait_until_scheduling()
        assert scheduler.terminate() == 0
    first, second = Recording.open(f"{path}.1"), Recording.open(path)
    assert not first.cut_off
    assert not second.cut_off
    assert first.header.run != second.header.run
    said = replayed(Path(f"{path}.1"))
    assert said["redacted"]
    assert said["decisions"] == said["same"] >= 200
    # What the second found was there before it began, and is in it.
    pods = Moments(second).snapshot_at(second.entries).pods
    assert sum(bool(each.spec.node_name) for each in pods) == 195
    assert not any(each.metadata.namespace == namespace for each in pods)


@pytest.mark.usefixtures("clean_cluster")
def test_preemption_and_a_new_configuration_are_replayed(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    plane = control_plane
    plane.create_many("/api/v1/nodes", [node(f"n{i}", allocatable={"cpu": "1"}) for i in range(5)])
    important = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"important-{namespace}"},
        "value": 1000,
    }
    plane.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", important)
    config = configuration(plane.scheduler_kubeconfig)
    quick: dict[str, Any] = {"terminationGracePeriodSeconds": 0}
    with run_scheduler(plane, config, f"--record={path}") as scheduler:
        scheduler.wait_until_scheduling()
        low = [pod(f"low{i}", requests={"cpu": "900m"}, **quick) for i in range(5)]
        plane.create_many(pods_path(namespace), low)
        until(lambda: len(bound(plane, namespace)) == 5)
        packing = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
        args = {"NodeResourcesFit": {"scoringStrategy": packing}}
        newest = max(plane.folder.glob("kubesched-*.json"), key=lambda each: each.stat().st_mtime)
        newest.write_text(json.dumps(configuration(plane.scheduler_kubeconfig, profile(args=args))))
        scheduler.wait_for_log("Configuration in use", seconds=15)
        high = pod(
            "high", requests={"cpu": "900m"}, priorityClassName=f"important-{namespace}", **quick
        )
        plane.request("POST", pods_path(namespace), high)

        def preempted() -> bool:
            found = {each["metadata"]["name"]: each for each in all_pods(plane, namespace)}
            return bool(found["high"]["spec"].get("nodeName"))

        until(preempted, seconds=30)
        assert scheduler.terminate() == 0
    plane.request("DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/important-{namespace}")
    said = replayed(path)
    assert said["decisions"] == said["same"] >= 7
    assert said["preemptions"] == {"decisions": 1, "victims": 1}
    forms = {type(each).__name__ for each in Recording.open(path).state()[1]}
    assert "Configured" in forms


def test_a_file_that_is_no_recording_is_refused_before_anything_begins(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("mine")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{}")
    done = run_to_its_end(f"--record={path}", "--master=https://127.0.0.1:1", "--secure-port=0")
    assert done.returncode == 1
    assert "there is a file that is no recording; name another" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_text() == "mine"
