"""Schedulers as processes that are killed, stopped and started again: ours, and kube-scheduler."""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from kubesched.bench.processes import Process, spawn
from tests.integration.scheduler_process import configuration, environment

from .plane import GATES, ChaosPlane
from .shifted_clock import set_clock

_ROOT: Final = Path(__file__).resolve().parents[2]
OURS: Final = "kubesched"
UPSTREAM: Final = "kube-scheduler"
#: Shorter than by default, so that a short run sees many takeovers.
LEASE_SECONDS: Final = 6
RENEW_SECONDS: Final = 4
LEASE: Final = {
    "leaderElect": True,
    "leaseDuration": f"{LEASE_SECONDS}s",
    "renewDeadline": f"{RENEW_SECONDS}s",
    "retryPeriod": "1s",
}


class Replica:
    """A scheduler that comes back whenever it ends."""

    def __init__(
        self,
        plane: ChaosPlane,
        kubeconfig: Path,
        *,
        scheduler: str = OURS,
        number: int = 0,
        elects: bool = False,
        bug: str | None = None,
    ) -> None:
        """`bug` is one of `broken_scheduler`, put into ours."""
        self._plane = plane
        self._name = f"{scheduler}-{number}"
        settings = {"leaderElection": LEASE} if elects else {}
        config = configuration(kubeconfig, **settings)
        # The proxy reads events line by line.
        config["clientConnection"]["contentType"] = "application/json"
        file = plane.folder / f"{self._name}.json"
        file.write_text(json.dumps(config))
        flags = [f"--config={file}", "--secure-port=0", f"--feature-gates={GATES}"]
        #: what a scheduler does not have whose clock cannot be set, or that records nothing
        self._clock = self._recording = None
        if scheduler == UPSTREAM:
            program = [str(plane.assets / "kube-scheduler")]
        elif bug is not None:
            program = [sys.executable, "-m", "tests.chaos.broken_scheduler", bug]
        else:
            self._clock = plane.folder / f"{self._name}.clock"
            set_clock(self._clock, 0.0)
            program = [sys.executable, "-m", "tests.chaos.shifted_clock", str(self._clock)]
            self._recording = plane.folder / f"{self._name}.recording"
            flags.append(f"--record={self._recording}")
        self._command = [*program, *flags]
        self._process: Process | None = None
        #: how much it had logged when it was started last
        self._logged = 0
        #: copy what it logs, one for each of its lives
        self._copying: list[subprocess.Popen[bytes]] = []
        #: how often it ended by itself
        self.ended = 0

    @property
    def log(self) -> Path:
        """Where it logs, through all its lives."""
        return self._plane.folder / f"{self._name}.log"

    def start(self) -> None:
        """Start it; it logs through a pipe, which is never full when the disk is."""
        with self.log.open("ab") as log:
            self._logged = log.tell()
            copying = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=log)
        self._copying.append(copying)
        assert copying.stdin is not None
        with copying.stdin as pipe:
            into = Path(f"/dev/fd/{pipe.fileno()}")
            self._process = spawn(
                self._name, self._command, log=into, cwd=_ROOT, environment=environment()
            )

    def keep_alive(self) -> None:
        """Start it again if it has ended, as a kubelet would."""
        if self._process is None or not self._process.is_running:
            self.ended += 1
            self.start()

    def restart(self) -> None:
        """Kill it and start it again."""
        self.end()
        self.start()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self._process is not None and self._process.is_running:
            self._process.popen.send_signal(number)

    def end(self) -> None:
        """Kill it, and wait for the rest of its log."""
        if self._process is not None:
            self._process.end()
        while self._copying:
            self._copying.pop().wait()

    # --- what it needs ----------------------------------------------------------------------

    @property
    def has_clock(self) -> bool:
        """Whether its clock can be set."""
        return self._clock is not None

    @property
    def records(self) -> bool:
        """Whether it records."""
        return self._recording is not None

    def set_clock(self, off_s: float) -> None:
        """Let its system clock be off by some seconds, now and after restarts."""
        if self._clock is not None:
            set_clock(self._clock, off_s)

    @property
    def has_begun(self) -> bool:
        """Whether it has logged something since it was started last."""
        with self.log.open("rb") as log:
            log.seek(self._logged)
            return any(line[:1] in (b"I", b"E", b"W") for line in log)

    def starve(self) -> None:
        """Give it no more memory than it has."""
        with self._limits() as limit:
            pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[0])
            limit(resource.RLIMIT_AS, pages * resource.getpagesize())

    def feed(self) -> None:
        """Give it as much memory as it wants again."""
        with self._limits() as limit:
            limit(resource.RLIMIT_AS, resource.RLIM_INFINITY)

    def fill_disk(self) -> None:
        """Let no file of its grow any more, until it is started again."""
        recording = self._recording
        with self._limits() as limit:
            size = recording.stat().st_size if recording is not None else 0
            limit(resource.RLIMIT_FSIZE, size)

    @property
    def _pid(self) -> int:
        assert self._process is not None
        return self._process.popen.pid

    @contextlib.contextmanager
    def _limits(self) -> Iterator[Callable[[int, int], None]]:
        """Change soft limits of the process; it may have ended, or not have begun to record."""

        def limit(what: int, most: int) -> None:
            _, hard = resource.prlimit(self._pid, what)
            resource.prlimit(self._pid, what, (most, hard))

        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            yield limit
