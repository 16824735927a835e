"""Coordinated leader election: the API server picks who leads, of ours and kube-scheduler alike.

The one whose emulated version is the oldest leads; one that leads already makes room for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubesched import KUBERNETES_VERSION
from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject, PlaneApiError, Process
from .replicas import (
    LEASE_S,
    LEASES,
    elected,
    free_port,
    holder_of,
    lease_of,
    page,
    serving,
    wait_for_another_holder,
)
from .scheduler_process import (
    SchedulerProcess,
    node,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
)

pytestmark = pytest.mark.slow

#: Candidates stand for this lease, whatever the configuration calls it.
LEASE = "kube-scheduler"
CANDIDATES = "/apis/coordination.k8s.io/v1beta1/namespaces/kube-system/leasecandidates"
GATE = "--feature-gates=CoordinatedLeaderElection=true"
#: What both are, and one version older.
RELEASE = KUBERNETES_VERSION.removeprefix("v")
MAJOR, MINOR = map(int, RELEASE.split(".")[:2])
OLDER_RELEASE = f"{MAJOR}.{MINOR - 1}"
OLDER = f"--emulated-version={OLDER_RELEASE}"
#: Until a lease runs out, the API server looks at the candidates, and one of them at the lease.
PATIENCE_S = 4 * LEASE_S + 20


@pytest.fixture(scope="module")
def plane(assets: Path) -> Iterator[ControlPlane]:
    """An API server that coordinates."""
    with ControlPlane(
        assets,
        feature_gates="CoordinatedLeaderElection=true",
        runtime_config="coordination.k8s.io/v1beta1=true",
    ) as started:
        started.request("POST", "/api/v1/nodes", node("n1"))
        yield started


@pytest.fixture(autouse=True)
def _fresh(plane: ControlPlane) -> Iterator[None]:
    yield
    plane.purge(pods_path("default"))
    plane.purge(CANDIDATES)
    with contextlib.suppress(PlaneApiError):
        plane.request("DELETE", f"{LEASES}/{LEASE}")


def candidates(plane: ControlPlane) -> dict[str, JsonObject]:
    items = plane.request("GET", CANDIDATES)["items"]
    return {each["metadata"]["name"]: each["spec"] for each in items}


@contextlib.contextmanager
def ours(plane: ControlPlane, *flags: str) -> Iterator[SchedulerProcess]:
    with run_scheduler(plane, elected(plane, LEASE), GATE, *flags) as scheduler:
        yield scheduler


@contextlib.contextmanager
def theirs(plane: ControlPlane, *flags: str) -> Iterator[Process]:
    with plane.run_kube_scheduler(elected(plane, LEASE), GATE, *flags) as scheduler:
        yield scheduler


def leads(plane: ControlPlane, scheduler: SchedulerProcess | Process) -> str:
    """Return who leads, as soon as this one does: it was picked, and has confirmed that."""
    if isinstance(scheduler, Process):
        scheduler = SchedulerProcess(scheduler)
    scheduler.wait_for_log('"Successfully acquired lease"', seconds=PATIENCE_S)
    return holder_of(plane, LEASE)


def binds(plane: ControlPlane, name: str) -> None:
    plane.request("POST", pods_path("default"), pod(name))
    wait_until_bound(plane, "default", name, seconds=PATIENCE_S)


def test_one_that_stands_alone_is_picked(plane: ControlPlane) -> None:
    port = free_port()
    with ours(plane, *serving(plane, port)) as scheduler:
        holder = leads(plane, scheduler)
        assert candidates(plane)[holder] == {
            "leaseName": LEASE,
            "binaryVersion": RELEASE,
            "emulationVersion": f"{MAJOR}.{MINOR}.0",
            "strategy": "OldestEmulationVersion",
            "renewTime": candidates(plane)[holder]["renewTime"],
        }
        binds(plane, "alone")
        assert lease_of(plane, LEASE)["strategy"] == "OldestEmulationVersion"
        ready = page(plane, port, "/readyz?verbose").body
        assert "[+]informer-sync ok" in ready


def test_when_a_leader_is_killed_another_is_picked(plane: ControlPlane) -> None:
    with ours(plane) as first:
        before = leads(plane, first)
        with ours(plane):
            until(lambda: len(candidates(plane)) == 2)
            first.kill()
            wait_for_another_holder(plane, LEASE, before, seconds=PATIENCE_S)
            binds(plane, "after-the-kill")


@pytest.mark.parametrize("older", ["ours", "kube-scheduler"])
def test_the_older_version_is_preferred(plane: ControlPlane, older: str) -> None:
    with contextlib.ExitStack() as running:
        if older == "ours":
            process = running.enter_context(theirs(plane))
            before = leads(plane, process)
            running.enter_context(ours(plane, OLDER))
        else:
            first = running.enter_context(ours(plane))
            before = leads(plane, first)
            running.enter_context(theirs(plane, OLDER))
        until(lambda: len(candidates(plane)) == 2)
        holder = wait_for_another_holder(plane, LEASE, before, seconds=PATIENCE_S)
        assert candidates(plane)[holder]["emulationVersion"] == f"{OLDER_RELEASE}.0"
        # Whoever made room ends, with an error: somebody is to start it again, as a standby.
        if older == "ours":
            assert process.popen.wait(PATIENCE_S) == 1
        else:
            assert first.wait_for_end(seconds=PATIENCE_S) == 1
            assert "is to hold it" in first.log()
        binds(plane, "under-the-older-one")
