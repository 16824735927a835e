"""Two schedulers on the same nodes: how many nodes they oversubscribe, and what a check costs.

kube-scheduler and kubesched run side by side on a real API server. All pods are there when both are
elected at the same time: half of them name the one, half the other, and the nodes have room for
half of all pods. Then kubesched runs alone on nodes with room for all its pods. Both are repeated
for each value of --check-before-binding, by turns.

Side by side, both have the rate limits of --qps, by default those that a scheduler has by default:
so bindings wait for some time after their decisions. Alone, kubesched has no limit to speak of.

    python benchmarks/beside.py --rounds 3
    python benchmarks/beside.py --rounds 3 --qps 5000
"""

from __future__ import annotations

import argparse
import json
import re
import ssl
import statistics
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubesched.bench import assets
from kubesched.bench.control_plane import ControlPlane
from kubesched.bench.processes import LOOPBACK, Process, free_ports, spawn

STATES = ("none", "cache", "live")
OURS, THEIRS = "kubesched", "default-scheduler"
WRITERS = 8
#: The schedulers are done when no pod was bound for so long.
QUIET_S = 4.0
NO_LIMIT = 5000.0
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


@dataclass(frozen=True)
class Beside:
    """The result of two schedulers side by side."""

    oversubscribed: int
    #: bound pods for which their node has no room
    too_many: int
    ours: int
    #: what kubesched counted
    races: int
    turned_back: int


@dataclass(frozen=True)
class Alone:
    """The result of kubesched alone."""

    pods_per_s: float
    cpu_us_per_pod: float


@dataclass(frozen=True)
class _Moment:
    """How many pods kubesched has bound by when, and the CPU that it has used."""

    at_s: float
    cpu_s: float
    pods: float

    @classmethod
    def of(cls, process: Process, metrics: Callable[[], Mapping[str, float]]) -> _Moment:
        bound = metrics().get(
            f'scheduler_schedule_attempts_total{{profile="{OURS}",result="scheduled"}}', 0.0
        )
        return cls(time.monotonic(), process.cpu_seconds() or 0.0, bound)


