"""What a replica can be deprived of: memory, room on the disk, the right time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.waiting import until

from .plane import ChaosPlane
from .schedulers import OURS, UPSTREAM, Replica
from .shifted_clock import set_clock, shifted

PROGRAM = """
import sys, time
recording = open(sys.argv[1], "ab", buffering=0)
kept = []
print("I begin", flush=True)
while True:
    try:
        kept.append(bytearray(1 << 20))
        print("I have memory", flush=True)
    except MemoryError:
        print("E no memory", flush=True)
    try:
        recording.write(b"x")
        print("I record", flush=True)
    except OSError as failed:
        print("E " + failed.strerror, flush=True)
    time.sleep(0.01)
"""


@pytest.fixture
def plane(tmp_path: Path) -> ChaosPlane:
    return cast("ChaosPlane", SimpleNamespace(folder=tmp_path, assets=tmp_path))


@pytest.fixture
def replica(plane: ChaosPlane) -> Iterator[Replica]:
    made = Replica(plane, plane.folder / "kubeconfig")
    made._command = [sys.executable, "-c", PROGRAM, str(made._recording)]
    try:
        yield made
    finally:
        made.end()


def says(replica: Replica, text: str) -> None:
    """Wait until it says something again."""
    before = replica.log.read_text().count(text)
    until(lambda: replica.log.read_text().count(text) > before, seconds=30)


def test_it_has_begun_when_it_logs_in_each_of_its_lives(replica: Replica) -> None:
    replica.start()
    until(lambda: replica.has_begun)
    replica.end()
    replica.start()
    assert not replica.has_begun
    until(lambda: replica.has_begun)


def test_it_gets_no_more_memory_until_it_is_fed(replica: Replica) -> None:
    replica.start()
    says(replica, "I have memory")
    replica.starve()
    says(replica, "E no memory")
    replica.feed()
    says(replica, "I have memory")


def test_its_files_stop_growing_and_its_log_goes_on(replica: Replica) -> None:
    replica.start()
    says(replica, "I record")
    replica.fill_disk()
    says(replica, "E File too large")
    assert replica._recording is not None
    size = replica._recording.stat().st_size
    says(replica, "E File too large")
    assert replica._recording.stat().st_size == size
    replica.end()
    replica.start()
    says(replica, "I record")


@pytest.mark.parametrize(
    ("given", "wants"),
    [({"scheduler": OURS}, True), ({"bug": "loses pods"}, False), ({"scheduler": UPSTREAM}, False)],
)
def test_only_ours_has_a_clock_to_be_set_and_a_recording(
    plane: ChaosPlane, given: dict[str, Any], wants: bool
) -> None:
    made = Replica(plane, plane.folder / "kubeconfig", **given)
    assert (made.has_clock, made.records) == (wants, wants)
    made.set_clock(5.0)


def test_what_has_ended_can_be_deprived_of_nothing(replica: Replica) -> None:
    replica.start()
    replica.end()
    replica.starve()
    replica.feed()
    replica.fill_disk()


def test_a_clock_is_set_while_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    set_clock(file, 0.0)
    now = shifted(file)
    assert abs(now() - time.time()) < 1.0
    set_clock(file, -86_400.0)
    assert -86_401.0 < now() - time.time() < -86_399.0
