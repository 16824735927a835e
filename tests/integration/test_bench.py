"""kubesched bench on a real control plane: all schedulers side by side, and nothing left behind."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kubesched.bench.results import BenchReport, Measurement
from tests.support.waiting import until

from .scheduler_process import environment

pytestmark = pytest.mark.slow

SCHEDULERS = ("ours", "kube-scheduler", "null", "null-events")
MARK = "KUBESCHED_BENCH_TEST"

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


class Bench:
    """Runs the command; everything that it starts carries a mark."""

    def __init__(self, assets: Path) -> None:
        self._mark = secrets.token_hex(8)
        self._environment = {
            **environment(),
            "KUBEBUILDER_ASSETS": str(assets),
            MARK: self._mark,
        }

    def start(self, *flags: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-m", "kubesched.cli.kubesched", "bench"]
        return subprocess.Popen(
            [*command, *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
        )

    def report(self, *flags: str) -> BenchReport:
        """Run it to its end; return what it reports."""
        with self.start("-o", "json", *flags) as process:
            try:
                out, err = process.communicate(timeout=240)
            finally:
                process.kill()
        assert process.returncode == 0, err + out
        return msgspec.json.decode(out, type=BenchReport)

    def processes(self, name: str = "") -> list[int]:
        """The processes that carry the mark, or those of one program."""
        found = []
        for folder in Path("/proc").iterdir():
            try:
                marked = f"{MARK}={self._mark}" in (folder / "environ").read_bytes().decode()
                command = (folder / "cmdline").read_bytes().decode()
            except (OSError, UnicodeDecodeError):
                continue
            if marked and name in command:
                found.append(int(folder.name))
        return found


@pytest.fixture
def bench(assets: Path) -> Iterator[Bench]:
    made = Bench(assets)
    yield made
    left = made.processes() if sys.platform == "linux" else []
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == [], "the command left processes behind"


def only_measurement(report: BenchReport, scheduler: str) -> Measurement:
    (run,) = [each for each in report.runs if each.scheduler == scheduler]
    (measurement,) = run.measurements
    return measurement


@linux
def test_four_schedulers_on_a_real_api_server(bench: Bench, tmp_path: Path) -> None:
    flags = ["SchedulingBasic", "--nodes=20", "--pods=50", f"--results={tmp_path}"]

    report = bench.report(*flags)

    assert report.failures == []
    assert [run.scheduler for run in report.runs] == list(SCHEDULERS)
    assert (report.apiserver, report.qps, report.burst) == ("real", 5000, 10_000)
    assert "all nodes scored" in report.schedulers["ours"]
    for name in SCHEDULERS:
        found = only_measurement(report, name)
        assert found.pods == 50
        assert found.pods_per_second == pytest.approx(50 / found.seconds)
        assert 0 < (found.latency_p50_ms or 0) <= (found.latency_p99_ms or 0)
        assert (found.latency_p99_ms or 0) <= found.seconds * 1000
        assert (found.apiserver_cpu_ms_per_pod or 0) > 0
        assert found.scheduler_cpu_ms_per_pod is not None
        assert (found.scheduler_peak_mib or 0) > 10
    theirs = only_measurement(report, "kube-scheduler")
    assert 0 < (theirs.attempt_p50_ms or 0) <= (theirs.attempt_p99_ms or 0)
    assert only_measurement(report, "null").attempt_p50_ms is None
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".svg"]


@linux
def test_pods_that_are_there_before_the_scheduler(bench: Bench) -> None:
    report = bench.report(
        "PendingZoneAffinity",
        "--nodes=20",
        "--pods=30",
        "--precreate",
        "--schedulers=kube-scheduler,null",
    )

    assert report.precreated
    for name in ("kube-scheduler", "null"):
        found = only_measurement(report, name)
        assert found.pods == 30
        # The clock starts with the first one, which is why it does not count.
        assert found.pods_per_second == pytest.approx(29 / found.seconds)
        assert found.latency_p50_ms is None
        assert found.done_after_s is not None
        assert found.done_after_s > found.seconds


@linux
def test_ctrl_c_ends_every_process(bench: Bench) -> None:
    with bench.start("--nodes=20", "--pods=50", "--schedulers=kube-scheduler") as process:
        try:
            until(
                lambda: process.poll() is not None or bench.processes("kube-scheduler\0--config"),
                seconds=60,
            )
            assert process.poll() is None, process.communicate()
            assert bench.processes("etcd")

            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()

    assert process.returncode == 130
    assert err.splitlines()[-1] == "Interrupted: every process was ended, nothing is reported."
    assert "Traceback" not in err
    assert out == ""
    assert bench.processes() == []
