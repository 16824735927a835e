"""Schedulers as an operator runs them: elected through a lease, and with their HTTPS port open.

    election(lease) ──> configuration ──> run_scheduler(…, *serving(plane, port))
    page(plane, port, path) ──> what the port answers to somebody who may see everything
    run_patched(code) ──> the scheduler, after code of the test has changed something in it

Ports are given by the system. The durations of a lease are short, so that a test may wait for one.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
import textwrap
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from kubesched.bench.processes import free_ports, spawn
from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject, PlaneApiError
from .scheduler_process import SchedulerProcess, configuration, environment
from .serving_callers import LOOPBACK, Reply, ask, connect

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
LEASE_S: Final = 5.0
DEADLINE_S: Final = 3.0
RETRY_S: Final = 1.0


def election(lease: str) -> JsonObject:
    """Leader election on a lease of this name, with short times."""
    return {
        "leaderElect": True,
        "resourceName": lease,
        "resourceNamespace": "kube-system",
        "leaseDuration": f"{LEASE_S:g}s",
        "renewDeadline": f"{DEADLINE_S:g}s",
        "retryPeriod": f"{RETRY_S:g}s",
    }


def elected(plane: ControlPlane, lease: str, *profiles: JsonObject, **more: object) -> JsonObject:
    """A configuration of a replica that takes part in an election."""
    return configuration(
        plane.scheduler_kubeconfig, *profiles, leaderElection=election(lease), **more
    )


def serving(plane: ControlPlane, port: int, *, looks_up: bool = False) -> tuple[str, ...]:
    """Flags that open the HTTPS port, and let the API server say who may use it.

    Whose certificates count is only looked up where the API server has something to say about it.
    """
    return (
        f"--secure-port={port}",
        f"--bind-address={LOOPBACK}",
        f"--authentication-kubeconfig={plane.scheduler_kubeconfig}",
        f"--authorization-kubeconfig={plane.scheduler_kubeconfig}",
        f"--authentication-skip-lookup={str(not looks_up).lower()}",
    )


def free_port() -> int:
    """A port that is free now."""
    return free_ports(1)[0]


def page(plane: ControlPlane, port: int, path: str, *, method: str = "GET") -> Reply:
    """Ask a scheduler's HTTPS port for a path, as somebody who may everything."""
    connection = connect(port)
    try:
        headers = {"Authorization": f"Bearer {plane.admin_token}"}
        return ask(connection, path, method, headers)
    finally:
        connection.close()


# ---------------------------------------------------------------------- leases


def lease_of(plane: ControlPlane, lease: str) -> JsonObject:
    """What a lease says; nothing if there is none."""
    try:
        spec: JsonObject = plane.request("GET", f"{LEASES}/{lease}")["spec"]
    except PlaneApiError as error:
        if error.status != 404:
            raise
        return {}
    return spec


def holder_of(plane: ControlPlane, lease: str) -> str:
    """Who holds a lease, "" if nobody does."""
    return str(lease_of(plane, lease).get("holderIdentity", ""))


def wait_for_another_holder(
    plane: ControlPlane, lease: str, before: str, *, seconds: float = 30
) -> str:
    """Return who holds the lease after `before`, as soon as there is somebody."""

    def another() -> str | None:
        holder = holder_of(plane, lease)
        return holder if holder not in ("", before) else None

    return until(another, seconds=seconds, every=0.05)


def moment(micro_time: str) -> float:
    """Seconds since the epoch of a time in a lease."""
    return datetime.fromisoformat(micro_time).timestamp()


@contextlib.contextmanager
def a_lease(plane: ControlPlane) -> Iterator[str]:
    """The name of a lease that nobody else uses; it is deleted in the end."""
    name = f"test-{secrets.token_hex(4)}"
    yield name
    with contextlib.suppress(PlaneApiError):
        plane.request("DELETE", f"{LEASES}/{name}")


# ---------------------------------------------------------------------- processes

_PATCHED: Final = """
import sys
from kubesched.cli import kube_scheduler
{code}
sys.exit(kube_scheduler.main(sys.argv[1:]))
"""


@contextlib.contextmanager
def run_patched(
    folder: Path, code: str, config: JsonObject, *flags: str
) -> Iterator[SchedulerProcess]:
    """Run the scheduler with some of it replaced by `code`; how it ends is for the test to say."""
    name = f"patched-{secrets.token_hex(3)}"
    script, file = folder / f"{name}.py", folder / f"{name}.json"
    script.write_text(_PATCHED.format(code=textwrap.dedent(code)))
    file.write_text(json.dumps(config))
    command = [sys.executable, "-W", "error", str(script), f"--config={file}", *flags]
    process = spawn(
        "kubesched (patched)", command, log=folder / f"{name}.log", environment=environment()
    )
    scheduler = SchedulerProcess(process)
    try:
        yield scheduler
    except BaseException as error:
        error.add_note(scheduler.describe())
        raise
    finally:
        process.end()
