"""Another configuration takes the place of one that is in use, and the state stays."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.cluster.pod_info import PodInfo
from kubesched.config import loading
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ConfigError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Bind, Permit
from kubesched.framework.status import Code, Status, error
from tests.support.embedded_scheduler import Harness, scheduler
from tests.support.objects import pod
from tests.support.waiting import eventually

Json = dict[str, Any]
NOWHERE = {"nodeSelector": {"no": "where"}}


def profile(name: str, **more: Any) -> Json:
    return {"schedulerName": name, **more}


def config_of(*profiles: Json, **settings: Any) -> SchedulerConfiguration:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"qps": 0},
        "profiles": list(profiles),
        **settings,
    }
    return loading.decode(json.dumps(document), "test", gates=FeatureGates.of({}))


async def refused(harness: Harness, name: str) -> None:
    await eventually(lambda: "didn't match" in harness.message(name))


def queued(harness: Harness) -> list[str]:
    return sorted(each.info.pod.metadata.name for each in harness.app.queue.pods())


def test_pods_of_a_new_profile_are_scheduled_at_once() -> None:
    async def main() -> None:
        async with scheduler(profiles=[profile("a")]) as harness:
            harness.create_pod("p", schedulerName="b")
            harness.create_pod("q", schedulerName="a")
            await eventually(lambda: harness.node_of("q"))
            assert harness.node_of("p") == ""
            harness.app.reconfigure(config_of(profile("a"), profile("b")))
            await eventually(lambda: harness.node_of("p"))

    asyncio.run(main())


def test_pods_of_a_profile_that_went_wait_for_nothing() -> None:
    async def main() -> None:
        async with scheduler(profiles=[profile("a"), profile("b")]) as harness:
            for name in ("a", "b"):
                harness.create_pod(f"of-{name}", schedulerName=name, **NOWHERE)
                await refused(harness, f"of-{name}")
            harness.app.reconfigure(config_of(profile("b")))
            assert queued(harness) == ["of-b"]
            # Neither events nor their own changes bring them back.
            harness.cluster.add_nodes(1)
            harness.create_pod("late", schedulerName="a")
            await eventually(lambda: len(harness.app.cluster.table) == 2)
            await eventually(lambda: harness.app.find_pod("default", "late"))
            assert queued(harness) == ["of-b"]

    asyncio.run(main())


def test_a_promise_to_a_pod_that_is_not_ours_any_more_is_taken_back() -> None:
    async def main() -> None:
        async with scheduler(profiles=[profile("a")]) as harness:
            app = harness.app
            harness.create_pod("p", schedulerName="a", **NOWHERE)
            await refused(harness, "p")
            (waiting,) = app.queue.pods()
            app.cluster.nominator.nominate(waiting.info, "node-0")
            app.reconfigure(config_of(profile("b")))
            assert len(app.cluster.nominator) == 0

    asyncio.run(main())


def test_a_promise_to_a_pod_that_becomes_ours_counts() -> None:
    async def main() -> None:
        async with scheduler(profiles=[profile("a")]) as harness:
            engine = harness.app.engine
            made = pod("p", nominated="node-0", gates=["x"])
            ours = replace(made, spec=replace(made.spec, scheduler_name="b"))
            engine.reconfigure(config_of(profile("b")), [ours])
            assert engine.cluster.nominator.node_of("p") == "node-0"

    asyncio.run(main())


def test_a_pod_that_cannot_be_read_does_not_stop_the_others() -> None:
    async def main() -> None:
        async with scheduler(profiles=[profile("a")]) as harness:
            engine = harness.app.engine
            made = [pod("unreadable", cpu="99999999999999999999"), pod("fine", gates=["x"])]
            ours = [replace(each, spec=replace(each.spec, scheduler_name="b")) for each in made]
            engine.reconfigure(config_of(profile("b")), ours)
            assert queued(harness) == ["fine"]

    asyncio.run(main())


def test_whoever_waits_is_tried_again() -> None:
    """What turned a pod away may not be there any more."""

    async def main() -> None:
        async with scheduler(profiles=[profile("a")]) as harness:
            harness.create_pod("p", schedulerName="a", **NOWHERE)
            await refused(harness, "p")
            anywhere = {"filter": {"disabled": [{"name": "NodeAffinity"}]}}
            harness.app.reconfigure(config_of(profile("a", plugins=anywhere)))
            await eventually(lambda: harness.node_of("p"))

    asyncio.run(main())


class Hesitates(Permit):
    """Lets pods wait, and then says no."""

    name = "Hesitates"

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        return Status(Code.WAIT), 60.0


def _with(plugin: str, name: str = "a") -> Json:
    return profile(name, plugins={"multiPoint": {"enabled": [{"name": plugin}]}})


def test_a_pod_in_flight_is_tried_again_by_the_new_rules() -> None:
    async def main() -> None:
        async with scheduler(Hesitates, profiles=[_with("Hesitates")]) as harness:
            app = harness.app
            created = harness.create_pod("p", schedulerName="a")
            uid = created["metadata"]["uid"]
            await eventually(lambda: app.engine.waiting.get(uid))
            app.reconfigure(config_of(profile("a")))
            waiting = app.engine.waiting.get(uid)
            assert waiting is not None
            waiting.reject("Hesitates", "no")
            # No event would wake it: its plugin is gone, and nothing changes.
            await eventually(lambda: harness.node_of("p"))

    asyncio.run(main())


class Fails(Bind):
    """Takes its time, and fails."""

    name = "Fails"

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        await asyncio.sleep(0.1)
        return error("no luck")


def test_a_pod_whose_profile_goes_while_it_is_in_flight_is_let_go() -> None:
    failing = {"bind": {"enabled": [{"name": "Fails"}], "disabled": [{"name": "*"}]}}

    async def main() -> None:
        async with scheduler(Fails, profiles=[profile("a", plugins=failing)]) as harness:
            app = harness.app
            harness.create_pod("p", schedulerName="a")
            await eventually(lambda: len(app.engine.bindings))
            app.reconfigure(config_of(profile("b")))
            await eventually(lambda: not len(app.engine.bindings))
            await eventually(lambda: not len(app.queue) and not app.queue.in_flight_count)
            assert app.cluster.assumed_count == 0
            # It went its way as any other that fails; only then nobody wanted it.
            assert app.queue.tally.incoming["backoff", "ScheduleAttemptFailure"] == 1
            harness.create_pod("q", schedulerName="b")
            await eventually(lambda: harness.node_of("q"))

    asyncio.run(main())


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (_with("NoSuchPlugin"), "NoSuchPlugin"),
        (_with("Broken"), 'initializing plugin "Broken": it is'),
    ],
)
def test_what_cannot_be_used_changes_nothing(broken: Json, why: str) -> None:
    class Broken(Permit):
        name = "Broken"

        @classmethod
        def create(cls, context: object) -> Broken:
            raise ConfigError("it is")

    async def main() -> None:
        async with scheduler(Broken, profiles=[profile("a")]) as harness:
            app = harness.app
            before = dict(app.engine.frameworks)
            with pytest.raises(ConfigError, match=why):
                app.reconfigure(config_of(broken, profile("b")))
            assert app.engine.frameworks == before
            harness.create_pod("p", schedulerName="a")
            await eventually(lambda: harness.node_of("p"))

    asyncio.run(main())


def test_how_long_a_failed_pod_backs_off_changes() -> None:
    async def main() -> None:
        async with scheduler(profiles=[profile("a")]) as harness:
            app = harness.app
            slower = config_of(profile("a"), podInitialBackoffSeconds=50, podMaxBackoffSeconds=100)
            app.reconfigure(slower)
            harness.create_pod("p", schedulerName="a", **NOWHERE)
            await refused(harness, "p")
            (waiting,) = app.queue.pods()
            backoff = app.queue._backoff
            assert backoff.expires_at(waiting) - waiting.queued_at > 45

    asyncio.run(main())


def test_plugins_show_before_they_are_asked() -> None:
    async def main() -> None:
        async with scheduler(profiles=[profile("a")]) as harness:
            shown = harness.metrics.plugin_evaluation.text()
            assert (
                'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="NodeName",'
                'profile="a"} 0\n'
            ) in shown

    asyncio.run(main())
