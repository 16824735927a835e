"""Mistakes of the person who starts the scheduler: one line says what is wrong and where.

Nothing here needs luck or patience: each run ends by itself, with code 1 and without a traceback.
What a misbehaving API server does is in test_scheduler_bad_server.py, and what the scheduler waits
for when it starts is in test_start.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .control_plane import ControlPlane, JsonObject
from .scheduler_process import configuration, profile, run_to_its_end

NO_ELECTION = "--leader-elect=false"


def refusal(*flags: str) -> str:
    """Run the command, which must fail at once; return the one line that says why."""
    result = run_to_its_end("--secure-port=0", *flags)
    said = [line for line in result.stderr.splitlines() if line[:1] != "I"]
    assert result.returncode == 1, result.stderr
    assert result.stdout == ""
    assert len(said) == 1, result.stderr
    assert said[0].startswith("Error: ")
    return said[0].removeprefix("Error: ")


# ---------------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--feature-gates=NoSuchGate=true"], "unrecognized feature gate: NoSuchGate"),
        (["--feature-gates=NodeDeclaredFeatures"], "missing bool value for NodeDeclaredFeatures"),
        (["--feature-gates=NodeDeclaredFeatures=perhaps"], "NodeDeclaredFeatures=perhaps"),
        (["--config=/absent/file"], "/absent/file: no such file or directory"),
        (["--write-config-to=/absent/file"], "/absent/file: no such file or directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_line_that_is_refused(flags: list[str], complaint: str) -> None:
    assert complaint in refusal(*flags)


# ---------------------------------------------------------------------- the configuration file


def fit_args(**args: object) -> JsonObject:
    return {"profiles": [profile(args={"NodeResourcesFit": dict(args)})]}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"profilez": []}, 'unknown field "profilez"'),
        ({"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}, "v1beta3"),
        ({"apiVersion": "apps/v1"}, "apps/v1"),
        ({"kind": "Deployment"}, 'no kind "Deployment" is registered'),
        ({"kind": ""}, "Object 'Kind' is missing"),
        ({"parallelism": -1}, "parallelism: Invalid value: -1"),
        ({"parallelism": "many"}, "KubeSchedulerConfiguration.parallelism of type int32"),
        ({"profiles": [profile("a"), profile("a")]}, "profiles[1].schedulerName: Duplicate value"),
        (fit_args(unknown=1), "args for plugin NodeResourcesFit: strict decoding error: unknown"),
        (fit_args(scoringStrategy={"type": "Best"}), "scoringStrategy.type"),
        (
            {"profiles": [profile(plugins={"filter": {"enabled": [{"name": "NoSuchPlugin"}]}})]},
            "NoSuchPlugin",
        ),
    ],
    ids=[
        "an unknown field",
        "an old version",
        "another group",
        "another kind",
        "no kind",
        "a value out of range",
        "a value of the wrong type",
        "the same profile twice",
        "an unknown argument of a plugin",
        "an argument of a plugin that makes no sense",
        "an unknown plugin",
    ],
)
def test_a_configuration_that_is_refused(
    control_plane: ControlPlane, tmp_path: Path, change: JsonObject, complaint: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps(configuration(control_plane.scheduler_kubeconfig) | change))
    assert complaint in refusal(f"--config={file}")


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"a: [b", b"\xff\xfe\x00", b"- 1", b"\x00" * 10, b"a: &a [*a, *a]\n"),
        *(b"{" * 5000, b"[" * 100_000, b'{"a":' * 100_000),
    ],
    ids=[
        *("empty", "bad YAML", "not UTF-8", "a list", "zeros", "a loop"),
        *("thousands of brackets", "deeper than YAML's stack", "deeper than JSON's stack"),
    ],
)
def test_a_configuration_that_is_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(content)
    assert str(file) in refusal(f"--config={file}")


# ---------------------------------------------------------------------- the kubeconfig


def kubeconfig(**change: Any) -> JsonObject:
    """A kubeconfig that is well-formed and leads nowhere, with parts replaced."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **change,
    }


def cluster(**fields: str) -> list[JsonObject]:
    return [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", **fields}}]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (kubeconfig(**{"current-context": ""}), "current-context is not set; set it to one of: x"),
        (kubeconfig(**{"current-context": "y"}), "context 'y' does not exist; there is: x"),
        (kubeconfig(clusters=[]), "contexts[x].cluster: cluster 'c' does not exist"),
        (kubeconfig(users=[]), "contexts[x].user: user 'u' does not exist"),
        (kubeconfig(users=[{"name": "u", "user": {"tokenFile": "/absent"}}]), "users[u].tokenFile"),
        (
            kubeconfig(clusters=cluster(**{"certificate-authority": "/absent"})),
            "clusters[c].certificate-authority: cannot read /absent",
        ),
        (
            kubeconfig(clusters=cluster(**{"certificate-authority-data": "bm9uZQ=="})),
            "clusters[c].certificate-authority-data",
        ),
        (kubeconfig(clusters=cluster(server="gopher://127.0.0.1")), "clusters[c].server"),
        ("a: [b", "not YAML"),
        ("- 1", "not a kubeconfig"),
        ("", "current-context is not set"),
    ],
    ids=[
        "no current context",
        "an absent context",
        "an absent cluster",
        "an absent user",
        "an absent token file",
        "an absent authority",
        "an authority that is none",
        "a server that is no address",
        "bad YAML",
        "a list",
        "an empty file",
    ],
)
def test_a_kubeconfig_that_is_refused(
    tmp_path: Path, content: JsonObject | str, complaint: str
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    said = refusal(f"--kubeconfig={file}", NO_ELECTION)
    assert str(file) in said
    assert complaint in said


def test_a_kubeconfig_that_is_not_there() -> None:
    said = refusal("--kubeconfig=/absent/kubeconfig", NO_ELECTION)
    assert said == "cannot read kubeconfig /absent/kubeconfig: No such file or directory"
