"""A recording at any moment: the objects, the pods that wait, and why."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kubesched.errors import UsageError
from kubesched.recording.entries import AnyEntry, CheckpointEnd, Decided
from kubesched.recording.reader import Recording
from kubesched.replay.moments import Moments
from kubesched.snapshot.contents import Snapshot
from kubesched.snapshot.world import World
from tests.support.objects import node, pod
from tests.support.recorded_engine import GATES, Lab, record
from tests.support.recorded_workload import Workload, configuration


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("recording") / "r"
    return record(path, Workload(steps=150, rotations=1), seed=6, files=50)


def described(snapshot: Snapshot) -> dict[str, list[Any]]:
    return {
        kind: sorted(objects, key=lambda each: (each.metadata.namespace, each.metadata.name))
        for kind, objects in snapshot.objects.items()
    }


def test_a_moment_is_the_same_from_wherever_one_comes(recording: Recording) -> None:
    forward, back = Moments(recording), Moments(recording)
    moments = list(range(0, recording.entries + 1, recording.entries // 12))
    seen = {entry: described(forward.snapshot_at(entry)) for entry in moments}
    waiting = {entry: {each.name for each in forward.pending_at(entry)} for entry in moments}
    for entry in random.Random(1).sample(moments, len(moments)):
        assert described(back.snapshot_at(entry)) == seen[entry]
        assert {each.name for each in back.pending_at(entry)} == waiting[entry]


def test_a_placed_pod_has_its_node_from_the_decision_on(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1"))
        lab.create_pod(pod("fits", cpu="1"))
        lab.create_pod(pod("large", cpu="64", priority=7))
        await lab.turns(30)

    recording = record(tmp_path / "r", script, trouble=0.0)
    moments = Moments(recording)
    numbers = {
        entry.name: number
        for number, entry in enumerate(_numbered(recording))
        if isinstance(entry, Decided) and entry.attempt == 1
    }
    decided = numbers["fits"]
    before, after = moments.snapshot_at(decided), moments.snapshot_at(decided + 2)
    assert {each.metadata.name: each.spec.node_name for each in before.pods}["fits"] == ""
    assert {each.metadata.name: each.spec.node_name for each in after.pods}["fits"] == "n1"
    assert [each.name for each in moments.pending_at(decided)] == ["fits", "large"]

    (large,) = moments.pending_at(recording.entries)
    assert (large.namespace, large.name, large.priority) == ("default", "large", 7)
    assert "1 Insufficient cpu" in large.message
    assert large.plugins == ("NodeResourcesFit",)
    assert large.attempts >= 1
    assert large.since == recording.start


def test_a_moment_knows_the_entry_that_led_to_it(recording: Recording) -> None:
    moments, entries = Moments(recording), _numbered(recording)
    beginnings = {part.first for part in recording.parts}

    for at in (1, recording.entries, recording.entries // 2, 7):
        before = moments.entry_before(at)
        assert before is None if at in beginnings else before == entries[at - 1]
    assert moments.entry_before(0) is None


def _numbered(recording: Recording) -> list[AnyEntry]:
    entries = list(recording.state()[1])
    end = next(n for n, each in enumerate(entries) if isinstance(each, CheckpointEnd))
    return entries[end + 1 :]


def test_a_snapshot_can_be_put_to_work(recording: Recording) -> None:
    moments = Moments(recording)
    snapshot = moments.snapshot_at(recording.entries)
    world = World.of_snapshot(snapshot, moments.configuration_at(recording.entries), GATES)
    world.cluster.validate()
    assert world.cluster.pod_count == sum(bool(each.spec.node_name) for each in snapshot.pods)
    assert world.notes == []


def test_the_configuration_follows_the_recording(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1"))
        lab.engine.reconfigure(configuration({"percentageOfNodesToScore": 40}), [])

    moments = Moments(record(tmp_path / "r", script))
    assert moments.configuration_at(0).percentage_of_nodes_to_score == 0
    end = moments.recording.entries
    assert moments.configuration_at(end).percentage_of_nodes_to_score == 40
    assert moments.time_at(end) >= moments.time_at(0)


@pytest.mark.parametrize("entry", [-1, 10**9])
def test_there_is_no_such_entry(recording: Recording, entry: int) -> None:
    with pytest.raises(UsageError, match=f"there is no entry {entry}"):
        Moments(recording).snapshot_at(entry)
