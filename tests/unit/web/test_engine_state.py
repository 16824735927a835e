"""The scheduler in this process, seen by its page: from the first pod to the last question."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kubesched.app import App
from kubesched.client.access import ClusterAccess
from kubesched.clock import RealClock
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.metrics.recorder import Metrics
from kubesched.observer import SchedulerObserver
from kubesched.plugins.in_tree import IN_TREE
from kubesched.recording.journal import Journal
from kubesched.recording.reader import Recording
from kubesched.recording.writer import Writer
from kubesched.replay.moments import Moments
from kubesched.scheduler.engine import EngineOptions
from kubesched.scheduler.graded_cycle import GradedCycle
from kubesched.web.engine_state import engine_source
from kubesched.web.living_world import Rules
from kubesched.web.page import WebPage
from tests.support.waiting import eventually

from .conftest import Run
from .harness import JSON, Ask, asked

JsonObject = dict[str, Any]
GATES = FeatureGates.of({})
CONFIG = SchedulerConfiguration.default(GATES)


@dataclass
class Demo:
    """A cluster with a scheduler, and its page."""

    cluster: EmbeddedCluster
    app: App
    ask: Ask
    created: int = 0

    def create(self, name: str, *, cpu: str = "1", **spec: object) -> None:
        self.created += 1
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
        self.cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {"containers": [container], **spec},
            }
        )

    async def settled(self, *, waiting: int) -> None:
        """Wait until everything has a node, or has been told why not."""

        def done() -> bool:
            queue = self.app.queue
            parked = queue.unschedulable_count + queue.gated_count
            placed = self.app.cluster.pod_count - self.app.cluster.assumed_count
            told = not len(self.app.engine.reports)
            return parked == waiting and placed == self.created - waiting and told

        await eventually(done)


@asynccontextmanager
async def demo(*, nodes: int = 2, observer: SchedulerObserver | None = None) -> AsyncIterator[Demo]:
    metrics = Metrics(GATES)
    async with EmbeddedCluster() as cluster:
        cluster.add_nodes(nodes)
        access = ClusterAccess.plain(cluster.url)
        options = EngineOptions(make_cycle=GradedCycle)
        app = App(CONFIG, GATES, access, metrics=metrics, observer=observer, options=options)
        rules = Rules(CONFIG, GATES, IN_TREE)
        source = engine_source(
            app,
            lambda: rules,
            metrics,
            clock=RealClock(),
            title=lambda: "demo",
        )
        running = asyncio.create_task(app.run())
        await app.started.wait()
        try:
            async with asked(WebPage(source)) as ask:
                yield Demo(cluster, app, ask)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def test_what_waits_where_and_why(run_once: Run) -> None:
    async def main() -> None:
        async with demo() as shown:
            shown.create("small")
            shown.create("large", cpu="1000", priority=None)
            shown.create("gated", schedulingGates=[{"name": "example.com/quota"}])
            await shown.settled(waiting=2)
            await eventually(lambda: bool(_condition(shown.app, "large")))

            overview = (await shown.ask("/ui/api/overview")).json
            assert overview["source"] == "scheduler"
            assert overview["pods"] == {
                "placed": 1,
                "active": 0,
                "backoff": 0,
                "unschedulable": 1,
                "gated": 1,
                "unclaimed": 0,
            }

            queue = (await shown.ask("/ui/api/queue")).json
            large, gated = queue["pods"]
            assert large["name"] == "large"
            assert large["state"] == "unschedulable"
            assert large["plugins"] == ["NodeResourcesFit"]
            assert large["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
            assert large["attempts"] == 1
            assert large["since"].endswith("Z")
            assert gated["state"] == "gated"
            assert gated["message"] == "waiting for scheduling gates: [example.com/quota]"
            assert queue["reasons"] == [
                {"plugin": "NodeResourcesFit", "pods": 1},
                {"plugin": "SchedulingGates", "pods": 1},
            ]

    run_once(main())


def _condition(app: App, name: str) -> str:
    pod = app.find_pod("default", name)
    return "" if pod is None else "".join(each.message for each in pod.status.conditions)


def test_a_question_does_not_change_what_it_is_about(run: Run) -> None:
    async def main() -> None:
        async with demo() as shown:
            for number in range(3):
                shown.create(f"small-{number}")
            shown.create("large", cpu="1000")
            await shown.settled(waiting=1)
            before = shown.app.cluster.table.requested.copy()
            version = shown.app.cluster.version

            explained = (await shown.ask("/ui/api/pods/default/large/explanation")).json
            assert explained["outcome"] == "Unschedulable"
            assert explained["changes"]
            placed = (await shown.ask("/ui/api/pods/default/small-0/explanation")).json
            assert placed["currentNode"]
            assert placed["scores"]
            for body in (
                {"kind": "loss", "node": explained["nodes"][0]["node"]},
                {"kind": "headroom", "namespace": "default", "name": "small-0"},
                {"kind": "add", "count": 2, "like": explained["nodes"][0]["node"]},
            ):
                data = msgspec.json.encode(body)
                reply = await shown.ask("/ui/api/what-if", "POST", headers=JSON, body=data)
                assert reply.code == 200, reply.json

            assert (shown.app.cluster.table.requested == before).all()
            assert shown.app.cluster.version == version
            shown.app.cluster.validate()
            shown.create("another")
            await shown.settled(waiting=1)
            assert (await shown.ask("/ui/api/pods?search=another")).json["pods"][0]["node"]

    run(main())


def test_pods_that_no_profile_is_for_are_shown_first(run_once: Run) -> None:
    async def main() -> None:
        async with demo() as shown:
            shown.create("large", cpu="1000")
            await shown.settled(waiting=1)
            shown.cluster.create(_for_scheduler("forgotten", "defualt-scheduler"))
            await eventually(lambda: len(shown.app.informers.pods.objects) == 2)

            overview = (await shown.ask("/ui/api/overview")).json
            assert overview["pods"]["unclaimed"] == 1
            queue = (await shown.ask("/ui/api/queue")).json
            assert queue["total"] == 2
            assert [each["name"] for each in queue["pods"]] == ["forgotten", "large"]
            assert queue["pods"][0]["state"] == "unclaimed"
            assert queue["pods"][0]["message"].startswith(
                "no profile is named defualt-scheduler, as the pod's schedulerName says, only "
                "default-scheduler: unless another scheduler takes the pod"
            )
            told = (await shown.ask("/ui/api/pods/default/forgotten/explanation")).json
            assert told["outcome"] == "Unclaimed"
            assert told["message"] == queue["pods"][0]["message"]

    run_once(main())


def _for_scheduler(name: str, scheduler_name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": scheduler_name,
            "containers": [{"name": "main", "image": "x"}],
        },
    }


def test_the_suggested_change_places_the_pod(run_once: Run) -> None:
    """As a new user would: see why a pod waits, apply what is suggested, watch it run."""

    async def main() -> None:
        async with demo() as shown:
            shown.create("large", cpu="1000")
            await shown.settled(waiting=1)
            told = (await shown.ask("/ui/api/pods/default/large/explanation")).json
            change = next(each for each in told["changes"] if each["kind"] == "request")
            cpu = change["patch"][0]["value"]

            shown.create("smaller", cpu=cpu)
            await shown.settled(waiting=1)

            found = (await shown.ask("/ui/api/pods?search=smaller")).json["pods"]
            assert found[0]["node"] in change["examples"]

    run_once(main())


def test_priority_classes_of_a_manifest_are_looked_up(run_once: Run) -> None:
    manifest = (
        "{apiVersion: v1, kind: Pod, metadata: {name: x}, "
        "spec: {priorityClassName: high, containers: [{name: a}]}}"
    )

    async def main() -> None:
        async with demo() as shown:
            body = msgspec.json.encode({"kind": "apply", "manifest": manifest})
            refused = await shown.ask("/ui/api/what-if", "POST", headers=JSON, body=body)
            assert (refused.code, "no priority class high" in refused.error) == (422, True)
            shown.cluster.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": "high"},
                    "value": 10,
                }
            )
            reply = await shown.ask("/ui/api/what-if", "POST", headers=JSON, body=body)
            assert reply.json["fits"]

    run_once(main())


def test_pods_of_the_queue_come_with_the_part_they_are_in(run_once: Run) -> None:
    async def main() -> None:
        async with demo(nodes=1) as shown:
            shown.create("large", cpu="1000")
            await shown.settled(waiting=1)
            shown.app.queue.activate(
                [each.info.uid for each in shown.app.queue.unschedulable_pods()]
            )
            parts = [(part, each.info.pod.metadata.name) for part, each in shown.app.queue.parts()]
            assert parts == [("active", "large")]

    run_once(main())


def test_questions_are_not_part_of_a_recording(run_once: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.rec"

    async def main() -> None:
        with Journal(Writer(path, max_bytes=1 << 26, files=2), clock=RealClock()) as journal:
            async with demo(observer=journal) as shown:
                shown.create("small")
                shown.create("large", cpu="1000")
                await shown.settled(waiting=1)
                node = (await shown.ask("/ui/api/nodes")).json["names"][0]
                for body in (
                    {"kind": "loss", "node": node},
                    {"kind": "headroom", "namespace": "default", "name": "small"},
                    {"kind": "drain", "nodes": [node]},
                ):
                    data = msgspec.json.encode(body)
                    reply = await shown.ask("/ui/api/what-if", "POST", headers=JSON, body=data)
                    assert reply.code == 200, reply.json
                assert not journal.writer.failure
                shown.create("later")
                await shown.settled(waiting=1)

    run_once(main())

    recording = Recording.open(path)
    assert not recording.damage
    assert [each.name for each in recording.decisions() if each.node] == ["small", "later"]
    assert len(Moments(recording).snapshot_at(recording.entries).nodes) == 2


def test_decisions_say_how_good_they_are(run_once: Run) -> None:
    async def main() -> None:
        async with demo() as shown:
            shown.create("first")
            await shown.settled(waiting=0)
            shown.create("second")
            shown.create("large", cpu="1000")
            await shown.settled(waiting=1)
            await eventually(lambda: bool(_condition(shown.app, "large")))

            told = (await shown.ask("/ui/api/decisions")).json["decisions"]
            by_name = {each["name"]: each for each in told}
            assert by_name["large"]["grade"] is None
            first, second = by_name["first"]["grade"], by_name["second"]["grade"]
            assert (first["feasible"], first["better"], first["equal"]) == (2, 0, 1)
            assert 0 < first["total"] <= first["possible"]
            # The emptier one of two nodes.
            assert by_name["second"]["node"] != by_name["first"]["node"]
            assert (second["better"], second["equal"]) == (0, 0)
            assert second["margin"] > 0

    run_once(main())
