"""API servers of other versions, and such as lack kinds that the scheduler would watch.

What a scheduler does on each version is in ``test_roles.py``. Here kinds are missing, and appear
while it runs: because an API server is started again with them, or is upgraded.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubesched.api.resource import DeviceClass
from kubesched.client import ApiClient, kubeconfig
from kubesched.client.informer import Informer
from kubesched.client.resources import grouped
from kubesched.errors import ForbiddenError
from tests.support.waiting import eventually, until

from .control_plane import ControlPlane
from .replicas import free_port, page, run_patched, serving
from .scheduler_process import (
    SchedulerProcess,
    configuration,
    node,
    pod,
    pods_path,
    wait_until_bound,
)

NAMESPACE = "default"
RULES = grouped("resource.k8s.io/v1", "devicetaintrules", namespaced=False)
#: A minute is too long for a test.
ASK_OFTEN = "from kubesched.client import informer; informer.NOT_SERVED_PAUSE_S = 0.5"
WITHOUT_DEVICES = "resource.k8s.io/v1=false"


def not_served(scheduler: SchedulerProcess) -> list[str]:
    """Return what the scheduler said to be missing."""
    return sorted(re.findall(r"W.*the API server does not serve (\S+) in version", scheduler.log()))


def served_now(scheduler: SchedulerProcess) -> list[str]:
    """Return what the scheduler said to have appeared."""
    return sorted(re.findall(r"the API server serves (\S+) in version \S+ now", scheduler.log()))


@contextlib.contextmanager
def running(plane: ControlPlane, *flags: str) -> Iterator[SchedulerProcess]:
    # Not elected: a leader that cannot renew its lease ends, and this one is to outlive the server.
    config = configuration(plane.scheduler_kubeconfig)
    with run_patched(plane.folder, ASK_OFTEN, config, *flags) as scheduler:
        yield scheduler
        assert scheduler.terminate() == 0
        assert "Traceback" not in scheduler.log()


def place(plane: ControlPlane, name: str) -> None:
    plane.request("POST", pods_path(NAMESPACE), pod(name))
    wait_until_bound(plane, NAMESPACE, name, seconds=40)


def restart(plane: ControlPlane, assets: Path) -> None:
    """Start the API server again, of the version in this folder and with all that it has."""
    plane.kill_apiserver()
    plane.assets = assets
    plane.runtime_config = ""
    plane.start_apiserver()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("assets", "assets", id="restart"),
        pytest.param("older_assets", "older_assets", id="older-restart", marks=pytest.mark.slow),
        pytest.param("older_assets", "assets", id="upgrade", marks=pytest.mark.slow),
    ],
)
def test_missing_kinds_are_said_once_done_without_and_used_when_they_appear(
    request: pytest.FixtureRequest, before: str, after: str
) -> None:
    old: Path = request.getfixturevalue(before)
    new: Path = request.getfixturevalue(after)
    port = free_port()
    with (
        ControlPlane(old, runtime_config=WITHOUT_DEVICES) as plane,
        running(plane, *serving(plane, port)) as scheduler,
    ):
        missing = plane.absent_kinds()
        assert "resourceclaims.resource.k8s.io" in missing
        plane.request("POST", "/api/v1/nodes", node("n1"))
        place(plane, "without")
        assert not_served(scheduler) == missing
        assert page(plane, port, "/readyz").code == 200

        restart(plane, new)
        appeared = sorted(set(missing) - set(plane.absent_kinds()))
        assert "resourceclaims.resource.k8s.io" in appeared
        until(lambda: served_now(scheduler) == appeared, seconds=60)
        place(plane, "with")

        assert not_served(scheduler) == missing
        assert page(plane, port, "/readyz").code == 200


@pytest.mark.slow
def test_a_kind_that_the_older_server_forbids_because_it_does_not_have_it(
    older_assets: Path, assets: Path
) -> None:
    """Where kube-scheduler v1.37 waits for ever: DeviceTaintRule v1 on an API server v1.36."""
    with ControlPlane(older_assets) as plane:
        assert not plane.serves(RULES)
        access = kubeconfig.load(plane.scheduler_kubeconfig)

        async def follow() -> None:
            async with ApiClient(access) as client:
                with pytest.raises(ForbiddenError):
                    await client.request("GET", RULES.collection())
                # Of the objects nothing but their names matters here.
                informer = Informer(
                    client, RULES, DeviceClass, optional=True, sleep=lambda _: asyncio.sleep(0.2)
                )
                task = asyncio.create_task(informer.run())
                await asyncio.wait_for(informer.synced.wait(), 10)
                assert informer.trouble == ""

                await asyncio.to_thread(restart, plane, assets)
                rule = {
                    "metadata": {"name": "r"},
                    "spec": {"taint": {"key": "broken", "effect": "NoSchedule"}},
                }
                await asyncio.to_thread(plane.request, "POST", RULES.collection(), rule)
                await eventually(lambda: informer.get("r") is not None)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

        asyncio.run(follow())
