"""The decisions of a recording in order, where it begins, and how to go through it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.recording.entries import CheckpointEnd, Decided, GroupDecided
from kubesched.recording.reader import Recording
from kubesched.web.recorded_feed import RecordedFeed
from tests.support.objects import node, pod
from tests.support.recorded_engine import Lab, record
from tests.support.recorded_workload import Workload


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("recording") / "r"
    return record(path, Workload(steps=150, rotations=1), seed=6, files=50)


async def small(lab: Lab) -> None:
    lab.put_node(node("n1"))
    lab.put_node(node("n2"))
    lab.create_pod(pod("fits", cpu="1"))
    lab.create_pod(pod("large", cpu="64"))
    await lab.turns(30)


def test_every_decision_has_its_position(recording: Recording) -> None:
    feed = RecordedFeed(recording)
    wanted = []
    number = -1
    for entry in recording.state()[1]:
        if number >= 0 or isinstance(entry, CheckpointEnd):
            number += 1
        if number > 0 and isinstance(entry, Decided):
            wanted.append(number)
        elif number > 0 and isinstance(entry, GroupDecided):
            wanted += [number] * len(entry.members)

    assert feed.positions == wanted
    assert feed.count(recording.entries) == len(wanted)
    assert sum(feed.timeline(20)) == len([each for each in wanted if each >= feed.start])


def test_steps_are_all_decisions_or_some_from_the_first_to_the_last(recording: Recording) -> None:
    feed = RecordedFeed(recording)
    every = sorted(set(feed.positions))

    assert feed.steps(10_000) == tuple(every)
    some = feed.steps(7)
    assert len(some) == 7
    assert (some[0], some[-1]) == (every[0], every[-1])
    assert set(some) <= set(every)


def test_it_starts_when_the_cluster_is_listed(tmp_path: Path) -> None:
    recording = record(tmp_path / "r", small, trouble=0.0)
    feed = RecordedFeed(recording)

    first = feed.positions[0]
    assert 2 <= feed.start < first
    assert feed.previous(first) is None
    assert feed.before(feed.start, 10).total == 0
    assert feed.next(feed.start) == first


def test_pods_are_called_by_their_names(tmp_path: Path) -> None:
    recording = record(tmp_path / "r", small, trouble=0.0)
    feed = RecordedFeed(recording)
    told = feed.before(recording.entries, 10).decisions
    uids = [entry.uid for entry in recording.state()[1] if isinstance(entry, Decided)]

    assert {feed.name_of(uid) for uid in uids} == {"default/fits", "default/large"}
    assert {each.name for each in told} == {"fits", "large"}
    assert feed.name_of("never-seen") == "never-seen"
