"""The scheduler under test as a process of its own, and what the tests give it to do.

    configuration ──> file ──> run_scheduler: python -m kubesched.cli.kube_scheduler --config file
    node(), pod() ──> control plane <──────────────┘ its log goes with a test's failure

A scheduler that a test does not end itself must end well: on SIGTERM, with code 0, in time, and
without a traceback in its log. Python's warnings are errors in it as they are in the tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubesched
from kubesched.bench.processes import LAUNCHER
from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject, Process

DEFAULT_SCHEDULER = "default-scheduler"

#: What a scheduler may take to end after SIGTERM if it has work under way: the events that a crash
#: of the API server held up are tried again after ten seconds.
TERMINATION_SECONDS = 15.0

_COMMAND = (sys.executable, "-W", "error", "-m", "kubesched.cli.kube_scheduler")


# ---------------------------------------------------------------------- configuration


def profile(
    scheduler_name: str = DEFAULT_SCHEDULER,
    *,
    plugins: JsonObject | None = None,
    args: dict[str, JsonObject] | None = None,
) -> JsonObject:
    """The default profile with changes; `args` are by plugin name."""
    return {
        "schedulerName": scheduler_name,
        "plugins": plugins or {},
        "pluginConfig": [{"name": name, "args": each} for name, each in (args or {}).items()],
    }


def configuration(kubeconfig: Path, *profiles: JsonObject, **settings: object) -> JsonObject:
    """A KubeSchedulerConfiguration for either scheduler, fast enough not to be what is tested."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
        "leaderElection": {"leaderElect": False},
        "profiles": list(profiles or [profile()]),
        **settings,
    }


# ---------------------------------------------------------------------- process


class SchedulerProcess:
    """A scheduler that runs, or ran, and its log."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._popen = process.popen

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._popen.poll() is None

    @property
    def log_file(self) -> Path:
        """Where it logs."""
        return self._process.log

    def log(self) -> str:
        """All that it logged until now."""
        return self._process.log.read_text(errors="replace")

    def log_lines(self, severities: str = "EWF") -> list[str]:
        """The lines of the log of some severities, by default those that report trouble."""
        return [line for line in self.log().splitlines() if line[:1] in severities]

    def wait_until_scheduling(self) -> None:
        """Return when it has read the cluster and begun with the first pod."""
        self.wait_for_log('"Sync completed"')

    def wait_for_log(self, text: str, *, seconds: float = 20) -> None:
        """Return when the log has a text; fail at once if the process ends before."""

        def logged() -> bool:
            running = self.is_running
            return text in self.log() or _fail_unless(running, f"ended without logging {text!r}")

        until(logged, seconds=seconds)

    def send(self, number: int) -> None:
        """Send it a signal."""
        self._popen.send_signal(number)

    def interrupt(self) -> None:
        """Ask it to end with SIGINT, and do not wait for that."""
        self.send(signal.SIGINT)

    def wait_for_end(self, *, seconds: float) -> int:
        """Wait until it ends by itself; return its exit code."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {seconds:g} s") from None

    def terminate(self, *, seconds: float = TERMINATION_SECONDS) -> int:
        """Ask it to end with SIGTERM; return its exit code, or fail if that takes too long."""
        self._popen.terminate()
        return self._popen.wait(seconds)

    def kill(self) -> None:
        """End it with SIGKILL, as running out of memory would."""
        self._popen.kill()
        self._popen.wait()

    def describe(self) -> str:
        """Say whether it runs and what it logged last."""
        return self._process.describe()

    def end(self, *, graceful: bool) -> None:
        """End it if it still runs: properly and with checks, or just so that it is gone."""
        try:
            if graceful:
                if self.is_running:
                    code = self.terminate()
                    assert code == 0, f"SIGTERM ended the scheduler with code {code}"
                assert "Traceback" not in self.log(), "the scheduler logged a traceback"
        finally:
            self._process.end()


def _fail_unless(holds: bool, message: str) -> bool:
    if not holds:
        raise AssertionError(message)
    return False


@contextlib.contextmanager
def run_scheduler(
    plane: ControlPlane,
    config: JsonObject | None = None,
    *flags: str,
) -> Iterator[SchedulerProcess]:
    """Run the scheduler under test; its log's end goes with a test's failure.

    It serves nothing unless `flags` name a port.
    """
    name = f"kubesched-{secrets.token_hex(3)}"
    file = plane.folder / f"{name}.json"
    file.write_text(json.dumps(config or configuration(plane.scheduler_kubeconfig)))
    with run_command(
        plane.folder / f"{name}.log", f"--config={file}", "--secure-port=0", *flags
    ) as scheduler:
        yield scheduler


@contextlib.contextmanager
def run_command(log: Path, *flags: str) -> Iterator[SchedulerProcess]:
    """Run the command with these flags and no others."""
    launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid())]
    with log.open("wb") as sink:
        popen = subprocess.Popen(
            [*launch, *_COMMAND, *flags],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env=environment(),
        )
    scheduler = SchedulerProcess(Process("kubesched", popen, log))
    graceful = False
    try:
        yield scheduler
        graceful = True
    except BaseException as error:
        error.add_note(scheduler.describe())
        raise
    finally:
        try:
            scheduler.end(graceful=graceful)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            error.add_note(scheduler.describe())
            raise


def run_to_its_end(*flags: str, seconds: float = 15) -> subprocess.CompletedProcess[str]:
    """Run the command until it exits by itself; fail if it goes on for longer than `seconds`."""
    return subprocess.run(
        [*_COMMAND, *flags],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env=environment(),
    )


def environment() -> dict[str, str]:
    """Our environment, in which the package under test is found from any folder."""
    source = str(Path(kubesched.__file__).resolve().parents[1])
    return {**os.environ, "PYTHONPATH": source}


