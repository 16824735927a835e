"""The kube-scheduler command: flags, and what is said about wrong ones. Nothing is connected to."""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched import KUBERNETES_VERSION, __version__
from kubesched.cli import kube_scheduler, running
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    logging.getLogger("asyncio").setLevel(logging.NOTSET)


Served = list[tuple[argparse.Namespace, SchedulerConfiguration, FeatureGates]]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """What would have been served, instead of serving it."""
    found: Served = []

    async def serve(
        flags: argparse.Namespace, config: SchedulerConfiguration, gates: FeatureGates
    ) -> None:
        found.append((flags, config, gates))

    def run(main: Callable[[], Any]) -> int:
        asyncio.run(main())
        return 0

    monkeypatch.setattr(kube_scheduler, "_serve", serve)
    monkeypatch.setattr(running, "run", run)
    return found


def write(folder: Path, **document: object) -> str:
    path = folder / "config.yaml"
    head = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    path.write_text(yaml.safe_dump({**head, **document}))
    return str(path)


# --- wrong flags ------------------------------------------------------------------------------

WRONG: dict[str, tuple[list[str], str]] = {
    "unknown": (["--no-such-flag=1"], "unknown flag: --no-such-flag"),
    "not abbreviated": (["--conf=x"], "unknown flag: --conf"),
    "an argument": (["run"], '"kube-scheduler" does not take any arguments'),
    "not a number": (["--kube-api-burst=many"], "--kube-api-burst"),
    "not a truth": (["--leader-elect=maybe"], "'maybe' is neither true nor false"),
    "not a duration": (
        ["--pod-max-in-unschedulable-pods-duration=soon"],
        "--pod-max-in-unschedulable-pods-duration",
    ),
    "no value": (["--config"], "--config"),
    "unknown gate": (["--feature-gates=NoSuchGate=true"], "NoSuchGate"),
    "a gate without a value": (
        ["--feature-gates=SchedulerQueueingHints"],
        "missing bool value for SchedulerQueueingHints",
    ),
    "no such version": (["--emulated-version=9.99"], "9.99"),
    "no such file": (["--config=/nonexistent/config.yaml"], "/nonexistent/config.yaml"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_one_line_and_exit_code_1(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], served: Served
) -> None:
    assert kube_scheduler.main(arguments) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("Error: ")
    assert output.err.count("\n") == 1
    assert said in output.err
    assert served == []


def test_a_wrong_configuration_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], served: Served
) -> None:
    file = write(tmp_path, parallelism=-1)
    assert kube_scheduler.main([f"--config={file}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "parallelism" in line
    assert served == []


# --- right flags ------------------------------------------------------------------------------


def test_the_version_is_printed_and_nothing_else_happens(
    capsys: pytest.CaptureFixture[str], served: Served
) -> None:
    assert kube_scheduler.main(["--version", "--config=/nonexistent"]) == 0
    assert capsys.readouterr().out == f"Kubernetes {KUBERNETES_VERSION} (kubesched {__version__})\n"
    assert served == []


def test_defaults_are_kube_scheduler_s(served: Served) -> None:
    assert kube_scheduler.main([]) == 0
    ((flags, config, _),) = served
    connection = config.client_connection
    assert (connection.kubeconfig, connection.qps, connection.burst) == ("", 50.0, 100)
    assert config.leader_election.leader_elect
    assert flags.pod_max_in_unschedulable_pods_duration == 300.0


def test_flags_become_configuration(served: Served) -> None:
    arguments = [
        "--kubeconfig=/etc/k",
        "--kube-api-qps=7.5",
        "--kube-api-burst",
        "9",
        "--leader-elect=false",
        "--pod-max-in-unschedulable-pods-duration=1m30s",
        "--feature-gates=SchedulerAsyncAPICalls=true",
        "--master=https://example.invalid",
    ]
    assert kube_scheduler.main(arguments) == 0
    ((flags, config, gates),) = served
    connection = config.client_connection
    assert (connection.kubeconfig, connection.qps, connection.burst) == ("/etc/k", 7.5, 9)
    assert not config.leader_election.leader_elect
    assert flags.pod_max_in_unschedulable_pods_duration == 90.0
    assert flags.master == "https://example.invalid"
    assert gates.enabled("SchedulerAsyncAPICalls")


def test_underscores_are_dashes_in_names_but_not_in_values(served: Served) -> None:
    assert (
        kube_scheduler.main(["--kube_api_qps=7", "--kubeconfig=/my_own/k_b", "--leader_elect"]) == 0
    )
    ((_, config, _),) = served
    assert config.client_connection.qps == 7.0
    assert config.client_connection.kubeconfig == "/my_own/k_b"
    assert config.leader_election.leader_elect


def test_gates_may_be_given_in_several_flags(served: Served) -> None:
    assert (
        kube_scheduler.main(
            [
                "--feature-gates=SchedulerAsyncAPICalls=true",
                "--feature-gates=SchedulerAsyncPreemption=false",
            ]
        )
        == 0
    )
    gates = served[0][2]
    assert gates.enabled("SchedulerAsyncAPICalls")
    assert not gates.enabled("SchedulerAsyncPreemption")


def test_a_configuration_file_makes_deprecated_flags_meaningless(
    tmp_path: Path, served: Served
) -> None:
    file = write(
        tmp_path,
        clientConnection={"kubeconfig": "/from/file", "qps": 3},
        leaderElection={"leaderElect": True},
    )
    arguments = [f"--config={file}", "--kubeconfig=/from/flag", "--kube-api-qps=99"]
    assert kube_scheduler.main([*arguments, "--leader-elect=false"]) == 0
    ((_, config, _),) = served
    assert config.client_connection.kubeconfig == "/from/file"
    assert config.client_connection.qps == 3
    assert not config.leader_election.leader_elect, "which is not deprecated"


# --- --write-config-to ------------------------------------------------------------------------


def test_the_complete_configuration_is_written_and_can_be_read_again(
    tmp_path: Path, served: Served
) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    file = write(tmp_path, parallelism=5)
    assert kube_scheduler.main([f"--config={file}", f"--write-config-to={first}"]) == 0
    document = yaml.safe_load(first.read_text())
    assert (document["parallelism"], document["podInitialBackoffSeconds"]) == (5, 1)
    assert document["profiles"][0]["schedulerName"] == "default-scheduler"
    assert served == []

    assert kube_scheduler.main([f"--config={first}", f"--write-config-to={second}"]) == 0
    assert second.read_text() == first.read_text()


def test_a_file_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "absent" / "config.yaml"
    assert kube_scheduler.main([f"--write-config-to={target}"]) == 1
    assert capsys.readouterr().err == (
        f"Error: --write-config-to {target}: No such file or directory\n"
    )
