"""The kube-scheduler command: what it prints, writes and logs. Nothing is connected to."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import kubesched
from kubesched import KUBERNETES_VERSION, logs
from kubesched.cli import kube_scheduler, running
from kubesched.cli.options import CommandOptions


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    logs.shutdown()
    root.handlers = handlers
    root.setLevel(level)
    logging.getLogger("asyncio").setLevel(logging.NOTSET)


Served = list[CommandOptions]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """What would have been served, instead of serving it."""
    found: Served = []

    async def serve(options: CommandOptions, _read_again: object) -> None:
        found.append(options)

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


# --- wrong ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--no-such-flag=1"], "unknown flag: --no-such-flag"),
        (["--conf=x"], "unknown flag: --conf"),
        (["--config"], "flag needs an argument: --config"),
        (["--help", "--foo"], "unknown flag: --foo"),
    ],
    ids=["unknown", "not abbreviated", "no value", "before help"],
)
def test_flags_that_cannot_be_read_get_a_hint_and_then_the_reason(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], served: Served
) -> None:
    assert kube_scheduler.main(arguments) == 1
    output = capsys.readouterr()

    assert output.out == ""
    assert output.err == (
        "Usage:\n  kube-scheduler [flags]\n\n"
        "See 'kube-scheduler --help' for its flags.\n\n"
        f"Error: {said}\n"
    )
    assert served == []


WRONG: dict[str, tuple[list[str], str]] = {
    "an argument": (["run"], '"kube-scheduler" does not take any arguments, got ["run"]'),
    "unknown gate": (["--feature-gates=NoSuchGate=true"], "unrecognized feature gate: NoSuchGate"),
    "no such version": (["--emulated-version=9.99"], "emulation version 9.99 is not between"),
    "no such format": (["--logging-format=x"], 'format: Invalid value: "x"'),
    "no such port": (["--secure-port=-1"], "--secure-port -1 must be between"),
    "no such file": (["--config=/nonexistent/config.yaml"], "open /nonexistent/config.yaml: no "),
    "a wrong gate before the version": (["--version", "--feature-gates=A=true"], "feature gate: A"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG.keys())
def test_anything_else_that_is_wrong_is_one_line_and_exit_code_1(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], served: Served
) -> None:
    assert kube_scheduler.main(arguments) == 1
    output = capsys.readouterr()

    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith("Error: ")
    assert said in line
    assert served == []


def test_a_wrong_configuration_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], served: Served
) -> None:
    file = write(tmp_path, parallelism=-1)

    assert kube_scheduler.main([f"--config={file}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "parallelism" in line
    assert served == []


def test_profiles_that_cannot_be_built_are_refused_before_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], served: Served
) -> None:
    enabled = {"enabled": [{"name": "Nobody"}]}
    file = write(tmp_path, profiles=[{"schedulerName": "a", "plugins": {"filter": enabled}}])

    assert kube_scheduler.main([f"--config={file}"]) == 1
    assert capsys.readouterr().err == (
        "Error: initializing profiles: creating profile for scheduler name a: "
        'FilterPlugin "Nobody" does not exist\n'
    )
    assert served == []


def test_who_reads_json_gets_the_reason_in_json(
    capsys: pytest.CaptureFixture[str], served: Served
) -> None:
    assert kube_scheduler.main(["--logging-format=json", "--config=/nonexistent"]) == 1
    said = json.loads(capsys.readouterr().err)

    assert said["msg"] == "command failed"
    assert said["err"] == "open /nonexistent: no such file or directory"
    assert served == []


# --- help and version -------------------------------------------------------------------------


def test_help(capsys: pytest.CaptureFixture[str], served: Served) -> None:
    assert kube_scheduler.main(["-h", "stray", "--config=/nonexistent"]) == 0
    output = capsys.readouterr()

    assert "Secure serving flags:" in output.out
    assert "kube:SchedulerAsyncAPICalls=true|false (BETA - default=false)" in output.out
    assert (output.err, served) == ("", [])


@pytest.mark.parametrize("flag", ["--version", "--version=true", "--version=1"])
def test_the_version_is_printed_and_nothing_else_happens(
    flag: str, capsys: pytest.CaptureFixture[str], served: Served
) -> None:
    assert kube_scheduler.main([flag, "--config=/nonexistent"]) == 0
    assert capsys.readouterr().out == f"Kubernetes {KUBERNETES_VERSION}\n"
    assert served == []


def test_the_raw_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert kube_scheduler.main(["--version=raw"]) == 0
    said = capsys.readouterr().out

    assert said.startswith('version.Info{Major:"1", Minor:"37", ')
    assert f'GitVersion:"{KUBERNETES_VERSION}"' in said
    assert said.endswith('"}\n')


def test_another_version_can_be_reported(served: Served) -> None:
    assert kube_scheduler.main(["--version=v1.37.1-mine"]) == 0
    assert served[0].reported_version == "v1.37.1-mine"


# --- logs -------------------------------------------------------------------------------------


def test_flags_are_logged_with_v_1(capsys: pytest.CaptureFixture[str], served: Served) -> None:
    assert kube_scheduler.main(["-v=1", '--master=http://"x"']) == 0
    lines = [line.partition("] ")[2] for line in capsys.readouterr().err.splitlines()]

    assert r'FLAG: --master="http://\"x\""' in lines
    assert 'FLAG: --secure-port="10259"' in lines
    assert len(lines) > 60


def test_flags_are_logged_even_if_they_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert kube_scheduler.main(["-v=1", "--secure-port=-1"]) == 1
    assert 'FLAG: --secure-port="-1"' in capsys.readouterr().err


def test_nothing_is_logged_that_nobody_asked_for(
    capsys: pytest.CaptureFixture[str], served: Served
) -> None:
    assert kube_scheduler.main([]) == 0
    assert capsys.readouterr() == ("", "")


def test_what_people_should_know_is_logged_once(
    capsys: pytest.CaptureFixture[str], served: Served
) -> None:
    arguments = ["--disable-http2-serving", "--feature-gates=NodeDeclaredFeatures=true"]

    assert kube_scheduler.main(arguments) == 0
    gate, http2 = capsys.readouterr().err.splitlines()
    assert gate.startswith("I")
    assert gate.endswith('release." featureGate="NodeDeclaredFeatures" value=true')
    assert http2.startswith("W")
    assert "--disable-http2-serving is accepted, but has no effect" in http2


def test_the_configuration_is_logged_with_v_2(
    capsys: pytest.CaptureFixture[str], served: Served
) -> None:
    assert kube_scheduler.main(["-v=2"]) == 0
    assert '"Using component config" config=<\n\tapiVersion: ' in capsys.readouterr().err


def test_logs_are_split_and_written_before_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "--feature-gates=LoggingAlphaOptions=true",
        "--log-text-split-stream",
        "--log-text-info-buffer-size=1Mi",
        f"--write-config-to={tmp_path / 'x'}",
    ]

    assert kube_scheduler.main(arguments) == 0
    output = capsys.readouterr()
    assert "Wrote configuration" in output.out
    assert "alpha features" in output.err


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


def test_flags_are_in_what_is_written(tmp_path: Path) -> None:
    target = tmp_path / "out.yaml"
    arguments = ["--kubeconfig=/my_own/k", "--leader-elect=false", "--kube-api-qps=0.1"]

    assert kube_scheduler.main([*arguments, f"--write-config-to={target}"]) == 0
    document = yaml.safe_load(target.read_text())
    assert document["clientConnection"]["kubeconfig"] == "/my_own/k"
    assert document["clientConnection"]["qps"] == 0.1
    assert document["leaderElection"]["leaderElect"] is False


def test_extenders_have_their_say_in_what_is_written(tmp_path: Path) -> None:
    target = tmp_path / "out.yaml"
    managed = {"name": "example.com/x", "ignoredByScheduler": True}
    file = write(tmp_path, extenders=[{"urlPrefix": "http://e", "managedResources": [managed]}])

    assert kube_scheduler.main([f"--config={file}", f"--write-config-to={target}"]) == 0
    document = yaml.safe_load(target.read_text())
    args = {each["name"]: each["args"] for each in document["profiles"][0]["pluginConfig"]}
    assert document["extenders"][0]["httpTimeout"] == "5s"
    assert args["NodeResourcesFit"]["ignoredResources"] == ["example.com/x"]


def test_a_file_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "absent" / "config.yaml"

    assert kube_scheduler.main([f"--write-config-to={target}"]) == 1
    assert capsys.readouterr().err == f"Error: open {target}: no such file or directory\n"


def test_a_file_name_that_is_no_text_can_be_written_too(tmp_path: Path) -> None:
    target = tmp_path / "out.yaml"
    name = b"/k\xff".decode(errors="surrogateescape")

    assert kube_scheduler.main([f"--kubeconfig={name}", f"--write-config-to={target}"]) == 0
    document = yaml.safe_load(target.read_text())
    assert document["clientConnection"]["kubeconfig"] == "/k\ufffd"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
@pytest.mark.parametrize("flag", ["--help", "--version", "--version=raw"])
def test_what_cannot_be_printed_is_one_line(flag: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kubesched.cli.kube_scheduler", flag],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONPATH": str(Path(kubesched.__file__).resolve().parents[1])},
        )

    assert (done.returncode, done.stderr) == (
        1,
        "Error: write to stdout: no space left on device\n",
    )
