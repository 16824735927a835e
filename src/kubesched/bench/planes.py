"""The control planes of benchmarks: the real one, and the embedded one.

    plane(kind, workload) ──start──> kubeconfigs, and processes whose cost can be read

Each measurement has a fresh plane.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from kubesched.bench import assets
from kubesched.bench.control_plane import DISABLED_ADMISSION, ControlPlane
from kubesched.bench.processes import Process, StartError, spawn

REAL = "real"
EMBEDDED = "embedded"
KINDS = (REAL, EMBEDDED)

_START_SECONDS = 30.0

#: Gates of the scheduler alone, not passed to an API server.
_SCHEDULER_GATES = ("Scheduler", "Opportunistic")
_DEVICE_VERSIONS = "resource.k8s.io/v1beta1,resource.k8s.io/v1beta2,resource.k8s.io/v1alpha3"
_RUNTIME_CONFIG = {
    "DynamicResourceAllocation": tuple(_DEVICE_VERSIONS.split(",")),
    "GenericWorkload": ("scheduling.k8s.io/v1beta1",),
    "CompositePodGroup": ("scheduling.k8s.io/v1alpha3",),
}


class Plane(Protocol):
    """An API server and its storage."""

    @property
    def folder(self) -> Path:
        """Folder of logs and kubeconfigs; deleted by `stop`."""

    @property
    def admin_kubeconfig(self) -> Path:
        """Kubeconfig of an administrator."""

    @property
    def scheduler_kubeconfig(self) -> Path:
        """Kubeconfig of the scheduler."""

    @property
    def apiserver(self) -> Process:
        """The API server."""

    @property
    def storage(self) -> Process | None:
        """The API server's storage, if it is a process."""

    def start(self) -> object:
        """Start it; raises StartError if that fails, after cleaning up."""

    def stop(self) -> None:
        """End all processes and delete all files."""


class RealPlane(ControlPlane):
    """etcd and kube-apiserver; a pod may set its own priority, as in scheduler_perf."""

    def __init__(self, folder: Path, feature_gates: Mapping[str, bool]) -> None:
        own = {
            name: enabled
            for name, enabled in feature_gates.items()
            if not name.startswith(_SCHEDULER_GATES)
        }
        versions = [
            version
            for name, needed in _RUNTIME_CONFIG.items()
            if feature_gates.get(name)
            for version in needed
        ]
        super().__init__(
            folder,
            feature_gates=gates_flag(own),
            runtime_config=",".join(f"{version}=true" for version in versions),
            disabled_admission=(*DISABLED_ADMISSION, "Priority"),
        )

    @property
    def apiserver(self) -> Process:
        """The API server."""
        return self.process("kube-apiserver")

    @property
    def storage(self) -> Process | None:
        """etcd."""
        return self.process("etcd")


class EmbeddedPlane:
    """The embedded API server in a process of its own."""

    storage: Process | None = None

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kubesched-embedded-"))
        self._process: Process | None = None

    @property
    def admin_kubeconfig(self) -> Path:
        """Its kubeconfig: there is no authentication."""
        return self.folder / "kubeconfig"

    @property
    def scheduler_kubeconfig(self) -> Path:
        """The same kubeconfig for schedulers."""
        return self.admin_kubeconfig

    @property
    def apiserver(self) -> Process:
        """The API server."""
        if self._process is None:
            raise StartError("the embedded API server is not running")
        return self._process

    def start(self) -> None:
        """Start it and return when it listens."""
        command = [sys.executable, "-m", "kubesched.bench.embedded_server", self.admin_kubeconfig]
        self._process = spawn(
            "embedded-apiserver", list(map(str, command)), log=self.folder / "apiserver.log"
        )
        deadline = time.monotonic() + _START_SECONDS
        while not self.admin_kubeconfig.exists():
            if not self._process.is_running or time.monotonic() > deadline:
                said = self._process.describe()
                self.stop()
                raise StartError(f"the embedded API server did not start: {said}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End it and delete all files."""
        if self._process is not None:
            self._process.end()
            self._process = None
        with contextlib.suppress(OSError):
            shutil.rmtree(self.folder)


def gates_flag(gates: Mapping[str, bool]) -> str:
    """Feature gates as in ``--feature-gates``."""
    return ",".join(f"{name}={str(enabled).lower()}" for name, enabled in gates.items())


def make(kind: str, folder: Path, feature_gates: Mapping[str, bool]) -> Plane:
    """Create a plane, not yet started; raises UsageError if its binaries are missing."""
    if kind == EMBEDDED:
        return EmbeddedPlane()
    assets.require(assets.CONTROL_PLANE, folder)
    return RealPlane(folder, feature_gates)
