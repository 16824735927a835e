"""The schedulers of a benchmark: ours, kube-scheduler, any other binary, and two that only bind.

    "ours,kube-scheduler,null" ──parse──> BenchScheduler … ──on a plane──> SchedulerProcess

All get the same KubeSchedulerConfiguration: same QPS and burst, no leader election. Their --help
tells whether they serve metrics.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

from kubesched import KUBERNETES_VERSION, __version__
from kubesched.bench import assets
from kubesched.bench.operations import JsonObject
from kubesched.bench.planes import Plane, gates_flag
from kubesched.bench.processes import LOOPBACK, Process, StartError, free_ports, spawn
from kubesched.client.access import ClusterAccess, Server, tls_context
from kubesched.config import untrusted_yaml
from kubesched.errors import ConfigError, UsageError

OURS = "ours"
KUBE_SCHEDULER = "kube-scheduler"
NULL = "null"
NULL_EVENTS = "null-events"
DEFAULT = (OURS, KUBE_SCHEDULER, NULL, NULL_EVENTS)

_GRACE_S = 10.0
_ALLOWED_PATHS = "/healthz,/readyz,/livez,/metrics"


@dataclass(frozen=True, kw_only=True)
class BenchScheduler:
    """A scheduler, and how it is started."""

    name: str
    command: tuple[str, ...]
    #: what it is and how many nodes it scores
    description: str
    is_null: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Common settings of all schedulers."""

    qps: float = 5000.0
    burst: int = 10_000
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    #: None for each scheduler's own default
    percentage_of_nodes_to_score: int | None = None
    #: the base KubeSchedulerConfiguration
    base_config: Path | None = None


def parse(text: str, binaries: Path, percentage: int | None = None) -> list[BenchScheduler]:
    """Parse a list of names and paths; raises UsageError for those that cannot be started."""
    found: dict[str, BenchScheduler] = {}
    for item in filter(None, (each.strip() for each in text.split(","))):
        candidate = _candidate(item, binaries, percentage)
        if candidate.name in found:
            raise UsageError(
                f"--schedulers: {candidate.name} is there twice; name one: b=/its/path"
            )
        found[candidate.name] = candidate
    if not found:
        raise UsageError("--schedulers: name at least one")
    return list(found.values())


def _candidate(item: str, binaries: Path, percentage: int | None) -> BenchScheduler:
    sampling = f"{percentage} % of the nodes scored" if percentage else ""
    if item == OURS:
        return BenchScheduler(
            name=OURS,
            command=(sys.executable, "-m", "kubesched.cli.kube_scheduler"),
            description=f"kubesched {__version__}, {sampling or 'all nodes scored'}",
        )
    if item == KUBE_SCHEDULER:
        assets.require([assets.KUBE_SCHEDULER], binaries)
        default = "its default share of the nodes scored (percentageOfNodesToScore 0, adaptive)"
        return BenchScheduler(
            name=KUBE_SCHEDULER,
            command=(str(binaries / assets.KUBE_SCHEDULER),),
            description=f"kube-scheduler {KUBERNETES_VERSION}, {sampling or default}",
        )
    if item in (NULL, NULL_EVENTS):
        return _null(item)
    return _other(item, sampling)


def _null(name: str) -> BenchScheduler:
    events = ["--events"] if name == NULL_EVENTS else []
    then = "an event after each" if events else "no events"
    return BenchScheduler(
        name=name,
        command=(sys.executable, "-m", "kubesched.bench.null_scheduler", *events),
        description=f"decides nothing, binds to the nodes in turn, {then}: the API server's limit",
        is_null=True,
    )


def _other(item: str, sampling: str) -> BenchScheduler:
    name, equals, path = item.rpartition("=")
    binary = Path(path).expanduser()
    if not equals and "/" not in item:
        known = ", ".join(DEFAULT)
        raise UsageError(f"--schedulers: {item!r} is none of {known}, nor the path of a binary")
    if not binary.is_file():
        raise UsageError(f"--schedulers: there is no file {binary}")
    return BenchScheduler(
        name=name or binary.name,
        command=(str(binary.absolute()),),
        description=f"{binary}, {sampling or 'its default share of the nodes scored'}",
    )


def configuration(settings: Settings, kubeconfig: Path) -> JsonObject:
    """The KubeSchedulerConfiguration that every scheduler gets."""
    base = _base(settings.base_config) if settings.base_config else {}
    config: JsonObject = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **base,
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(kubeconfig),
            "qps": settings.qps,
            "burst": settings.burst,
        },
    }
    if settings.percentage_of_nodes_to_score is not None:
        config["percentageOfNodesToScore"] = settings.percentage_of_nodes_to_score
    return config


