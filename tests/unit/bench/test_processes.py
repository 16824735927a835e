"""Child processes: their costs, and that none is left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubesched.bench.processes import Process, cpu_seconds_of, free_ports, peak_bytes_of, spawn
from tests.support.waiting import until

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_cpu_time_is_read_behind_a_name_with_spaces_and_parentheses() -> None:
    numbers = " ".join(str(number) for number in range(4, 53))
    stat = f"42 (a (b) c) S {numbers}"

    assert cpu_seconds_of(stat, ticks_per_second=100) == (14 + 15) / 100


def test_the_peak_is_read_in_bytes() -> None:
    assert peak_bytes_of("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n") == 2 << 20
    assert peak_bytes_of("Name:\tzombie\n") is None


def until_logged(process: Process, text: str) -> None:
    until(lambda: text in process.log.read_text())


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@linux
def test_a_process_is_known_by_its_cost_while_it_runs(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint('worked', flush=True)\n"
    process = spawn("busy", python(f"{busy}time.sleep(60)"), log=tmp_path / "log")
    try:
        until_logged(process, "worked")

        assert (process.cpu_seconds() or 0.0) >= 0.25  # ticks are coarse
        assert (process.peak_bytes() or 0) > 1 << 20
        assert process.describe() == "busy is running; the end of its log:\nworked"
    finally:
        process.end()
    assert process.popen.returncode == -9
    assert process.cpu_seconds() is None


def test_one_that_does_not_listen_is_killed_after_its_grace(tmp_path: Path) -> None:
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    process = spawn(
        "deaf", python(f"{deaf}print('up', flush=True)\ntime.sleep(60)"), log=tmp_path / "l"
    )
    until_logged(process, "up")

    process.end(grace=0.2)

    assert process.popen.returncode == -9


@linux
def test_a_process_dies_with_the_one_that_started_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    parent = (
        "import pathlib, sys, time\nfrom kubesched.bench.processes import spawn\n"
        "child = spawn('child', [sys.executable, '-c', 'import time; time.sleep(60)'], "
        f"log=pathlib.Path({str(log)!r}))\nprint(child.popen.pid, flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen(python(parent), stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        child = int(started.stdout.readline())
        started.kill()

    until(lambda: not is_alive(child))


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_child_is_in_a_session_of_its_own(tmp_path: Path) -> None:
    process = spawn("child", python("import time; time.sleep(60)"), log=tmp_path / "log")
    try:
        assert os.getsid(process.popen.pid) == process.popen.pid
    finally:
        process.end()


def test_ports_are_different_ones() -> None:
    assert len(set(free_ports(5))) == 5
