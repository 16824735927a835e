"""Schedulers as processes that are killed, stopped and started again: ours, and kube-scheduler."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Final

from kubesched.bench.processes import Process, spawn
from tests.integration.scheduler_process import configuration, environment

from .plane import GATES, ChaosPlane

_OURS: Final = "kubesched.cli.kube_scheduler"
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
        program = [str(plane.assets / "kube-scheduler")]
        if scheduler == OURS:
            module = [_OURS] if bug is None else ["tests.chaos.broken_scheduler", bug]
            program = [sys.executable, "-m", *module]
        flags = (f"--config={file}", "--secure-port=0", f"--feature-gates={GATES}")
        self._command = [*program, *flags]
        self._process: Process | None = None
        #: how often it ended by itself
        self.ended = 0

    @property
    def log(self) -> Path:
        """Where it logs, through all its lives."""
        return self._plane.folder / f"{self._name}.log"

    def start(self) -> None:
        """Start it."""
        self._process = spawn(
            self._name, self._command, log=self.log, cwd=_ROOT, environment=environment()
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
        """Kill it."""
        if self._process is not None:
            self._process.end()
