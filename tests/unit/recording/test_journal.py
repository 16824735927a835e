"""The journal: what is told in which form, and when another file begins."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.recording.entries import (
    Assumed,
    CheckpointEnd,
    Configured,
    Decided,
    Entry,
    Gone,
    Nominated,
    Pending,
    Put,
    Raised,
    Removed,
    Returned,
)
from kubesched.recording.reader import Recording
from kubesched.replay.replaying import Replay, ReplayOptions
from kubesched.scheduler.cycle import SchedulingCycle
from tests.support.objects import node, pod
from tests.support.recorded_engine import Lab, record
from tests.support.recorded_workload import configuration


def entries(recording: Recording, *forms: type[Entry]) -> list[Any]:
    numbered = iter(recording.state()[1])
    assert any(isinstance(each, CheckpointEnd) for each in numbered)
    return [each for each in numbered if not forms or isinstance(each, forms)]


async def place_one(lab: Lab) -> None:
    lab.put_node(node("n1"))
    lab.create_pod(pod("p1", cpu="1"))
    await lab.turns(40)


def test_the_life_of_a_pod(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        await place_one(lab)
        lab.delete_pod(("default", "p1"))

    seen = entries(record(tmp_path / "r", script, trouble=0.0))
    assert [type(each) for each in seen] == [Put, Pending, Decided, Assumed, Put, Removed]
    decided, assumed, bound, removed = seen[2:]
    assert (decided.namespace, decided.name, decided.profile) == (
        "default",
        "p1",
        "default-scheduler",
    )
    assert (decided.node, decided.code, decided.attempt) == ("n1", "Success", 1)
    assert (decided.evaluated, decided.feasible) == (1, 1)
    assert assumed.node == bound.object.spec.node_name == "n1"
    assert removed.uid == "p1"


def test_a_pod_that_was_seen_is_not_written_again(tmp_path: Path) -> None:
    recording = record(tmp_path / "r", place_one, trouble=0.0)
    assert [each.pod for each in entries(recording, Decided, Assumed)] == [None, None]


def test_a_pod_that_changed_while_it_was_tried_is_written(tmp_path: Path) -> None:
    """The version in flight is the one that was decided about."""

    async def script(lab: Lab) -> None:
        lab.put_node(node("n1"))
        lab.create_pod(pod("p1", cpu="1"))
        queued = lab.engine.queue.pop()
        assert queued is not None
        lab.update_pod(
            ("default", "p1"),
            lambda old: replace(old, metadata=replace(old.metadata, labels={"new": "yes"})),
        )
        await lab.engine.scheduler._schedule_one(queued)
        await lab.turns(30)

    lab = Lab(tmp_path / "r", random.Random(0), trouble=0.0)

    async def without_loop() -> None:
        with lab.journal:
            await script(lab)
            await lab.engine.bindings.drain(1.0)

    asyncio.run(without_loop())
    recording = Recording.open(tmp_path / "r")
    (decided,) = entries(recording, Decided)
    assert decided.pod is not None
    assert decided.pod.metadata.labels is None
    said = Replay(recording, ReplayOptions()).run()
    assert (said.decisions, said.same) == (1, 1)


def test_why_a_pod_found_no_node(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1", cpu="1"))
        lab.create_pod(pod("low", cpu="1", priority=0))
        await lab.turns(40)
        lab.create_pod(pod("high", cpu="1", priority=10))
        await lab.turns(2)

    recording = record(tmp_path / "r", script, trouble=0.0)
    first = next(each for each in entries(recording, Decided) if each.name == "high")
    assert (first.node, first.code) == ("", "Unschedulable")
    assert first.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert first.plugins == ("NodeResourcesFit",)
    assert (first.nominated, first.victims) == ("n1", ("low",))
    assert entries(recording, Nominated)[0].node == "n1"


def test_bindings_that_fail(tmp_path: Path) -> None:
    recording = record(tmp_path / "r", place_one, trouble=1.0)
    (returned, *_) = entries(recording, Returned)
    assert returned.uid == "p1"
    assert "bind: bad luck" in returned.message


def test_a_pod_that_leaves_without_a_node(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.create_pod(pod("p1"))
        lab.delete_pod(("default", "p1"))

    (gone,) = entries(record(tmp_path / "r", script), Gone)
    assert gone.uid == "p1"


def test_another_configuration(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.engine.reconfigure(configuration({"percentageOfNodesToScore": 7}), [])

    (configured,) = entries(record(tmp_path / "r", script), Configured)
    assert configured.config["percentageOfNodesToScore"] == 7
    assert configured.randomness.plugins["default-scheduler"]["DefaultPreemption"]


def test_an_attempt_that_breaks_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(lab: Lab) -> None:
        def broken(*_arguments: object, **_options: object) -> None:
            raise RuntimeError("a bug")

        with monkeypatch.context() as patched:
            patched.setattr(SchedulingCycle, "schedule", broken)
            await place_one(lab)
        await lab.settle()

    recording = record(tmp_path / "r", script, trouble=0.0)
    (raised,) = entries(recording, Raised)
    assert (raised.uid, raised.error) == ("p1", "RuntimeError: a bug")
    said = Replay(recording, ReplayOptions()).run()
    # The bug was not in the recording, and is gone: that is what the replay says.
    assert (said.decisions, said.same) == (2, 1)
    assert said.differences[0].recorded.message == "RuntimeError: a bug"


def test_another_file_begins_only_between_attempts(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.journal.deciding()
        lab.next_file()
        lab.put_node(node("n1"))
        lab.journal._deciding = False
        lab.put_node(node("n2"))
        lab.put_node(node("n3"))

    recording = record(tmp_path / "r", script)
    assert [part.summary.entries for part in recording.parts] == [2, 1]
    assert [part.header.first_entry for part in recording.parts] == [0, 2]
