"""A scheduler that is started amid faults waits for its API server, as kube-scheduler does.

It says once why it waits, ends at once when it is told to, and goes on by itself when the fault is
over. What ends it at the start is a mistake in its own flags and files: test_bad_input.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.chaos.faults import faulty_proxy

from .control_plane import ControlPlane, JsonObject
from .faulty_server import serving
from .scheduler_process import (
    SchedulerProcess,
    configuration,
    node,
    pod,
    pods_path,
    run_scheduler,
    wait_until_bound,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")

WAITS = '"Waiting for the API server"'
ELECTED = {"leaderElect": True, "resourceName": "started-amid-faults"}


@contextmanager
def waiting_scheduler(
    plane: ControlPlane, kubeconfig: Path, *, why: str, elects: bool = False
) -> Iterator[SchedulerProcess]:
    """Start a scheduler that cannot reach its API server; give it when it has said why."""
    settings = {"leaderElection": ELECTED} if elects else {}
    with run_scheduler(plane, configuration(kubeconfig, **settings)) as scheduler:
        scheduler.wait_for_log(WAITS)
        [line] = scheduler.log_lines()
        assert why in line
        yield scheduler


def assert_it_schedules(plane: ControlPlane, namespace: str, scheduler: SchedulerProcess) -> None:
    scheduler.wait_for_log('"Reached the API server"')
    scheduler.wait_until_scheduling()
    plane.request("POST", "/api/v1/nodes", node("n1"))
    plane.request("POST", pods_path(namespace), pod("p"))
    assert wait_until_bound(plane, namespace, "p") == {"p": "n1"}


def with_changes(plane: ControlPlane, folder: Path, part: str, change: JsonObject) -> Path:
    """Write the scheduler's kubeconfig with its cluster or its user changed."""
    config = json.loads(plane.scheduler_kubeconfig.read_text())
    config[f"{part}s"][0][part] = config[f"{part}s"][0][part] | change
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return file


@pytest.mark.parametrize("elects", [False, True], ids=["alone", "elected"])
def test_a_certificate_of_another_authority_that_becomes_right(
    control_plane: ControlPlane, namespace: str, elects: bool
) -> None:
    with faulty_proxy(control_plane, seed=1) as proxy:
        proxy.swap_certificate(trusted=False)
        why = f"127.0.0.1:{proxy.server_port}: certificate signed by unknown authority"
        with waiting_scheduler(
            control_plane, proxy.kubeconfig(), why=why, elects=elects
        ) as scheduler:
            proxy.swap_certificate(trusted=True)
            assert_it_schedules(control_plane, namespace, scheduler)


@pytest.mark.parametrize("code", [401, 403, 429, 500, 503])
def test_a_server_that_refuses_everything_for_a_while(
    control_plane: ControlPlane, namespace: str, code: int
) -> None:
    with serving(control_plane) as proxy:
        proxy.refuse = lambda _method, _path: code
        with waiting_scheduler(control_plane, proxy.kubeconfig(), why="spoiled") as scheduler:
            proxy.refuse = lambda _method, _path: None
            assert_it_schedules(control_plane, namespace, scheduler)


def test_a_token_that_is_replaced_by_a_right_one(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("not-a-token-anymore")
    change = {"token": "", "tokenFile": str(token)}
    kubeconfig = with_changes(control_plane, tmp_path, "user", change)
    why = f"127.0.0.1:{control_plane.port} refuses our credentials: Unauthorized; "
    with waiting_scheduler(control_plane, kubeconfig, why=why) as scheduler:
        token.write_text(control_plane.scheduler_token)
        assert_it_schedules(control_plane, namespace, scheduler)


def test_a_scheduler_that_waits_ends_when_it_is_told_to(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    change = {"tls-server-name": "elsewhere.invalid"}
    kubeconfig = with_changes(control_plane, tmp_path, "cluster", change)
    why = "the server's certificate is for another name"
    with waiting_scheduler(control_plane, kubeconfig, why=why) as scheduler:
        assert scheduler.terminate(seconds=5) == 0


def test_an_api_server_that_is_started_after_its_scheduler(
    control_plane: ControlPlane, namespace: str
) -> None:
    with ExitStack() as undo:
        control_plane.kill_apiserver()
        undo.callback(control_plane.start_apiserver)
        kubeconfig = control_plane.scheduler_kubeconfig
        why = f"127.0.0.1:{control_plane.port}: "
        with waiting_scheduler(control_plane, kubeconfig, why=why) as scheduler:
            undo.close()
            assert_it_schedules(control_plane, namespace, scheduler)
