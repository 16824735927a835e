"""Sweeps as people run them: in processes that end when they should, and on a Dask cluster."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until

pytestmark = pytest.mark.slow

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}
status: {capacity: {cpu: "64", memory: 256Gi, pods: "1000"}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {topology.kubernetes.io/zone: b}}
status: {capacity: {cpu: "64", memory: 256Gi, pods: "1000"}}
"""
WORKLOAD = """\
kind: Workload
duration: DURATION
templates:
- name: web
  arrivals: {perHour: 60}
  lifetime: {exponential: 1h}
  pod: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "short.yaml").write_text(WORKLOAD.replace("DURATION", "2h"))
    (tmp_path / "endless.yaml").write_text(WORKLOAD.replace("DURATION", "9000h"))
    return tmp_path


def _sweep(folder: Path, workload: str, *words: str) -> list[str]:
    command = [sys.executable, "-W", "error", "-m", "kubesched.cli.kubesched", "simulate", "sweep"]
    files = [str(folder / workload), f"--manifests={folder / 'cluster.yaml'}"]
    return [*command, *files, *words, "-o", "json"]


def _said(folder: Path, *words: str) -> dict[str, Any]:
    ended = subprocess.run(
        _sweep(folder, "short.yaml", *words),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    said: dict[str, Any] = json.loads(ended.stdout)
    return said


# --- processes --------------------------------------------------------------------------------


def test_two_processes_say_what_one_says(folder: Path) -> None:
    words = ("--seeds", "3", "--set", "NodeResourcesFit.weight=1,4")

    assert _said(folder, *words, "--jobs", "2") == _said(folder, *words, "--jobs", "1")


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """Processes in the background of a shell do not hear it, and those they start do not either."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def _endless(folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Start a sweep that does not end by itself, in a process group of its own."""
    with subprocess.Popen(
        _sweep(folder, "endless.yaml", "--seeds", "4", "--jobs", "2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process, _wait_for_workers(process.pid)
        finally:
            if process.poll() is None:
                process.kill()


def _wait_for_workers(pid: int) -> list[int]:
    def workers() -> list[int] | None:
        found = [each for each in _children(pid) if "spawn_main" in _command(each)]
        return found if len(found) == 2 else None

    found = until(workers, seconds=60)
    time.sleep(2.0)  # by then they are in the middle of something, which nothing outside shows
    return found


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in path.read_text().split()]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _wait_for_the_end(pids: list[int]) -> None:
    until(lambda: not any("spawn_main" in _command(each) for each in pids))


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_ends_the_workers_without_a_word(folder: Path) -> None:
    with _endless(folder) as (process, workers):
        # As a terminal does: to everybody in the group.
        os.killpg(process.pid, signal.SIGINT)
        printed, complaint = process.communicate(timeout=30)

        assert process.returncode == 130
        assert (printed, complaint) == ("", "")
        _wait_for_the_end(workers)


def test_workers_do_not_outlive_the_command(folder: Path) -> None:
    with _endless(folder) as (process, workers):
        process.kill()
        process.communicate(timeout=30)

        _wait_for_the_end(workers)


# --- Dask -------------------------------------------------------------------------------------

DASK = """
import sys

from kubesched.cli.kubesched import main

if __name__ == "__main__":
    import distributed

    cluster = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        host="127.0.0.1",
        scheduler_port=0,
        dashboard_address=None,
        protocol="tcp",
    )
    try:
        code = main([*sys.argv[1:], "--dask", cluster.scheduler_address])
    finally:
        cluster.close()
    sys.exit(code)
"""


def test_a_dask_cluster_says_what_processes_say(folder: Path) -> None:
    """In a process of its own: the cluster's event loop and warnings stay out of this one."""
    pytest.importorskip("distributed")
    words = ("--seeds", "2", "--set", "NodeResourcesFit.weight=1,4")
    (folder / "with_dask.py").write_text(DASK)
    simulate = _sweep(folder, "short.yaml", *words)
    arguments = simulate[simulate.index("simulate") :]

    ended = subprocess.run(
        [sys.executable, str(folder / "with_dask.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == _said(folder, *words, "--jobs", "1")


def test_a_dask_cluster_that_is_not_there_is_named(folder: Path) -> None:
    pytest.importorskip("distributed")
    with socket.socket() as taken:
        # Nobody listens there as long as we hold the port.
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        ended = subprocess.run(
            _sweep(folder, "short.yaml", "--dask", address),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"Error: cannot reach a Dask scheduler at {address}: ")
    assert ended.stderr.count("\n") == 1
