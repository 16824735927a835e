"""Sweeps: the same results however many processes, and nothing left behind."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubesched.errors import KubeschedError, PluginError
from kubesched.simulate.sweeping import (
    Measure,
    Payload,
    Result,
    Task,
    carry_out,
    plugin_sources,
    summed,
    work,
)
from kubesched.simulate.variants import combined, default
from tests.support.objects import node, pod
from tests.support.worlds import snapshot_of

OWN_PLUGIN = """\
import numpy as np

from kubesched.framework.plugin import Filter
from kubesched.framework.status import unschedulable
from kubesched.framework.verdict import reject


class OddNodesOnly(Filter):
    name = "OddNodesOnly"

    def filter(self, state, pod, nodes):
        names = [nodes.table.name_at(row) for row in nodes.row_numbers()]
        return reject(np.array([n.endswith("0") for n in names]), unschedulable("node is even"))
"""


def _payload() -> Payload:
    nodes = [node(f"n{number}", zone="ab"[number % 2]) for number in range(4)]
    pods = [pod(f"p{number}", cpu="500m", labels={"app": "web"}) for number in range(6)]
    return Payload(snapshot=snapshot_of([*nodes, *pods]))


def _tasks(*settings: str, seeds: int = 2) -> list[Task]:
    variants = combined([default()], settings)
    return [
        Task(number=number, variant=variant, seed=seed)
        for number, variant in enumerate(variants)
        for seed in range(seeds)
    ]


def test_processes_find_what_one_process_finds() -> None:
    payload = _payload()
    tasks = _tasks("NodeResourcesFit.scoringStrategy.type=LeastAllocated,MostAllocated")
    done: list[None] = []

    alone = carry_out(payload, tasks, jobs=1)
    together = carry_out(payload, tasks, jobs=2, progress=lambda: done.append(None))

    assert together == alone
    assert len(done) == len(tasks)
    assert multiprocessing.active_children() == []


def test_a_task_that_fails_ends_the_sweep_with_its_error() -> None:
    tasks = _tasks("NodeResourcesFit.scoringStrategy.type=Least,Most")

    with pytest.raises(KubeschedError, match="Least"):
        carry_out(_payload(), tasks, jobs=2)

    assert multiprocessing.active_children() == []


def test_a_worker_of_another_version_says_so() -> None:
    with pytest.raises(PluginError, match=r"the sweep is of 0\.0\.0: install the same version"):
        work(replace(_payload(), version="0.0.0"), _tasks()[0])


def test_variants_are_summed_up_over_seeds() -> None:
    payload, tasks = _payload(), _tasks("NodeResourcesFit.weight=1,2", seeds=3)

    first, second = summed(carry_out(payload, tasks, jobs=1))

    assert (first.name, second.name) == ("NodeResourcesFit.weight=1", "NodeResourcesFit.weight=2")
    assert (first.seeds, len(first.runs)) == (3, 3)
    assert (first.placed.mean, first.placed.deviation, first.pending.mean) == (6.0, 0.0, 0.0)


def test_a_measure_is_mean_and_deviation() -> None:
    assert Measure.of([1.0, 2.0, 3.0]) == Measure(2.0, 1.0)
    assert Measure.of([4.0]) == Measure(4.0, 0.0)


def test_plugins_reach_the_workers_even_where_their_file_does_not(tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text(OWN_PLUGIN)
    sources = plugin_sources([f"{file}:OddNodesOnly"])
    tree = {
        **default().tree,
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "OddNodesOnly"}]}}}],
    }
    payload = replace(
        _payload(),
        snapshot=snapshot_of([node("n0"), node("n1", cpu="1"), pod("p", cpu="2")]),
        plugins=sources,
    )
    [variant] = combined([default()._replace(tree=tree)], [])
    task = Task(number=0, variant=variant, seed=0)

    there = work(payload, task)
    file.unlink()
    [elsewhere] = _anew(payload, task)

    for result in (there, elsewhere):
        assert result.run.pending == 1
        assert {each.reason for each in result.run.reasons} == {"node is even", "Insufficient cpu"}


def _anew(payload: Payload, task: Task) -> list[Result]:
    """Carry it out in processes of which none has read the plugin before."""
    return carry_out(payload, [task, task], jobs=2)[:1]