# ---------------------------------------------------------------------- objects


def node(
    name: str,
    *,
    allocatable: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    images: list[JsonObject] | None = None,
    **spec: object,
) -> JsonObject:
    """A node of 4 CPUs for 110 pods, unless `allocatable` says otherwise."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "110", **(allocatable or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": room, "capacity": room, "images": images or []},
    }


def pod(
    name: str,
    *,
    requests: dict[str, str] | None = None,
    host_ports: tuple[int, ...] = (),
    labels: dict[str, str] | None = None,
    **spec: object,
) -> JsonObject:
    """A pod of one container; `spec` has what else its spec is to hold."""
    container: JsonObject = {"name": "c", "image": "registry.invalid/c"}
    # What cannot be overcommitted needs a limit too.
    limits = {k: v for k, v in (requests or {}).items() if "/" in k or "hugepages" in k}
    container["resources"] = {"requests": requests or {}, "limits": limits}
    container["ports"] = [{"containerPort": port, "hostPort": port} for port in host_ports]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def pods_path(namespace: str, name: str = "") -> str:
    """The API path of a namespace's pods, or of one of them."""
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


def all_pods(plane: ControlPlane, namespace: str) -> list[JsonObject]:
    """All pods of a namespace."""
    items: list[JsonObject] = plane.request("GET", pods_path(namespace))["items"]
    return items


def node_of(plane: ControlPlane, namespace: str, name: str) -> str:
    """The node that a pod is bound to, "" if it is not."""
    return str(plane.request("GET", pods_path(namespace, name))["spec"].get("nodeName", ""))


def wait_until_bound(
    plane: ControlPlane, namespace: str, *names: str, seconds: float = 20
) -> dict[str, str]:
    """Wait until these pods, or else all of the namespace, have nodes; return them by pod."""

    def placed() -> dict[str, str] | None:
        found = {
            each["metadata"]["name"]: str(each["spec"].get("nodeName", ""))
            for each in all_pods(plane, namespace)
        }
        wanted = {name: found[name] for name in names} if names else found
        return wanted if wanted and all(wanted.values()) else None

    return until(placed, seconds=seconds, every=0.1 if not names else 0.02)


def condition_of(plane: ControlPlane, namespace: str, name: str) -> JsonObject | None:
    """The PodScheduled condition of a pod, if it has one."""
    status = plane.request("GET", pods_path(namespace, name))["status"]
    conditions: list[JsonObject] = status.get("conditions", [])
    return next((each for each in conditions if each["type"] == "PodScheduled"), None)


def wait_until_refused(plane: ControlPlane, namespace: str, name: str) -> str:
    """Wait until a pod is said to be unschedulable; return why."""

    def refused() -> str | None:
        condition = condition_of(plane, namespace, name) or {}
        return condition.get("message") if condition.get("reason") == "Unschedulable" else None

    return until(refused)


def events_of(plane: ControlPlane, namespace: str, name: str = "") -> list[JsonObject]:
    """The events about the pods of a namespace, or about one of them, in their order."""
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    items: list[JsonObject] = plane.request("GET", path)["items"]
    about = [each for each in items if not name or each["regarding"]["name"] == name]
    return sorted(about, key=lambda each: str(each["eventTime"]))


def assert_no_node_is_overcommitted(plane: ControlPlane) -> None:
    """Check by sums that every bound pod has an existing node with room for all on it."""
    nodes = {
        each["metadata"]["name"]: each for each in plane.request("GET", "/api/v1/nodes")["items"]
    }
    used: dict[str, list[int]] = {}
    for each in plane.request("GET", "/api/v1/pods")["items"]:
        if name := each["spec"].get("nodeName"):
            used.setdefault(name, []).append(_requested_milli_cpu(each))
    for name, requests in used.items():
        assert name in nodes, f"{len(requests)} pods are bound to {name}, which does not exist"
        room = nodes[name]["status"]["allocatable"]
        assert sum(requests) <= _milli(room["cpu"]), f"{name}: more CPU than it has"
        assert len(requests) <= int(room["pods"]), f"{name}: more pods than it takes"


def _requested_milli_cpu(of: dict[str, Any]) -> int:
    containers = of["spec"]["containers"]
    return sum(_milli(c["resources"].get("requests", {}).get("cpu", "0")) for c in containers)


def _milli(cpu: str) -> int:
    return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000


def patch_node(plane: ControlPlane, name: str, patch: JsonObject, *, status: bool = False) -> None:
    """Change a node by a strategic merge patch of it, or of its status."""
    path = f"/api/v1/nodes/{name}" + ("/status" if status else "")
    plane.request("PATCH", path, patch, content_type="application/strategic-merge-patch+json")


def delete_pod(plane: ControlPlane, namespace: str, name: str) -> None:
    """Delete a pod at once."""
    plane.request("DELETE", pods_path(namespace, name), {"gracePeriodSeconds": 0})


def seconds_until_bound(plane: ControlPlane, namespace: str, name: str) -> float:
    """Wait until a pod is bound; return how long that took from now."""
    started = time.monotonic()
    wait_until_bound(plane, namespace, name)
    return time.monotonic() - started


def create_budget(plane: ControlPlane, namespace: str, app: str, *, allowed: int) -> None:
    """A disruption budget, with a status as the disruption controller would write it."""
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    spec = {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1}
    plane.request("POST", path, {"metadata": {"name": app}, "spec": spec})
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 1 + allowed,
        "desiredHealthy": 1,
        "expectedPods": 1 + allowed,
    }
    plane.request(
        "PATCH",
        f"{path}/{app}/status",
        {"status": status},
        content_type="application/merge-patch+json",
    )
