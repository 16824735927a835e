"""Configurations: what kube-scheduler says about them, and what kubesched does.

Some answers are in tables that the unit tests take for kube-scheduler's: here it is asked whether
they are. Many more questions are put to both schedulers, and the answers compared.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.configuration_tables import rows

from .configurations import ALL
from .configurations.asking import (
    KUBECONFIG,
    Answer,
    failure,
    kube_scheduler_says,
    kubesched_says,
)

STARTED = re.compile(r'work with those plugins" Plugins=(\{.*\})$', re.MULTILINE)


class KubeScheduler:
    """Runs kube-scheduler on a configuration, up to where it would write it."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self._binary = binary
        self._folder = folder
        (folder / "kubeconfig.yaml").write_text(KUBECONFIG)
        self.written = ""
        self.log = ""

    def run(self, config: str, gates: str = "") -> None:
        (self._folder / "config.yaml").write_text(config)
        command = [str(self._binary), "--secure-port=0", "-v=2", "--config=config.yaml"]
        command += ["--write-config-to=out.yaml", f"--feature-gates={gates}"]
        done = subprocess.run(
            command, cwd=self._folder, capture_output=True, text=True, timeout=60, check=False
        )
        out = self._folder / "out.yaml"
        self.written = out.read_text() if out.exists() else ""
        self.log = done.stderr

    @property
    def error(self) -> str:
        """What made it give up, on one line."""
        return failure(self.log)

    def points(self) -> list[dict[str, str]]:
        """The plugins of each point of each profile, as it logs them."""
        return [
            {
                point[0].lower() + point[1:]: " ".join(
                    f"{ref['Name']}={ref['Weight']}" if ref["Weight"] else ref["Name"]
                    for ref in plugin_set["Enabled"] or ()
                )
                for point, plugin_set in json.loads(plugins).items()
                if point != "MultiPoint"
            }
            for plugins in STARTED.findall(self.log)
        ]


@pytest.fixture
def kube_scheduler(assets: Path, tmp_path: Path) -> KubeScheduler:
    return KubeScheduler(assets / "kube-scheduler", tmp_path)


def connected(config: str) -> str:
    """Add a kubeconfig, so that kube-scheduler goes on to build the profiles."""
    line = "clientConnection: {kubeconfig: kubeconfig.yaml}\n"
    return config if "kubeconfig" in config else config + line


@pytest.mark.parametrize("row", rows("undecodable") + rows("invalid"))
def test_refused(row: dict[str, str], kube_scheduler: KubeScheduler) -> None:
    kube_scheduler.run(row["config"], row.get("gates", ""))

    assert kube_scheduler.error == row["error"]


@pytest.mark.parametrize("row", rows("unbuildable") + rows("unfit"))
def test_unbuildable(row: dict[str, str], kube_scheduler: KubeScheduler) -> None:
    kube_scheduler.run(connected(row["config"]))

    assert kube_scheduler.error == row["error"]


@pytest.mark.parametrize("row", rows("expanded"))
def test_expanded(row: dict[str, Any], kube_scheduler: KubeScheduler) -> None:
    kube_scheduler.run(connected(row["config"]))

    assert kube_scheduler.points() == row["points"]


@pytest.mark.parametrize("row", rows("written"))
def test_written(row: dict[str, str], kube_scheduler: KubeScheduler) -> None:
    kube_scheduler.run(row["config"], row["gates"])

    assert kube_scheduler.written == row["written"]


# --- side by side -----------------------------------------------------------------------------

#: kube-scheduler takes a tenth of a second to start, so several do at once.
AT_ONCE = 2


@pytest.fixture(scope="module")
def kube_scheduler_answers(
    assets: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Answer]]:
    """Ask kube-scheduler everything that the tests of this run are about, and wait for none."""
    names = [
        str(item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == "test_same_answer"
    ]
    binary = assets / "kube-scheduler"
    with ThreadPoolExecutor(AT_ONCE) as pool:
        coming = {
            name: pool.submit(
                kube_scheduler_says, binary, tmp_path_factory.mktemp("asked"), ALL[name]
            )
            for name in names
        }
        yield lambda name: coming[name].result(timeout=120)
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", ALL)
def test_same_answer(
    name: str, kube_scheduler_answers: Callable[[str], Answer], tmp_path: Path
) -> None:
    words = ALL[name].words

    assert kubesched_says(tmp_path, ALL[name]).compared(words) == kube_scheduler_answers(
        name
    ).compared(words)
