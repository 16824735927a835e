"""What the operating system says about this process."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest

from kubesched.metrics import process
from kubesched.metrics.process import process_readings, start_time_s
from kubesched.metrics.shared_table import PROCESS

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@linux
def test_everything_in_the_table_can_be_read_on_linux() -> None:
    assert set(process_readings()) == {spec.name for spec in PROCESS}


def test_cpu_time_is_that_of_the_process() -> None:
    read = process_readings()["process_cpu_seconds_total"]
    assert read == pytest.approx(time.process_time(), abs=0.1)


@linux
def test_memory_is_that_of_the_process() -> None:
    readings = process_readings()
    statm = Path("/proc/self/statm").read_text().split()
    page = resource.getpagesize()
    assert readings["process_resident_memory_bytes"] == pytest.approx(int(statm[1]) * page, rel=0.1)
    assert readings["process_virtual_memory_bytes"] == pytest.approx(int(statm[0]) * page, rel=0.1)


@linux
def test_process_started_before_now_and_after_its_machine() -> None:
    age = time.time() - start_time_s()
    assert -1 < age < float(Path("/proc/uptime").read_text().split()[0]) + 1


@linux
def test_open_files_are_counted() -> None:
    before = process_readings()["process_open_fds"]
    reader, writer = os.pipe()
    try:
        assert process_readings()["process_open_fds"] == before + 2
    finally:
        os.close(reader)
        os.close(writer)


def test_without_proc_only_what_the_standard_library_knows_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process, "_SELF", tmp_path)
    start_time_s.cache_clear()
    try:
        assert set(process_readings()) == {
            "process_cpu_seconds_total",
            "process_max_fds",
            "process_start_time_seconds",
            "process_virtual_memory_max_bytes",
        }
        assert start_time_s() == pytest.approx(time.time(), abs=60)
    finally:
        start_time_s.cache_clear()
