"""A scheduler that rests holds no more after a thousand events than after the first ones.

What happens to it then is what happens in a real cluster, as often as in hours: probes on new
connections, scrapes whose token is reviewed, heartbeats, renewals of the lease, watches that end.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubesched.bench.processes import LOOPBACK, Process, free_ports, spawn
from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject
from .scheduler_process import environment, node, patch_node

NODES = 20
#: Of each kind, in one round.
EVENTS = 100
#: Rounds after which what is bounded, and what is made once, is there.
WARM_UP = 3
ROUNDS = 3


class Weighed:
    """A scheduler that can be weighed, probed and scraped."""

    def __init__(self, plane: ControlPlane, process: Process, port: int, weights: Path) -> None:
        self._plane = plane
        self._process = process
        self._port = port
        self._weights = weights
        self._trust_all = ssl.create_default_context()
        self._trust_all.check_hostname = False
        self._trust_all.verify_mode = ssl.CERT_NONE
        self._kept = self._connection()
        admin = json.loads(plane.admin_kubeconfig.read_text())["users"][0]["user"]["token"]
        self._bearer = {"Authorization": f"Bearer {admin}"}

    def probe(self) -> None:
        """Ask on a new connection, as the kubelet does."""
        connection = self._connection()
        connection.request("GET", "/livez", headers={"Connection": "close"})
        assert connection.getresponse().read() == b"ok"
        connection.close()

    def scrape(self) -> str:
        """Ask on a connection that is kept, as Prometheus does."""
        self._kept.request("GET", "/metrics", headers=self._bearer)
        response = self._kept.getresponse()
        text = response.read().decode()
        assert response.status == 200, text
        return text

    def requests_sent(self) -> int:
        """How many requests it has sent to the API server: renewals, reviews, watches."""
        found = re.findall(r"^rest_client_requests_total\{.*\} (\d+)", self.scrape(), re.MULTILINE)
        return sum(map(int, found))

    def weigh(self) -> JsonObject:
        before = len(self._lines())
        os.kill(self._process.popen.pid, signal.SIGUSR1)
        until(lambda: len(self._lines()) > before)
        weight: JsonObject = json.loads(self._lines()[-1])
        return weight

    def close(self) -> None:
        """Close the connection that is kept."""
        self._kept.close()

    def _lines(self) -> list[str]:
        text = self._weights.read_text() if self._weights.exists() else ""
        return text.splitlines() if text.endswith("\n") else []

    def _connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            LOOPBACK, self._port, context=self._trust_all, timeout=10
        )


@pytest.fixture
def weighed(control_plane: ControlPlane, clean_cluster: None, tmp_path: Path) -> Iterator[Weighed]:
    control_plane.create_many("/api/v1/nodes", [node(f"node-{n}") for n in range(NODES)])
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(control_plane.scheduler_kubeconfig)},
        "leaderElection": {"leaderElect": True, "retryPeriod": "100ms", "resourceName": "weighed"},
    }
    file, weights = tmp_path / "config.json", tmp_path / "weights"
    file.write_text(json.dumps(config))
    (port,) = free_ports(1)
    process = spawn(
        "kubesched",
        [
            *(sys.executable, "-m", "tests.integration.weighed_scheduler", weights),
            f"--config={file}",
            f"--secure-port={port}",
            f"--bind-address={LOOPBACK}",
            f"--authentication-kubeconfig={control_plane.scheduler_kubeconfig}",
            f"--authorization-kubeconfig={control_plane.scheduler_kubeconfig}",
        ],
        log=tmp_path / "log",
        cwd=Path(__file__).resolve().parents[2],
        environment=environment(),
    )
    try:
        until(lambda: '"Sync completed"' in process.log.read_text(), seconds=30)
        with contextlib.closing(Weighed(control_plane, process, port, weights)) as weighed:
            yield weighed
    except BaseException as error:
        error.add_note(process.describe())
        raise
    finally:
        process.popen.terminate()
        try:
            process.popen.wait(15)
        except subprocess.TimeoutExpired:
            process.end()


@pytest.mark.slow
def test_nothing_grows_in_a_scheduler_that_rests(
    weighed: Weighed, control_plane: ControlPlane
) -> None:
    beats = 0

    def one_round() -> JsonObject:
        nonlocal beats
        sent = weighed.requests_sent()
        for _ in range(EVENTS):
            weighed.probe()
            weighed.scrape()
            beats += 1
            beat = f"2026-01-01T{beats // 3600:02}:{beats // 60 % 60:02}:{beats % 60:02}Z"
            ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": beat}
            status = {"status": {"conditions": [ready]}}
            patch_node(control_plane, f"node-{beats % NODES}", status, status=True)
        until(lambda: weighed.requests_sent() >= sent + EVENTS, seconds=60)
        return weighed.weigh()

    for _ in range(WARM_UP):
        before = one_round()
    for _ in range(ROUNDS):
        after = one_round()
        assert not after["cycles"], "left for the garbage collector"
    events = ROUNDS * 4 * EVENTS
    assert (after["blocks"] - before["blocks"]) / events < 0.2, f"{before} became {after}"
