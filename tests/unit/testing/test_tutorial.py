"""docs/plugins.md: what it shows is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kubesched

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "plugins.md"
TEXT = DOCUMENT.read_text()


def block(language: str, containing: str, *, last: bool = False) -> str:
    found = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    matching = [each for each in found if containing in each]
    assert matching, f"no {language} block has {containing!r}"
    return str(matching[-1 if last else 0])


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(kubesched.__file__).parents[1]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def run_pytest(folder: Path) -> str:
    plugin = ("-p", "kubesched.testing.pytest_plugin", "-p", "no:cacheprovider")
    return run(folder, "-m", "pytest", "-q", *plugin)


def shown(output: str) -> list[str]:
    """Give the lines with which pytest explains a failure, without folders."""
    lines = [line for line in output.splitlines() if line.startswith("E  ")]
    return [re.sub(r" /\S*/(?=cheapest)", " ", line).rstrip() for line in lines]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_cheapest.py").write_text(block("python", "def test_the_cheapest"))
    return tmp_path


def test_the_first_version_fails_as_shown(folder: Path) -> None:
    (folder / "cheapest.py").write_text(block("python", "class Cheapest"))

    output = run_pytest(folder)

    assert "1 failed, 2 passed" in output
    document = re.sub(r" /\S*/(?=cheapest)", " ", TEXT)
    for line in shown(output):
        assert f"    {line}\n" in document


def test_the_second_version_passes_and_shows_its_scores(folder: Path) -> None:
    (folder / "cheapest.py").write_text(block("python", "class Cheapest", last=True))
    assert "3 passed" in run_pytest(folder)

    test = folder / "test_cheapest.py"
    head, _, tail = test.read_text().rpartition('lands_on("cheap")')
    test.write_text(f'{head}lands_on("unknown"){tail}')
    explained = shown(run_pytest(folder))
    assert "E       AssertionError: default/pod-1 lands on cheap, expected unknown" in explained
    assert f"    {explained[0]}\n" in TEXT


def test_the_configuration_is_refused_and_accepted_as_shown(folder: Path) -> None:
    (folder / "cheapest.py").write_text(block("python", "class Cheapest", last=True))
    config = folder / "scheduler.yaml"
    config.write_text(block("yaml", "kind: KubeSchedulerConfiguration"))
    command = (
        *("-m", "kubesched.cli.kube_scheduler", "--config=scheduler.yaml"),
        *("--plugin=cheapest.py", "--write-config-to=out.yaml"),
    )

    refused = run(folder, *command)
    config.write_text(config.read_text().replace("priceLabels", "priceLabel"))
    accepted = run(folder, *command)

    assert f"    {refused.strip()}\n" in TEXT
    assert '"Wrote configuration" file="out.yaml"' in accepted
    assert "priceLabel: cost" in (folder / "out.yaml").read_text()
