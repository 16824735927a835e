from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubesched.cli import kube_scheduler
from kubesched.cli.kubesched import main
from kubesched.config import loading
from tests.support.configuration_tables import GATES, HEADER
from tests.support.legacy_configurations import DATA, FILES

OLD = str(DATA / "v1beta2-two-profiles.yaml")
POLICY = str(DATA / "policy-gpu.yaml")


@pytest.fixture
def current(tmp_path: Path) -> str:
    path = tmp_path / "current.yaml"
    path.write_text(HEADER)
    return str(path)


@pytest.mark.parametrize("file", FILES)
def test_converts_to_what_kube_scheduler_loads(file: str, tmp_path: Path) -> None:
    out, written, report = tmp_path / "out.yaml", tmp_path / "written.yaml", tmp_path / "report"

    converted = main(
        ["config", "convert", str(DATA / file), "-o", str(out), "--report", str(report)]
    )
    loaded = kube_scheduler.main(
        ["--config", str(out), "--write-config-to", str(written), "--secure-port=0"]
    )

    assert (converted, loaded) == (0, 0)
    assert report.read_text().endswith("\n")
    assert "-> kubescheduler.config.k8s.io/v1\n" in report.read_text()


def test_the_configuration_goes_to_standard_output_and_the_report_elsewhere(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert main(["config", "convert", POLICY]) == 0

    out, err = capfdbinary.readouterr()
    loading.decode(out.decode(), gates=GATES)
    assert err.startswith(b"Policy -> kubescheduler.config.k8s.io/v1\n")


def test_a_provider_needs_no_file(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["config", "convert", "--algorithm-provider=ClusterAutoscalerProvider"]) == 0

    assert b"type: MostAllocated" in capfdbinary.readouterr().out


def policy_source(tmp_path: Path, named: str) -> str:
    old = tmp_path / "old.yaml"
    header = HEADER.replace("/v1\n", "/v1alpha1\n")
    old.write_text(f"{header}algorithmSource: {{policy: {named}}}\n")
    return str(old)


def test_a_policy_that_is_elsewhere_now_is_named_by_a_flag(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    old = policy_source(tmp_path, "{configMap: {name: policy}}")

    assert main(["config", "convert", old, f"--policy={POLICY}"]) == 0

    assert b"nvidia.com/gpu" in capfdbinary.readouterr().out


@pytest.mark.parametrize(
    ("named", "want"),
    [
        ("{configMap: {name: policy}}", "is a ConfigMap: save it, and name it by --policy"),
        ("{file: {path: /no/such}}", "cannot read /no/such: No such file or directory; "),
    ],
)
def test_a_policy_that_is_not_at_hand_is_asked_for(
    named: str, want: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "convert", policy_source(tmp_path, named)]) == 1

    assert want in capsys.readouterr().err


def test_convert_needs_something_to_convert(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "convert"]) == 1

    assert capsys.readouterr().err == (
        "Error: nothing to convert: name a FILE, or --algorithm-provider\n"
    )


# --- diff -------------------------------------------------------------------------------------


def test_what_is_the_same_has_no_diff(
    current: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(f"{HEADER}parallelism: 16\n")

    assert main(["config", "diff", current, str(other)]) == 0
    assert capfd.readouterr().out == ""


def test_what_differs_is_shown(current: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "diff", current, OLD]) == 1

    out = capfd.readouterr().out
    assert out.startswith(f"--- {current}\n+++ {OLD}\n")
    assert "- podMaxBackoffSeconds: 10\n+ podMaxBackoffSeconds: 30\n" in out


def test_programs_get_json(current: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "diff", current, OLD, "-o", "json"]) == 1

    said = json.loads(capfd.readouterr().out)
    assert said["equal"] is False
    assert {"part": "", "name": "podMaxBackoffSeconds", "a": 10, "b": 30} in said["differences"]


def test_an_old_configuration_equals_what_it_is_converted_to(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.yaml"
    main(["config", "convert", OLD, "-o", str(out)])

    assert main(["config", "diff", OLD, str(out)]) == 0


def test_what_cannot_be_compared_is_noted(current: str, capfd: pytest.CaptureFixture[str]) -> None:
    main(["config", "diff", current, POLICY])

    assert f"Note: {POLICY}: no counterpart in v1: NodePreferAvoidPods" in capfd.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [[], ["A"], ["A", "B", "--foo"], ["A", "B", "-o", "toml"], ["/no/such", OLD]],
    ids=["nothing", "one file", "unknown flag", "unknown form", "a file that is not there"],
)
def test_trouble_is_neither_the_same_nor_different(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "diff", *arguments]) == 2

    assert capsys.readouterr().err.startswith("Error: ")


# --- where old configurations are refused -----------------------------------------------------


@pytest.mark.parametrize("path", [OLD, POLICY])
def test_kube_scheduler_names_the_converter(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert kube_scheduler.main(["--config", path]) == 1

    (line,) = capsys.readouterr().err.splitlines()
    assert "no kind " in line
    assert line.endswith(f"; 'kubesched config convert {path}' makes v1 of it")
