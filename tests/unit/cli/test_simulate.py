"""``kubesched simulate`` and ``explain`` on manifests: what they print, and what they refuse."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kubesched.cli.kubesched import main

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: big, labels: {topology.kubernetes.io/zone: a}}
status: {capacity: {cpu: "8", memory: 16Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: small, labels: {topology.kubernetes.io/zone: b}}
status: {capacity: {cpu: "4", memory: 16Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: low, namespace: shop, labels: {app: low}}
spec: {nodeName: big, priority: 1, containers: [{name: c, resources: {requests: {cpu: "3"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: high, namespace: shop, labels: {app: high}}
spec: {priority: 9, containers: [{name: c, resources: {requests: {cpu: "6"}}}]}
"""
TRACE = """\
{"time": 0, "pod": {"spec": {"containers": [{"name": "c"}]}}, "duration": "10m", "count": 3}
{"time": "1h", "lose": "small", "for": "5m"}
"""
PLUGIN = """\
import numpy as np

from kubesched.framework.plugin import Filter
from kubesched.framework.status import unschedulable
from kubesched.framework.verdict import reject


class NoBigNodes(Filter):
    name = "NoBigNodes"

    def filter(self, state, pod, nodes):
        names = [nodes.table.name_at(row) for row in nodes.row_numbers()]
        return reject(np.array([n == "big" for n in names]), unschedulable("node(s) are too big"))
"""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: NoBigNodes}]}}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (
        ("cluster.yaml", CLUSTER),
        ("trace.jsonl", TRACE),
        ("plugin.py", PLUGIN),
        ("config.yaml", CONFIG),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


class Command:
    """Runs commands on the cluster of the manifests."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capture = capture

    def __call__(self, *words: str) -> str:
        """Run one that succeeds; return what it printed."""
        code = self.run(*words)
        printed = self._capture.readouterr()
        assert code == 0, printed.err
        return printed.out

    def json(self, *words: str) -> dict[str, Any]:
        """Run one that prints JSON."""
        said: dict[str, Any] = json.loads(self(*words, "-o", "json"))
        return said

    def refused(self, *words: str) -> str:
        """Run one that fails; return what it complained of, in one line."""
        assert self.run(*words) == 1
        printed = self._capture.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("Error: ")
        assert printed.err.count("\n") == 1
        return printed.err

    def run(self, *words: str) -> int:
        """Run one; `@name` is a file of the folder."""
        words = tuple(
            f"{self._folder}/{word[1:]}" if word.startswith("@") else word for word in words
        )
        return main([*words, "--manifests", f"{self._folder}/cluster.yaml"])


@pytest.fixture
def command(files: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(files, capsys)


def test_config_shows_preemptions_spread_and_utilisation(command: Command) -> None:
    said = command.json("simulate", "config", "--to", "@config.yaml", "--plugin", "@plugin.py")

    [preemption] = said["preemptionsBefore"]
    assert (preemption["preemptor"], preemption["victims"]) == ("shop/high", ["shop/low"])
    assert "preemptionsAfter" not in said, "the big node is out of the question"
    assert {move["pod"] for move in said["moves"]} == {"shop/high", "shop/low"}
    assert said["before"]["cpu"] == 75.0
    assert "workloads" not in said["spreadBefore"], "no workload has two pods"


def test_config_as_people_read_it(command: Command) -> None:
    printed = command("simulate", "config", "--to", "@config.yaml", "--plugin", "@plugin.py")

    assert "would-be preemptions: 0 instead of 1" in " ".join(printed.split())
    assert "Preempted before" in printed


def test_run_counts_and_shows_a_trace(command: Command) -> None:
    said = command.json("simulate", "run", "@trace.jsonl")

    # The two of the manifests wait or run from the start: only `high` arrives.
    assert (said["arrived"], said["ended"], said["pending"]) == (4, 3, 0)
    assert said["displaced"] >= 1
    assert said["readings"][0]["nodes"] == 2
    printed = command("simulate", "run", "@trace.jsonl")
    assert "4 pods arrived, 3 ended" in printed
    assert "cpu requested" in printed


def test_sweep_compares_variants_over_seeds(command: Command) -> None:
    words = ("simulate", "sweep", "@trace.jsonl", "--seeds", "2", "--jobs", "1")
    said = command.json(*words, "--set", "NodeResourcesFit.weight=1,5")

    names = [each["name"] for each in said["variants"]]
    assert names == ["NodeResourcesFit.weight=1", "NodeResourcesFit.weight=5"]
    assert [each["seeds"] for each in said["variants"]] == [2, 2]
    assert said["variants"][0]["pending"]["mean"] == 0.0
    printed = command(*words, "--variant", "@config.yaml", "--plugin", "@plugin.py")
    assert "1  default" in printed
    assert "config.yaml" in printed


def test_sweep_without_a_trace_places_what_is_pending(command: Command) -> None:
    words = ("simulate", "sweep", "--jobs", "1")
    said = command.json(*words, "--variant", "@config.yaml", "--plugin", "@plugin.py")

    default, own = said["variants"]
    assert (default["pending"]["mean"], own["pending"]["mean"]) == (0.0, 1.0)
    assert own["runs"][0]["reasons"][0]["reason"] in ("node(s) are too big", "Insufficient cpu")


def test_own_plugins_have_a_say_in_headroom_and_explanations(command: Command) -> None:
    own = ("--config", "@config.yaml", "--plugin", "@plugin.py:NoBigNodes")

    said = command.json("simulate", "headroom", "shop/low", *own)
    assert said["byNode"] == {"small": 1}

    explained = command.json("explain", "pod", "shop/high", *own)
    assert "1 node(s) are too big" in explained["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("explain", "pod", "shop/high", "--plugin", "@none.py"), "none.py"),
        (("simulate", "run", "@trace.jsonl", "--config", "@config.yaml"), "NoBigNodes"),
        (("simulate", "run", "@none.jsonl"), "No such file"),
        (("simulate", "run", "@trace.jsonl", "--until", "soon"), "is no length of time"),
        (("simulate", "sweep", "--set", "fast=true"), 'unknown field "fast"'),
        (
            ("simulate", "sweep", "--set", "NodeResourcesFit.scoringStrategy.type=Most"),
            "NodeResourcesFit.scoringStrategy.type=Most: ",
        ),
        (("simulate", "sweep", "--jobs", "2", "--dask", "tcp://x:1"), "exclude each other"),
        (("simulate", "sweep", "--seeds", "0"), "too small"),
        (("simulate", "config", "--to", "@none.yaml"), "none.yaml"),
    ],
)
def test_mistakes_are_refused_in_one_line(
    command: Command, words: tuple[str, ...], message: str
) -> None:
    assert message in command.refused(*words)


def test_dask_without_its_package_says_what_to_install(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    complaint = command.refused("simulate", "sweep", "--dask", "tcp://127.0.0.1:1")

    assert "pip install 'kubesched[dask]'" in complaint
