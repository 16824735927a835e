"""Completion: asked by bash, and by kubectl for its plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubesched.cli import kubesched
from kubesched.cli.completion import SHELLS


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A folder with the command, for PATH."""
    script = tmp_path / "kubesched"
    source = "from kubesched.cli import entry; raise SystemExit(entry.kubesched())"
    script.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{source}' \"$@\"\n")
    script.chmod(0o755)
    return tmp_path


def asked_by_bash(commands: Path, line: str) -> list[str]:
    code = f"""
        source <(kubesched completion bash)
        COMP_LINE={line!r} COMP_POINT={len(line)} COMP_TYPE=9
        _python_argcomplete kubesched
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    source = str(Path(kubesched.__file__).parents[2])
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": source}
    done = subprocess.run(
        ["bash", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return [word.strip() for word in done.stdout.split("\n") if word]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kubesched exp", ["explain"]),
        ("kubesched simulate d", ["drain"]),
        ("kubesched hi", ["history"]),
        ("kubesched history --rec", ["--recording"]),
        ("kubesched explain --sn", ["--snapshot"]),
        ("kubesched explain -o ", ["table", "wide", "name", "json", "yaml"]),
    ],
)
def test_bash_completes_commands_flags_and_values(
    commands: Path, line: str, words: list[str]
) -> None:
    assert asked_by_bash(commands, line) == words


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_code_that_registers_the_command(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubesched.main(["completion", shell]) == 0
    code = capsys.readouterr().out
    register = {"bash": "complete -o", "zsh": "compdef", "fish": "complete --command"}[shell]
    assert any(register in line and "kubesched" in line for line in code.splitlines())


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubesched.main(["completion", "tcsh"]) == 1
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["expl"], ["explain"]),
        (["explain", "--sn"], ["--snapshot"]),
        (["config", ""], ["-h", "--help", "convert", "diff"]),
        (["nonsense", "--x"], []),
    ],
)
def test_kubectl_gets_a_word_a_line_and_its_directive(given: list[str], words: list[str]) -> None:
    source = "from kubesched.cli import entry; raise SystemExit(entry.kubectl_complete_kubesched())"
    done = subprocess.run(
        [sys.executable, "-c", source, *given],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    *found, directive = done.stdout.splitlines()
    assert [word for word in found if word] == words
    assert directive == ":4"