def _base(path: Path) -> JsonObject:
    try:
        decoded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as wrong:
        raise ConfigError(f"{path}: this is not YAML: {wrong}") from None
    except OSError as failed:
        raise ConfigError(f"{path}: {failed.strerror}") from None
    except yaml.YAMLError as wrong:
        raise ConfigError(f"{path}: this is not YAML: {untrusted_yaml.problem(wrong)}") from None
    if not isinstance(decoded, dict):
        raise ConfigError(f"{path}: this is not a KubeSchedulerConfiguration")
    return decoded


class SchedulerProcess:
    """A candidate on a plane; may be started and stopped several times."""

    def __init__(self, candidate: BenchScheduler, plane: Plane, settings: Settings) -> None:
        self._candidate = candidate
        self._plane = plane
        self._settings = settings
        self._process: Process | None = None
        self._metrics_port = 0

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._process is not None

    @property
    def process(self) -> Process | None:
        """The process, while it runs."""
        return self._process

    @property
    def metrics_access(self) -> ClusterAccess | None:
        """The address of its metrics, if it serves them."""
        if not self._metrics_port:
            return None
        # It has just created a self-signed certificate on this machine.
        context = tls_context(ca_pem=None, verify=False)
        return ClusterAccess(
            server=Server("https", LOOPBACK, self._metrics_port), ssl_context=context
        )

    def start(self, *, watch: bool = True) -> None:
        """Start it; one that only binds need not ``watch`` if all pods exist."""
        if self._process is not None:
            return
        arguments = self._null_arguments(watch) if self._candidate.is_null else self._arguments()
        log = self._plane.folder / f"scheduler-{self._candidate.name}.log"
        command = [*self._candidate.command, *arguments]
        self._process = spawn(self._candidate.name, command, log=log, cwd=self._plane.folder)

    def check(self) -> None:
        """Raise StartError if it has ended by itself."""
        if self._process is not None and not self._process.is_running:
            raise StartError(self._process.describe())

    def describe(self) -> str:
        """Describe its state and the end of its log."""
        return self._process.describe() if self._process else f"{self._candidate.name} is stopped"

    async def stop(self) -> None:
        """End it, by its process id."""
        process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(process.end, grace=_GRACE_S)

    def kill(self) -> None:
        """Kill it, by its process id."""
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _null_arguments(self, watch: bool) -> list[str]:
        flags = [] if watch else ["--no-watch"]
        settings = self._settings
        limits = [f"--qps={settings.qps}", f"--burst={settings.burst}"]
        return [f"--kubeconfig={self._plane.scheduler_kubeconfig}", *limits, *flags]

    def _arguments(self) -> list[str]:
        file = self._plane.folder / f"scheduler-{self._candidate.name}.json"
        config = configuration(self._settings, self._plane.scheduler_kubeconfig)
        file.write_text(json.dumps(config))
        arguments = [f"--config={file}", *gate_arguments(self._settings.feature_gates)]
        offered = flags_of(self._candidate.command)
        if {"secure-port", "authorization-always-allow-paths", "bind-address"} <= offered:
            (self._metrics_port,) = free_ports(1)
            arguments += [
                f"--secure-port={self._metrics_port}",
                f"--bind-address={LOOPBACK}",
                f"--authorization-always-allow-paths={_ALLOWED_PATHS}",
            ]
        elif "secure-port" in offered:
            arguments.append("--secure-port=0")
        for name in ("authentication-kubeconfig", "authorization-kubeconfig"):
            if self._metrics_port and name in offered:
                arguments.append(f"--{name}={self._plane.scheduler_kubeconfig}")
        return arguments


def gate_arguments(gates: Mapping[str, bool]) -> list[str]:
    """The flags for feature gates."""
    return [f"--feature-gates={gates_flag(gates)}"] if gates else []


@cache
def flags_of(command: tuple[str, ...]) -> frozenset[str]:
    """Return the flags in a scheduler's --help."""
    try:
        asked = subprocess.run(  # noqa: S603  a command made here, without a shell
            [*command, "--help"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise UsageError(f"{command[0]} cannot be run: {failed}") from None
    return frozenset(re.findall(r"--([a-z][a-z0-9-]*)", asked.stdout))
