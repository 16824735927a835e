"""The history of a pod: attempts, moves and preemptions in order, with what was known then."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.history.mentions import find
from kubesched.history.report import EventKind, HistoryEvent, PodHistory, PodLife
from kubesched.history.telling import PodHistorian
from kubesched.recording.entries import Decided, GroupDecided, Moved
from kubesched.recording.reader import Recording
from kubesched.recording.redaction import NameRedactor
from tests.support.device_objects import claim, claiming, device, device_class, request, slice_of
from tests.support.group_objects import GROUPS, member, pod_group
from tests.support.objects import node, pod
from tests.support.recorded_engine import Lab, record
from tests.support.recorded_workload import Workload, configuration
from tests.support.storage_objects import claim as volume_claim
from tests.support.storage_objects import persistent_volume, storage_class, using


def history(recording: Recording, name: str, namespace: str = "default") -> PodHistory:
    return PodHistorian(recording, find(recording, namespace, name)).tell(namespace, name)


def life(recording: Recording, name: str) -> PodLife:
    (only,) = history(recording, name).lives
    return only


def kinds(told: PodLife) -> list[str]:
    return [each.kind.value for each in told.events]


def of_kind(told: PodLife, kind: EventKind) -> list[HistoryEvent]:
    return [each for each in told.events if each.kind is kind]


def attempts(told: PodLife) -> list[Any]:
    return [each.attempt for each in of_kind(told, EventKind.ATTEMPT)]


# --- one pod --------------------------------------------------------------------------------------


def test_a_pod_that_is_placed_at_once(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1", cpu="4"))
        lab.put_node(node("n2", cpu="8"))
        lab.put_node(node("small", cpu="1"))
        lab.clock.advance(2.5)
        lab.create_pod(pod("p", cpu="2", priority=7))
        await lab.turns(40)
        lab.clock.advance(60.0)
        lab.delete_pod(("default", "p"))

    told = life(record(tmp_path / "r", script, trouble=0.0), "p")

    assert kinds(told) == ["seen", "attempt", "assumed", "bound", "removed"]
    assert (told.uid, told.priority, told.attempts, told.node) == ("p", 7, 1, "")
    assert [each.time[14:] for each in told.events] == [*4 * ["13:22.500Z"], "14:22.500Z"]
    (known,) = attempts(told)
    assert (known.node, known.nodes, known.evaluated, known.feasible) == ("n2", 3, 3, 2)
    (rejected,) = known.rejected
    assert (rejected.plugin, rejected.reason) == ("NodeResourcesFit", "Insufficient cpu")
    assert (rejected.nodes, rejected.examples) == (1, ("small",))
    assert (known.scores.winner.node, known.scores.runner_up.node) == ("n2", "n1")
    assert known.scores.winner.total > known.scores.runner_up.total
    assert sum(known.scores.winner.plugins.values()) == known.scores.winner.total


def test_moves_between_queues_and_the_events_that_caused_them(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1", cpu="1"))
        lab.create_pod(pod("p", cpu="2", gates=("wait",)))
        await lab.turns(20)
        lab.update_pod(
            ("default", "p"), lambda old: replace(old, spec=replace(old.spec, scheduling_gates=()))
        )
        await lab.turns(20)
        lab.clock.advance(20.0)
        lab.put_node(node("n2", cpu="4"))
        await lab.turns(40)

    told = life(record(tmp_path / "r", script, trouble=0.0), "p")

    assert [(each.queue, each.event, each.by) for each in of_kind(told, EventKind.MOVED)] == [
        ("gated", "UnscheduledPodAdd", "SchedulingGates"),
        ("active", "TargetPodUpdatePodSchedulingGatesEliminated", ""),
        ("unschedulable", "ScheduleAttemptFailure", ""),
        ("active", "NodeAdd", ""),
    ]
    first, second = attempts(told)
    assert first.message.startswith("0/1 nodes are available: 1 Insufficient cpu. ")
    assert first.plugins == ("NodeResourcesFit",)
    assert (first.node, second.node, told.node) == ("", "n2", "n2")
    assert of_kind(told, EventKind.SEEN)[0].text == "pending, with gates wait"
    assert of_kind(told, EventKind.CHANGED)[0].text == "its spec changed"


def test_the_preemptor_and_its_victim_name_each_other(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1", cpu="4"))
        lab.create_pod(pod("low", cpu="3", priority=1))
        await lab.turns(30)
        lab.create_pod(pod("high", cpu="3", priority=9))
        await lab.settle()

    recording = record(tmp_path / "r", script, trouble=0.0)
    high, low = life(recording, "high"), life(recording, "low")

    known = attempts(high)[0]
    (victim,) = known.victims
    assert (victim.pod, victim.priority, victim.node) == ("default/low", 1, "n1")
    assert known.nominated == "n1"
    assert [each.node for each in of_kind(high, EventKind.NOMINATED)] == ["n1"]
    assert attempts(high)[-1].node == high.node == "n1"

    assert kinds(low)[-3:] == ["victim", "terminating", "removed"]
    (chosen,) = of_kind(low, EventKind.VICTIM)
    assert (chosen.by, chosen.node) == ("default/high", "n1")
    # Both saw it in the same entry.
    assert chosen.entry == of_kind(high, EventKind.ATTEMPT)[0].entry


def test_pods_of_one_name_are_told_apart(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1"))
        for uid in ("one", "two"):
            lab.create_pod(pod("p", uid=uid))
            await lab.turns(40)
            lab.delete_pod(("default", "p"))
        lab.create_pod(pod("p", uid="three", cpu="64"))
        lab.create_pod(pod("p", namespace="other", uid="four"))

    recording = record(tmp_path / "r", script, trouble=0.0)

    lives = history(recording, "p").lives
    assert [each.uid for each in lives] == ["one", "two", "three"]
    assert [kinds(each)[-1] for each in lives] == ["removed", "removed", "moved"]
    assert [each.uid for each in history(recording, "p", "other").lives] == ["four"]


def test_a_binding_that_fails(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1"))
        lab.trouble = 1.0
        lab.create_pod(pod("p"))
        await lab.turns(40)

    told = life(record(tmp_path / "r", script, trouble=0.0), "p")

    failed = kinds(told)[:5]
    assert failed[:3] == ["seen", "attempt", "assumed"]
    assert {"forgotten", "returned"} <= set(kinds(told))
    assert "bad luck" in of_kind(told, EventKind.RETURNED)[0].text
    assert told.node == ""


def test_a_pod_that_was_on_its_node_before(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1"))
        lab.create_pod(pod("old", node="n1"))
        lab.next_file()
        lab.create_pod(pod("later"))
        await lab.turns(30)

    recording = record(tmp_path / "r", script, trouble=0.0, files=1)
    told = life(recording, "old")

    assert [each.text for each in told.events] == ["on n1 when the recording begins"]
    assert told.node == "n1"


def test_an_exception_in_an_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1"))
        monkeypatch.setattr(lab.engine.cycle, "schedule", _broken)
        lab.create_pod(pod("p"))
        await lab.turns(20)

    (known, *_) = attempts(life(record(tmp_path / "r", script, trouble=0.0), "p"))

    assert (known.code, known.message) == ("Error", "ValueError: a bug")


def _broken(*_arguments: Any, **_options: Any) -> Any:
    raise ValueError("a bug")


# --- claims, groups, extenders --------------------------------------------------------------------


def test_devices_and_volumes_of_its_claims(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put(device_class())
        lab.put(storage_class("slow", provisioner="kubernetes.io/no-provisioner"))
        lab.put_node(node("n1"))
        lab.put(slice_of("s", device("g0"), node="n1"))
        lab.put(claim("gpu", request()))
        volume = persistent_volume("pv-1", storage_class="slow")
        spec = replace(volume.spec, access_modes=("ReadWriteOnce",), capacity={"storage": "1Gi"})
        lab.put_volume(replace(volume, spec=spec, status=replace(volume.status, phase="Available")))
        lab.put_claim(volume_claim("data", storage_class="slow"))
        lab.create_pod(using(claiming(pod("p"), "gpu"), "data"))
        await lab.turns(60)

    told = life(record(tmp_path / "r", script, trouble=0.0), "p")

    known = attempts(told)[0]
    assert [(each.kind, each.name, each.allocated) for each in known.claims] == [
        ("PersistentVolumeClaim", "data", ()),
        ("ResourceClaim", "gpu", ()),
    ]
    (devices,) = {each.text for each in of_kind(told, EventKind.DEVICES)}
    assert devices == "gpu.example.com/n1/g0 for claim gpu"
    assert "pv-1 for claim data" in {each.text for each in of_kind(told, EventKind.VOLUME)}


def test_a_member_of_a_gang_is_tried_with_it(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1", cpu="4"))
        lab.put(pod_group("g", gang=2))
        lab.create_pod(member("a", group="g", cpu="1"))
        await lab.turns(20)
        lab.create_pod(member("b", group="g", cpu="1"))
        await lab.turns(60)

    recording = record(tmp_path / "r", script, trouble=0.0, gates=GROUPS)
    told = life(recording, "a")

    assert told.group == "podgroup/default/g"
    moves = [(each.queue, each.event, each.by) for each in of_kind(told, EventKind.MOVED)]
    assert moves == [
        ("gated", "UnscheduledPodAdd", "GangScheduling"),
        ("active", "UnscheduledPodAdd", ""),
    ]
    (known,) = attempts(told)
    assert (known.group.group, known.group.members, known.group.placed) == (
        "podgroup/default/g",
        2,
        2,
    )
    assert known.node == "n1"


def test_a_pod_waits_for_its_group_to_be_known(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1"))
        lab.create_pod(member("a", group="g"))
        await lab.turns(10)
        lab.put(pod_group("g", gang=1))
        await lab.turns(40)

    told = life(record(tmp_path / "r", script, trouble=0.0, gates=GROUPS), "a")

    assert [each.queue for each in of_kind(told, EventKind.MOVED)] == ["incomplete", "active"]
    assert told.node == "n1"


def test_extenders_are_told_and_not_asked_again(tmp_path: Path) -> None:
    config = configuration(
        {"extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "f", "weight": 1}]}
    )

    async def script(lab: Lab) -> None:
        for number in range(12):
            lab.put_node(node(f"n{number}"))
        lab.create_pod(pod("p"))
        await lab.turns(60)

    told = life(record(tmp_path / "r", script, trouble=0.0, config=config, seed=3), "p")

    known = attempts(told)[0]
    assert known.note == "rejections and scores are not evaluated again: extenders took part"
    answer = known.extenders[0]
    assert answer.feasible == known.feasible
    assert sum(each.nodes for each in answer.rejected) == 12 - answer.feasible


def test_a_sample_of_nodes_is_not_scored_again(tmp_path: Path) -> None:
    config = configuration({"percentageOfNodesToScore": 10})

    async def script(lab: Lab) -> None:
        for number in range(150):
            lab.put_node(node(f"n{number}"))
        lab.create_pod(pod("p"))
        await lab.turns(30)

    (known,) = attempts(life(record(tmp_path / "r", script, trouble=0.0, config=config), "p"))

    assert (known.feasible, known.scores) == (100, None)
    assert "100 of 150 feasible nodes were scored" in known.note


# --- a whole workload -----------------------------------------------------------------------------


@pytest.mark.parametrize("redactor", [None, NameRedactor()], ids=["plain", "redacted"])
def test_everything_about_each_pod_is_told_and_nothing_differs(
    tmp_path: Path, redactor: NameRedactor | None
) -> None:
    """Compared with the entries, read one by one, of a busy run in several files."""
    recording = record(
        tmp_path / "r", Workload(steps=150, rotations=2), seed=8, files=50, redactor=redactor
    )
    decided: Counter[str] = Counter()
    victims: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    names: dict[str, tuple[str, str]] = {}
    for each in recording.state()[1]:
        if isinstance(each, Decided):
            decided[each.uid] += 1
            names[each.uid] = each.namespace, each.name
            victims.update(each.victims)
        elif isinstance(each, Moved):
            moved.update(each.uids)
    assert victims
    assert moved

    chosen = random.Random(4).sample(sorted(names), 25) + sorted(set(victims) & set(names))[:10]
    for uid in chosen:
        namespace, name = names[uid]
        told = {each.uid: each for each in history(recording, name, namespace).lives}[uid]
        counts = Counter(each.kind for each in told.events)
        assert counts[EventKind.ATTEMPT] == decided[uid]
        assert counts[EventKind.VICTIM] == victims[uid]
        assert counts[EventKind.MOVED] == moved[uid]
        times = [each.time for each in told.events]
        assert times == sorted(times)
        for known in attempts(told):
            assert "instead of" not in known.note
            assert "another node" not in known.note
            if known.scores is not None:
                assert known.scores.winner.node == known.node
                assert known.scores.winner.total >= known.scores.runner_up.total


def test_no_entry_of_a_group_is_recorded_for_members_that_stay(tmp_path: Path) -> None:
    """A gang that gathers enters its part of the queue again with each member."""

    async def script(lab: Lab) -> None:
        lab.put_node(node("n1", cpu="64"))
        lab.put(pod_group("g", gang=30))
        for number in range(30):
            lab.create_pod(member(f"m{number}", group="g", cpu="1"))
        await lab.turns(100)

    recording = record(tmp_path / "r", script, trouble=0.0, gates=GROUPS)
    entries = list(recording.state()[1])

    assert sum(len(each.uids) for each in entries if isinstance(each, Moved)) == 2 * 30
    assert sum(isinstance(each, GroupDecided) for each in entries) == 1


def test_a_recording_of_the_first_format_is_told_without_moves(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1", cpu="1"))
        lab.create_pod(pod("p", cpu="2"))
        await lab.turns(30)

    path = tmp_path / "r"
    record(path, script, trouble=0.0)
    head, *lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    head = head.replace(b'"kubeschedRecording":2', b'"kubeschedRecording":1')
    old = b"".join(each for each in lines if b'"is":"moved"' not in each and b"seal" not in each)
    path.write_bytes(gzip.compress(head + old)[:-12])  # without checksums, as if it were cut off

    told = history(Recording.open(path), "p")

    assert "has no moves between queues" in told.notes[-1]
    assert EventKind.MOVED not in {each.kind for each in told.lives[0].events}
    assert attempts(told.lives[0])[0].plugins == ("NodeResourcesFit",)
