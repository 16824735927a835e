"""The demo keeps what README promises: run a command that the page proposes, and the pod goes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until

JsonObject = dict[str, Any]

COMMAND = (sys.executable, "-m", "kubesched.cli.kubesched")
FLAGS = ("--nodes", "20", "--pods", "300", "--keep")


class Demo:
    """A demo that stays up, and the programs to use with it."""

    def __init__(self, kubeconfig: str, assets: Path) -> None:
        path = f"{assets}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "KUBECONFIG": kubeconfig, "PATH": path}

    def run(self, *command: str) -> str:
        """Run a program to its end."""
        result = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def pods(self, app: str) -> list[JsonObject]:
        """Return the pods of an application."""
        found = json.loads(self.run("kubectl", "get", "pods", "-l", f"app={app}", "-o", "json"))
        items: list[JsonObject] = found["items"]
        return items

    def commands(self, pod: str) -> list[str]:
        """Return the commands of the first change that has any."""
        flags = ("-o", "json", "--feature-gates", "GenericWorkload=true")
        said = json.loads(self.run(*COMMAND, "explain", "pod", f"default/{pod}", *flags))
        return next(each["commands"] for each in said["changes"] if each.get("commands"))


@pytest.fixture(scope="module")
def demo(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    output = tmp_path_factory.mktemp("demo") / "output.txt"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (
        output.open("w") as file,
        subprocess.Popen((*COMMAND, "demo", *FLAGS), stdout=file, env=environment) as process,
    ):
        try:
            until(lambda: "Ctrl-C" in output.read_text(), seconds=60)
            found = re.search(r"KUBECONFIG=(\S+)", output.read_text())
            assert found is not None
            yield Demo(found[1], assets)
        finally:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)


def waiting(demo: Demo, app: str) -> list[str]:
    """Return the pods of an application that have no node."""
    return [pod["metadata"]["name"] for pod in demo.pods(app) if not pod["spec"].get("nodeName")]


@pytest.mark.parametrize(
    "app", ["oversized", "misplaced", "reports", "inference", "pretrain", "gated", "training"]
)
def test_a_proposed_command_places_the_pod(demo: Demo, app: str) -> None:
    before = waiting(demo, app)
    assert before

    for command in demo.commands(before[0]):
        demo.run("sh", "-c", command)

    # A pod is replaced under its name; a deployment or a group makes room for all of its own.
    until(lambda: len(waiting(demo, app)) < len(before), seconds=60)
