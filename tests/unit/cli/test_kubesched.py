"""The kubesched command, and its demo, run as people run it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import kubesched as package
from kubesched import KUBERNETES_VERSION, __version__
from kubesched.cli import kubesched


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own; warnings are errors in it."""
    source = str(Path(package.__file__).resolve().parents[1])
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "kubesched.cli.kubesched", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": source, "COLUMNS": "120"},
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "COMMAND"),
        (["fly"], "fly"),
        (["demo", "--nodes=0"], "0 is too small, it must be at least 1"),
        (["demo", "--pods=many"], "'many' is not a number"),
        (["demo", "--no-such-flag"], "--no-such-flag"),
    ],
    ids=["nothing", "unknown command", "no nodes", "not a number", "unknown flag"],
)
def test_a_mistake_is_one_line_and_exit_code_1(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubesched.main(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: ")
    assert said in line
    assert "--help" in line


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        kubesched.main(["--version"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said == f"kubesched {__version__} (Kubernetes {KUBERNETES_VERSION})\n"


def test_the_demo_schedules_and_says_what_came_of_it() -> None:
    ended = run("demo", "--nodes", "10", "--pods", "60")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "kubesched demo: 10 nodes in" in ended.stdout
    text = " ".join(ended.stdout.split())
    assert "60 pods" in text
    found = re.search(r"(\d+) pods bound in [\d.]+ s, [\d,]+ pods/s; (\d+) waiting", text)
    assert found is not None
    bound, waiting = found.groups()
    assert int(bound) + int(waiting) == 60
    assert int(bound) > 50
    for heading in (
        "from creation to binding: p50",
        "requested share of allocatable",
        "why pods wait",
    ):
        assert heading in text
    assert "waiting for scheduling gates: [example.com/quota]" in text


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run("demo", "--nodes=1", "--pods=1", f"--port={port}")
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith("Error: ")
    assert str(port) in line
