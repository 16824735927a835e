"""Time travel: a recording at any of its entries, as the scheduler saw it then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubesched.app import App
from kubesched.client.access import ClusterAccess
from kubesched.clock import RealClock
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.plugins.in_tree import IN_TREE
from kubesched.recording.entries import Decided
from kubesched.recording.journal import Journal
from kubesched.recording.reader import Recording
from kubesched.recording.writer import Writer
from kubesched.scheduler.engine import EngineOptions
from kubesched.web.page import WebPage
from kubesched.web.recording_source import RecordingSource
from tests.support.waiting import eventually

from .conftest import Run
from .harness import JSON, Ask, asked

GATES = FeatureGates.of({})
CONFIG = SchedulerConfiguration.default(GATES)


def pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container]},
    }


async def record(path: Path) -> None:
    """Schedule two pods, and a third one in vain."""
    async with EmbeddedCluster() as cluster:
        cluster.add_nodes(2)
        with Journal(Writer(path, max_bytes=1 << 26, files=2), clock=RealClock()) as journal:
            options = EngineOptions(seed=1)
            access = ClusterAccess.plain(cluster.url)
            app = App(CONFIG, GATES, access, observer=journal, options=options)
            running = asyncio.create_task(app.run())
            await app.started.wait()
            for name, cpu in (("first", "1"), ("second", "2"), ("large", "1000")):
                cluster.create(pod(name, cpu))
            await eventually(
                lambda: app.cluster.pod_count == 2 and app.queue.unschedulable_count == 1
            )
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "run.rec"
    asyncio.run(record(path))
    return path


@asynccontextmanager
async def shown(path: Path) -> AsyncIterator[tuple[Recording, Ask]]:
    recording = Recording.open(path)
    async with asked(WebPage(RecordingSource(recording, registry=IN_TREE))) as ask:
        yield recording, ask


def decisions(recording: Recording) -> dict[str, tuple[int, Decided]]:
    """The last decision on each pod, and the entry that it is."""
    entries = enumerate(recording._from(0, checkpoint=False))
    return {entry.name: (number, entry) for number, entry in entries if isinstance(entry, Decided)}


def test_the_end_is_what_is_shown_first(run_once: Run, recorded: Path) -> None:
    async def main() -> None:
        async with shown(recorded) as (recording, ask):
            told = (await ask("/ui/api/overview")).json
            assert told["source"] == "recording"
            assert told["title"] == "run.rec"
            assert told["pods"]["placed"] == 2
            assert told["pods"]["unschedulable"] == 1
            about = told["recording"]
            assert (about["entries"], about["at"]) == (recording.entries, recording.entries)
            assert len(about["timeline"]) <= 200
            assert sum(about["timeline"]) == len(list(recording.decisions()))
            assert about["start"] <= told["time"] <= about["end"]
            assert sum(told["rate"]["history"]) == sum(about["timeline"])

    run_once(main())


def test_every_entry_is_a_moment_of_its_own(run_once: Run, recorded: Path) -> None:
    async def main() -> None:
        async with shown(recorded) as (recording, ask):
            placed = []
            for at in range(recording.entries + 1):
                told = (await ask(f"/ui/api/overview?at={at}")).json
                placed.append(told["pods"]["placed"])
                assert told["recording"]["at"] == at
                nodes = (await ask(f"/ui/api/nodes?at={at}")).json
                assert sum(nodes["pods"]) == placed[-1]
            assert placed[0] == 0
            assert placed[-1] == 2
            assert set(placed) == {0, 1, 2}
            # Backwards it is the same.
            for at in (recording.entries // 2, 0):
                told = (await ask(f"/ui/api/overview?at={at}")).json
                assert told["pods"]["placed"] == placed[at]

    run_once(main())


def test_each_moment_says_what_led_to_it(run_once: Run, recorded: Path) -> None:
    async def main() -> None:
        async with shown(recorded) as (recording, ask):
            number, first = decisions(recording)["first"]
            told = (await ask(f"/ui/api/overview?at={number + 1}")).json["recording"]
            assert told["entry"] == f"pod default/first was given node {first.node}"
            assert (told["decision"], told["decisions"]) == (1, 3)
            pods = (await ask(f"/ui/api/overview?at={number + 1}")).json["pods"]
            assert (pods["placed"], pods["unschedulable"]) == (0, 0)  # not assumed yet
            assert told["first"] <= number
            assert told["steps"][0] == number + 1
            start = (await ask(f"/ui/api/overview?at={told['first']}")).json
            assert start["nodes"] == 2
            assert start["recording"]["decision"] == 0
            beginning = (await ask("/ui/api/overview?at=0")).json["recording"]
            assert beginning["entry"] == ""

    run_once(main())


def test_a_pod_is_explained_as_of_the_moment_before_its_decision(
    run_once: Run, recorded: Path
) -> None:
    async def main() -> None:
        async with shown(recorded) as (recording, ask):
            number, second = decisions(recording)["second"]
            path = "/ui/api/pods/default/second/explanation"
            told = (await ask(f"{path}?at={number}")).json
            assert "currentNode" not in told
            assert second.node in told["bestNodes"]
            later = (await ask(f"{path}?at={recording.entries}")).json
            assert later["currentNode"] == second.node

            queue = (await ask("/ui/api/queue")).json
            (large,) = queue["pods"]
            assert large["plugins"] == ["NodeResourcesFit"]
            assert large["attempts"] == 1
            assert large["message"].startswith("0/2 nodes are available")

    run_once(main())


def test_what_if_at_a_moment(run_once: Run, recorded: Path) -> None:
    async def main() -> None:
        async with shown(recorded) as (recording, ask):
            node = (await ask("/ui/api/pods?search=first")).json["pods"][0]["node"]
            displaced = []
            for at in (decisions(recording)["first"][0], recording.entries):
                body = msgspec.json.encode({"kind": "loss", "node": node, "at": at})
                reply = await ask("/ui/api/what-if", "POST", headers=JSON, body=body)
                displaced.append(reply.json["displaced"])
            assert displaced[0] == 0
            assert displaced[1] >= 1

    run_once(main())


def test_an_entry_that_is_not_there_is_said_so(run_once: Run, recorded: Path) -> None:
    async def main() -> None:
        async with shown(recorded) as (recording, ask):
            reply = await ask(f"/ui/api/nodes?at={recording.entries + 1}")
            assert reply.code == 400
            assert f"the recording ends with {recording.entries}" in reply.error
            assert (await ask("/ui/api/stream")).code == 404

    run_once(main())


def test_many_who_ask_at_once_wait_for_the_same_work(
    run_once: Run, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    original = RecordingSource._make

    def counted(self: RecordingSource, entry: int) -> Any:
        made.append(entry)
        return original(self, entry)

    monkeypatch.setattr(RecordingSource, "_make", counted)

    async def main() -> None:
        async with shown(recorded) as (_, ask):
            paths = ("overview", "nodes", "queue", "pods")
            replies = await asyncio.gather(*(ask(f"/ui/api/{each}?at=3") for each in paths))
            assert [each.code for each in replies] == [200] * 4
            assert made == [3]
            # A slider asks for more than anybody wants to wait for.
            replies = await asyncio.gather(
                *(ask(f"/ui/api/overview?at={at}") for at in range(4, 20))
            )
            codes = {each.code for each in replies}
            assert 200 in codes
            assert codes <= {200, 400, 429}

    run_once(main())


def test_decisions_up_to_a_moment_newest_first(run_once: Run, recorded: Path) -> None:
    async def main() -> None:
        async with shown(recorded) as (recording, ask):
            numbers = sorted(number + 1 for number, _ in decisions(recording).values())
            told = (await ask("/ui/api/decisions")).json
            assert told["total"] == len(told["decisions"])
            assert [each["number"] for each in told["decisions"]] == numbers[::-1]
            by_name = {each["name"]: each for each in told["decisions"]}
            assert by_name["first"]["node"]
            assert by_name["first"]["feasible"] == 2
            assert by_name["large"]["message"].startswith("0/2 nodes are available")

            before = (await ask(f"/ui/api/decisions?at={numbers[0] - 1}")).json
            assert before["decisions"] == []
            one = (await ask(f"/ui/api/decisions?at={numbers[0]}&limit=1")).json
            assert [each["number"] for each in one["decisions"]] == numbers[:1]

            here = (await ask(f"/ui/api/overview?at={numbers[1]}")).json["recording"]
            assert here["previousDecision"] == numbers[0]
            assert here["nextDecision"] == numbers[2]
            end = (await ask("/ui/api/overview")).json["recording"]
            assert end["nextDecision"] is None

    run_once(main())


def test_decisions_are_graded_on_the_state_of_their_moment(run_once: Run, recorded: Path) -> None:
    async def main() -> None:
        async with shown(recorded) as (_, ask):
            plain = (await ask("/ui/api/decisions")).json
            assert all(each["grade"] is None for each in plain["decisions"])

            told = (await ask("/ui/api/decisions?graded=true")).json
            grades = {each["name"]: each["grade"] for each in told["decisions"]}
            assert grades["large"] is None
            assert (grades["first"]["feasible"], grades["first"]["equal"]) == (2, 1)
            assert (grades["second"]["equal"], grades["second"]["better"]) == (0, 0)
            assert grades["second"]["margin"] > 0

            # Backwards: the first one was graded on an empty cluster, and still is.
            number = min(each["number"] for each in told["decisions"])
            again = (await ask(f"/ui/api/decisions?graded=true&at={number}")).json
            assert [each["grade"] for each in again["decisions"]] == [grades["first"]]
            assert (await ask("/ui/api/decisions?graded=perhaps")).code == 400

    run_once(main())