class Bench:
    """A control plane, and a cluster of one size on it."""

    def __init__(self, plane: ControlPlane, *, nodes: int, slots: int, qps: float) -> None:
        self._plane = plane
        self._qps = qps
        self._nodes = nodes
        self._slots = slots
        # Its own role allows it the lease kube-scheduler only.
        name, group = "leases", "rbac.authorization.k8s.io"
        rule = {"apiGroups": ["coordination.k8s.io"], "resources": [name], "verbs": ["*"]}
        path = f"/apis/{group}/v1/namespaces/kube-system"
        plane.request("POST", f"{path}/roles", {"metadata": {"name": name}, "rules": [rule]})
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "system:kube-scheduler"}],
        }
        plane.request("POST", f"{path}/rolebindings", binding)

    def beside(self, state: str) -> Beside:
        """Run both schedulers until the nodes are full."""
        capacity = self._nodes * self._slots
        pods = self._pods(2 * capacity, (OURS, THEIRS))
        with (
            self._cluster(pods),
            self._theirs() as theirs,
            self._ours(state, self._qps) as (ours, metrics),
        ):
            self._elect()
            bound = self._wait(capacity, theirs, ours)
            counted = metrics()
        on_node = Counter(pod["spec"]["nodeName"] for pod in bound)
        too_many = {name: count - self._slots for name, count in on_node.items()}
        return Beside(
            oversubscribed=sum(count > 0 for count in too_many.values()),
            too_many=sum(count for count in too_many.values() if count > 0),
            ours=sum(pod["spec"]["schedulerName"] == OURS for pod in bound),
            races=int(counted.get("kubesched_oversubscription_races_total", 0)),
            turned_back=int(counted.get('kubesched_binding_checks_total{result="rejected"}', 0)),
        )

    def alone(self, state: str) -> Alone:
        """Run kubesched with room for all pods; they wait when it starts."""
        count = self._nodes * self._slots
        with (
            self._cluster(self._pods(count, (OURS,))),
            self._ours(state, NO_LIMIT) as (process, metrics),
        ):
            self._elect()
            first = last = _Moment.of(process, metrics)
            while last.pods < count:
                # Rarely: each look at its metrics costs it some milliseconds.
                time.sleep(0.1 if not first.pods else 0.5)
                last = _Moment.of(process, metrics)
                if not first.pods:
                    first = last
        pods = last.pods - first.pods
        return Alone(pods / (last.at_s - first.at_s), 1e6 * (last.cpu_s - first.cpu_s) / pods)

    # --- the cluster ----------------------------------------------------------------------------

    @contextmanager
    def _cluster(self, pods: list[dict[str, Any]]) -> Iterator[None]:
        """Have nodes, pods that wait, and no leader: another holds the leases of both."""
        self._add_nodes()
        self._post(PODS, pods)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": "the-benchmark", "leaseDurationSeconds": 3600, "renewTime": now}
        self._post(LEASES, [{"metadata": {"name": name}, "spec": spec} for name in (OURS, THEIRS)])
        try:
            yield
        finally:
            at_once = {"gracePeriodSeconds": 0}
            for path in (PODS, "/api/v1/nodes", LEASES):
                self._plane.request("DELETE", path, at_once)

    def _elect(self) -> None:
        """Let the schedulers that run be elected."""
        self._plane.request("DELETE", LEASES)

    def _add_nodes(self) -> None:
        room = {"cpu": str(self._slots), "memory": "64Gi", "pods": "110"}
        nodes = [
            {"metadata": {"name": f"n{number}"}, "status": {"allocatable": room, "capacity": room}}
            for number in range(self._nodes)
        ]
        self._post("/api/v1/nodes", nodes)

    def _pods(self, count: int, schedulers: tuple[str, ...]) -> list[dict[str, Any]]:
        resources = {"requests": {"cpu": "1"}}
        containers = [{"name": "c", "image": "registry.invalid/c", "resources": resources}]
        return [
            {
                "metadata": {"name": f"p{number}"},
                "spec": {
                    "containers": containers,
                    "schedulerName": schedulers[number % len(schedulers)],
                    "terminationGracePeriodSeconds": 0,
                },
            }
            for number in range(count)
        ]

    def _post(self, path: str, objects: list[dict[str, Any]]) -> None:
        with ThreadPoolExecutor(WRITERS) as writers:
            list(writers.map(lambda each: self._plane.request("POST", path, each), objects))

    def _bound(self) -> list[dict[str, Any]]:
        path = f"{PODS}?fieldSelector=spec.nodeName!=&resourceVersion=0"
        items: list[dict[str, Any]] = self._plane.request("GET", path)["items"]
        return items

    def _wait(self, capacity: int, *schedulers: Process) -> list[dict[str, Any]]:
        """Wait until the nodes are full and nothing is bound any more."""
        bound: list[dict[str, Any]] = []
        changed = time.monotonic()
        while len(bound) < capacity or time.monotonic() - changed < QUIET_S:
            time.sleep(0.5)
            for each in schedulers:
                if not each.is_running:
                    raise RuntimeError(each.describe())
            newest = self._bound()
            if len(newest) != len(bound):
                bound, changed = newest, time.monotonic()
        return bound

    # --- the schedulers -------------------------------------------------------------------------

    def _spawn(self, name: str, command: list[str], qps: float, *flags: str) -> Process:
        plane = self._plane
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {
                "leaderElect": True,
                "resourceName": name,
                "resourceNamespace": "kube-system",
                "leaseDuration": "15s",
                "renewDeadline": "10s",
                "retryPeriod": "500ms",
            },
            "clientConnection": {
                "kubeconfig": str(plane.scheduler_kubeconfig),
                "qps": qps,
                "burst": int(2 * qps),
            },
            "profiles": [{"schedulerName": name}],
        }
        file = plane.folder / f"{name}.json"
        file.write_text(json.dumps(config))
        log = plane.folder / f"{name}.log"
        return spawn(name, [*command, f"--config={file}", *flags], log=log)

    @contextmanager
    def _theirs(self) -> Iterator[Process]:
        binary = str(self._plane.assets / assets.KUBE_SCHEDULER)
        (port,) = free_ports(1)
        process = self._spawn(THEIRS, [binary], self._qps, *self._serving(port))
        try:
            _wait_until_ready(process, port)
            yield process
        finally:
            process.end(grace=10)

    @contextmanager
    def _ours(
        self, state: str, qps: float
    ) -> Iterator[tuple[Process, Callable[[], dict[str, float]]]]:
        """Start kubesched; yield what reads its metrics as well."""
        (port,) = free_ports(1)
        command = [sys.executable, "-m", "kubesched.cli.kube_scheduler"]
        flags = [*self._serving(port), f"--check-before-binding={state}"]
        process = self._spawn(OURS, command, qps, *flags)
        try:
            _wait_until_ready(process, port)
            yield process, lambda: _metrics(port)
        finally:
            process.end(grace=10)

    def _serving(self, port: int) -> list[str]:
        kubeconfig = self._plane.scheduler_kubeconfig
        return [
            f"--secure-port={port}",
            f"--bind-address={LOOPBACK}",
            "--authorization-always-allow-paths=/readyz,/metrics",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
        ]


