"""Child processes: never left behind, ended by pid, with their cost.

    spawn(command, log) ──> Child: describe · end · cpu_seconds · peak_bytes

A child is in its own session, so that a Ctrl-C in the terminal reaches only us and we end it; Linux
kills it if we die first. Costs are read from /proc.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kubesched.errors import KubeschedError

LOOPBACK = "127.0.0.1"

_LOG_TAIL_LINES = 20

#: Run before each binary: asks Linux to kill the process when its parent is gone, even if the
#: parent was killed. Not a preexec_fn, which is unsafe and warned about once there are threads.
LAUNCHER = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the parent was gone before the start")
os.execv(sys.argv[2], sys.argv[2:])
"""


class StartError(KubeschedError):
    """A process did not start, or ended too early; carries the end of its log."""


@dataclass(frozen=True)
class Process:
    """A running program and where it logs."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path
    #: by the clock of time.perf_counter
    started_s: float = field(default_factory=time.perf_counter)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self.popen.poll() is None

    def describe(self) -> str:
        """Describe its state and the end of its log."""
        status = self.popen.poll()
        state = "is running" if status is None else f"ended with status {status}"
        lines = self.log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        return "\n".join([f"{self.name} {state}; the end of its log:", *lines])

    def end(self, *, grace: float = 0) -> None:
        """End it by its process id: ask and wait `grace` seconds if given, then kill."""
        if grace and self.popen.poll() is None:
            self.popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(grace)
        self.popen.kill()
        self.popen.wait()

    def cpu_seconds(self) -> float | None:
        """CPU time so far, user and system; None where unknown."""
        try:
            stat = Path(f"/proc/{self.popen.pid}/stat").read_text()
        except OSError:
            return None
        return cpu_seconds_of(stat, ticks_per_second=os.sysconf("SC_CLK_TCK"))

    def peak_bytes(self) -> int | None:
        """Peak resident memory; None where unknown."""
        try:
            status = Path(f"/proc/{self.popen.pid}/status").read_text()
        except OSError:
            return None
        return peak_bytes_of(status)


def cpu_seconds_of(stat: str, *, ticks_per_second: int) -> float:
    """CPU time in a /proc/<pid>/stat; the name in it may hold spaces and parentheses."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / ticks_per_second


def peak_bytes_of(status: str) -> int | None:
    """VmHWM of a /proc/<pid>/status; a terminated process has none."""
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def launched(command: Sequence[str | Path]) -> list[str]:
    """Wrap a command so that it ends when this process does."""
    launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid())]
    return [*launch, *map(str, command)]


def spawn(
    name: str,
    command: Sequence[str | Path],
    *,
    log: Path,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Process:
    """Start a program; both of its outputs go to the log."""
    started_s = time.perf_counter()
    with log.open("ab") as sink:
        popen = subprocess.Popen(  # noqa: S603  a command made here, without a shell
            launched(command),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            cwd=cwd,
            env={**os.environ, **environment} if environment else None,
            start_new_session=True,
        )
    return Process(name, popen, log, started_s)


def free_ports(count: int) -> list[int]:
    """Return free ports; held together, so that none is found twice."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [int(each.getsockname()[1]) for each in sockets]
