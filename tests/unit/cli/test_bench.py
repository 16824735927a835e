"""The bench command: what it refuses, lists and shows without a control plane."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubesched.cli import kubesched

CONFIG = """\
- name: Case
  workloadTemplate:
  - {opcode: createNodes, countParam: $initNodes}
  workloads:
  - {name: small, labels: [short], params: {initNodes: 2}}
"""


@pytest.fixture(autouse=True)
def no_binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is installed on this machine, none of it is found."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no etcd, kube-apiserver in"),
        (["--apiserver=embedded"], "no kube-scheduler in"),
        (["--apiserver=embedded", "--schedulers=fly"], "'fly' is none of ours"),
        (["--apiserver=embedded", "--schedulers=null", "Fly"], "there is no workload 'Fly'"),
        (["--apiserver=embedded", "--qps=0"], "--qps"),
        (["--apiserver=embedded", "--test=x"], "say which with --config"),
        (["--apiserver=embedded", "--config=/no/such", "X"], "with --test and --workload"),
        (["--apiserver=embedded", "--config=/no/such"], "/no/such: No such file"),
        (["--apiserver=moon"], "moon"),
        (["--nodes=0"], "0 is too small"),
        (["--decisions", "fly"], "there is no workload 'fly'"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubesched.main(["bench", *arguments]) == 1

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: ")
    assert said in line


def test_missing_binaries_say_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubesched.main(["bench"]) == 1

    assert "run `make envtest`" in capsys.readouterr().err


def test_the_workloads_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubesched.main(["bench", "--list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("SchedulingBasic ") for line in lines)
    assert any(line.startswith("families ") for line in lines)


def test_the_workloads_of_a_file_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "performance-config.yaml"
    path.write_text(CONFIG)

    assert kubesched.main(["bench", "--list", f"--config={path}"]) == 0

    assert capsys.readouterr().out == "Case/small  (short)\n"


def test_decisions_are_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["--decisions", "--nodes=20", "--pods=10", "basic"]

    assert kubesched.main(["bench", *arguments]) == 0
    shown = capsys.readouterr().out
    assert kubesched.main(["bench", *arguments, "-o", "json", f"--results={tmp_path}"]) == 0

    assert "decisions/s" in shown
    (point,) = json.loads(capsys.readouterr().out)["points"]
    assert (point["workload"], point["nodes"], point["decided"]) == ("basic", 20, 10)
    (written,) = tmp_path.glob("decisions-*.json")
    assert json.loads(written.read_text())["points"] == [point]
