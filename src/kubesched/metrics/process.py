"""Process metrics from the operating system: CPU, memory, files, network.

Linux has most of it in ``/proc``; where a file is missing, its family is not exported.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

_SELF: Final = Path("/proc/self")
_UNLIMITED: Final = float(2**64 - 1)
#: fields of /proc/self/stat, counted from the one after the command's name
_START_TICKS, _VIRTUAL_BYTES, _RESIDENT_PAGES = 19, 20, 21


def process_readings() -> dict[str, float]:
    """Read all available values, by family name."""
    readings: dict[str, float] = {}
    for source in (_usage, _memory, _files, _network):
        with contextlib.suppress(OSError, ValueError, LookupError):
            readings.update(source())
    return readings


@cache
def start_time_s() -> float:
    """Return when this process started, in seconds since the epoch; if unknown, the first call."""
    try:
        ticks = float(_stat()[_START_TICKS])
        boot = next(
            float(line.split()[1])
            for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()
            if line.startswith("btime ")
        )
    except (OSError, LookupError, ValueError, StopIteration):
        return time.time()
    return boot + ticks / os.sysconf("SC_CLK_TCK")


def _usage() -> Iterator[tuple[str, float]]:
    times = os.times()
    yield "process_cpu_seconds_total", times.user + times.system
    yield "process_virtual_memory_max_bytes", _limit(resource.RLIMIT_AS)
    yield "process_max_fds", _limit(resource.RLIMIT_NOFILE)
    yield "process_start_time_seconds", start_time_s()


def _memory() -> Iterator[tuple[str, float]]:
    fields = _stat()
    yield "process_virtual_memory_bytes", float(fields[_VIRTUAL_BYTES])
    yield "process_resident_memory_bytes", float(fields[_RESIDENT_PAGES]) * resource.getpagesize()


def _files() -> Mapping[str, float]:
    return {"process_open_fds": len(os.listdir(_SELF / "fd"))}  # noqa: PTH208 (names alone)


def _network() -> Iterator[tuple[str, float]]:
    """Read the octets of the network namespace, as all exporters of this name do."""
    lines = (_SELF / "net" / "netstat").read_text(encoding="ascii").splitlines()
    names, numbers = (line.split() for line in lines if line.startswith("IpExt:"))
    octets = dict(zip(names, numbers, strict=True))
    yield "process_network_receive_bytes_total", float(octets["InOctets"])
    yield "process_network_transmit_bytes_total", float(octets["OutOctets"])


def _stat() -> list[str]:
    # The command's name may contain any character, even parentheses: skip to the last one.
    return (_SELF / "stat").read_text(errors="replace").rpartition(")")[2].split()


def _limit(kind: int) -> float:
    soft = resource.getrlimit(kind)[0]
    return _UNLIMITED if soft == resource.RLIM_INFINITY else float(soft)