def _get(port: int, path: str) -> str:
    # It has just created a self-signed certificate on this machine.
    trusting = ssl._create_unverified_context()  # noqa: S323, SLF001
    url = f"https://{LOOPBACK}:{port}{path}"
    with urllib.request.urlopen(url, context=trusting, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def _wait_until_ready(process: Process, port: int) -> None:
    while True:
        try:
            _get(port, "/readyz")
        except OSError:
            if not process.is_running:
                raise RuntimeError(process.describe()) from None
            time.sleep(0.1)
        else:
            return


def _metrics(port: int) -> dict[str, float]:
    samples = re.findall(r"^(\w+(?:{.*})?) (\S+)$", _get(port, "/metrics"), re.MULTILINE)
    return {name: float(value) for name, value in samples}


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=150)
    parser.add_argument("--slots", type=int, default=4, help="pods that a node has room for")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--qps", type=float, default=50.0, help="requests per second, side by side")
    parser.add_argument("--assets", type=Path, default=assets.folder())
    options = parser.parse_args()
    together: dict[str, list[Beside]] = {state: [] for state in STATES}
    single: dict[str, list[Alone]] = {state: [] for state in STATES}
    with ControlPlane(options.assets) as plane:
        bench = Bench(plane, nodes=options.nodes, slots=options.slots, qps=options.qps)
        for number in range(options.rounds):
            for state in STATES:
                together[state].append(bench.beside(state))
                single[state].append(bench.alone(state))
                print(f"round {number + 1}, {state}: {together[state][-1]}, {single[state][-1]}")
    print(f"\n{options.nodes} nodes with room for {options.slots} pods each; medians of rounds")
    titles = ("nodes", "pods", "ours", "races", "turned", "pods/s", "us CPU")
    print(" " * 8 + "".join(f"{title:>8}" for title in titles))
    for state in STATES:
        both, alone = together[state], single[state]
        columns = [
            *(
                statistics.median(getattr(each, name) for each in both)
                for name in ("oversubscribed", "too_many", "ours", "races", "turned_back")
            ),
            statistics.median(each.pods_per_s for each in alone),
            statistics.median(each.cpu_us_per_pod for each in alone),
        ]
        print(f"{state:8}" + "".join(f"{value:8.0f}" for value in columns))


if __name__ == "__main__":
    main()
