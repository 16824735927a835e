"""Reserve, Permit, PreBind and friends, with plugins that are not ours, end to end."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest

from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Bind, Permit, PostBind, PreBind, PreEnqueue, Reserve
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from kubesched.framework.waiting import WaitingPods
from kubesched.queue.events import NODE_ADD
from kubesched.queue.hints import Registration, Registrations
from tests.support.embedded_scheduler import scheduler
from tests.support.waiting import eventually


class Journal:
    """What happened, in order; each test starts with an empty one."""

    entries: ClassVar[list[str]] = []


@pytest.fixture(autouse=True)
def journal() -> list[str]:
    Journal.entries.clear()
    return Journal.entries


class First(Reserve):
    name = "First"

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        Journal.entries.append(f"First reserves {pod.pod.metadata.name}")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        Journal.entries.append(f"First unreserves {pod.pod.metadata.name}")


class RefusesOnce(Reserve):
    """Has no room the first time."""

    name = "RefusesOnce"

    def __init__(self) -> None:
        self._refused = False

    def events_to_register(self) -> Registrations:
        return [Registration(NODE_ADD)]

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        Journal.entries.append("RefusesOnce reserves")
        if self._refused:
            return SUCCESS
        self._refused = True
        return unschedulable("no room")

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        Journal.entries.append("RefusesOnce unreserves")


class Gatekeeper(Permit):
    """Makes pods wait until the test lets them go; what it refuses stays refused."""

    name = "Gatekeeper"
    wait_s: ClassVar[float] = 60.0
    waiting: ClassVar[WaitingPods]

    @classmethod
    def create(cls, context: PluginContext) -> Gatekeeper:
        Gatekeeper.waiting = context.waiting
        return cls()

    def events_to_register(self) -> Registrations:
        return []

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        if pod.pod.metadata.name.startswith("waits"):
            return Status(Code.WAIT), self.wait_s
        return SUCCESS, 0.0


class Impatient(Gatekeeper):
    name = "Impatient"
    wait_s = 0.05


def test_a_refused_reservation_is_undone_in_reverse_and_told(journal: list[str]) -> None:
    async def run() -> None:
        async with scheduler(First, RefusesOnce) as here:
            here.create_pod("p")
            await eventually(lambda: here.message("p"))

            assert here.message("p") == "0/1 nodes are available: 1 no room."
            assert journal[:4] == [
                "First reserves p",
                "RefusesOnce reserves",
                "RefusesOnce unreserves",
                "First unreserves p",
            ]
            assert here.app.cluster.assumed_count == 0

            here.cluster.add_nodes(1)
            await eventually(lambda: here.node_of("p"))

    asyncio.run(run())


def test_a_pod_waits_for_permission_while_others_are_bound() -> None:
    async def run() -> None:
        async with scheduler(Gatekeeper) as here:
            uid = here.create_pod("waits")["metadata"]["uid"]
            here.create_pod("goes")
            await eventually(lambda: here.node_of("goes"))
            waiting = Gatekeeper.waiting.get(uid)

            assert here.node_of("waits") == ""
            assert here.app.cluster.is_assumed(uid)
            assert waiting is not None
            assert waiting.pending_plugins == ["Gatekeeper"]

            waiting.allow("Gatekeeper")
            await eventually(lambda: here.node_of("waits"))
            assert len(Gatekeeper.waiting) == 0

    asyncio.run(run())


def test_a_rejected_pod_gives_its_place_back() -> None:
    async def run() -> None:
        async with scheduler(Gatekeeper) as here:
            uid = here.create_pod("waits")["metadata"]["uid"]
            await eventually(lambda: Gatekeeper.waiting.get(uid))
            waiting = Gatekeeper.waiting.get(uid)
            assert waiting is not None

            waiting.reject("Gatekeeper", "not today")
            await eventually(lambda: here.message("waits"))

            assert here.message("waits") == "0/1 nodes are available: 1 not today."
            assert here.app.cluster.assumed_count == 0

    asyncio.run(run())


def test_waiting_for_too_long_is_a_rejection() -> None:
    async def run() -> None:
        async with scheduler(Impatient) as here:
            here.create_pod("waits")
            await eventually(lambda: here.message("waits"))

            assert here.message("waits") == (
                "0/1 nodes are available: 1 rejected due to timeout after waiting 50ms at plugin "
                "Impatient."
            )

    asyncio.run(run())


def test_a_pod_that_is_deleted_while_it_waits_gives_its_place_back() -> None:
    async def run() -> None:
        async with scheduler(Gatekeeper) as here:
            uid = here.create_pod("waits")["metadata"]["uid"]
            await eventually(lambda: Gatekeeper.waiting.get(uid))

            await here.app.client.delete("/api/v1/namespaces/default/pods/waits")
            await eventually(lambda: not here.app.cluster.assumed_count)
            await eventually(lambda: not len(Gatekeeper.waiting))
            await eventually(lambda: here.app.queue.in_flight_count == 0)
            assert len(here.app.queue) == 0

    asyncio.run(run())


class Companion(Permit):
    """The first pod of a pair waits for the second, which brings it along."""

    name = "Companion"

    def __init__(self, waiting: WaitingPods) -> None:
        self._waiting = waiting

    @classmethod
    def create(cls, context: PluginContext) -> Companion:
        return cls(context.waiting)

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        others = list(self._waiting)
        if not others:
            return Status(Code.WAIT), 60.0
        for other in others:
            other.allow(self.name)
        return SUCCESS, 0.0


def test_a_pod_that_waits_does_not_hold_up_the_end() -> None:
    async def run() -> float:
        loop = asyncio.get_running_loop()
        async with scheduler(Gatekeeper) as here:
            uid = here.create_pod("waits")["metadata"]["uid"]
            await eventually(lambda: Gatekeeper.waiting.get(uid))
            ending = loop.time()
            await here.end()
            assert here.app.cluster.assumed_count == 0, "its place was given back"
            assert here.message("waits") == "", "nobody was told anything"
        return loop.time() - ending

    assert asyncio.run(run()) < 5.0


def test_a_plugin_can_let_other_pods_go() -> None:
    async def run() -> None:
        async with scheduler(Companion) as here:
            here.create_pod("one")
            await eventually(lambda: here.app.engine.waiting)
            assert here.node_of("one") == ""

            here.create_pod("two")
            await eventually(lambda: here.node_of("one") and here.node_of("two"))

    asyncio.run(run())


class LeaderFirst(PreEnqueue, PostBind, Reserve):
    """Followers are parked until their leader is placed, which then activates them."""

    name = "LeaderFirst"

    def __init__(self) -> None:
        self._placed = False
        self._followers: dict[str, PodInfo] = {}

    def events_to_register(self) -> Registrations:
        return []

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if self._placed or pod.pod.metadata.name == "leader":
            return SUCCESS
        self._followers[pod.uid] = pod
        return unresolvable("no leader yet")

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        if pod.pod.metadata.name == "leader":
            self._placed = True
            state.pods_to_activate.update(self._followers)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._placed = False

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        Journal.entries.append(pod.pod.metadata.name)


def test_pods_to_activate_are_tried_at_once(journal: list[str]) -> None:
    async def run() -> None:
        async with scheduler(LeaderFirst) as here:
            here.create_pod("follower")
            await eventually(lambda: here.app.queue.gated_count == 1)

            here.create_pod("leader")
            await eventually(lambda: len(journal) == 2)

            assert sorted(journal) == ["follower", "leader"]

    asyncio.run(run())


class Prepares(PreBind):
    """Needs a moment, and fails the first time."""

    name = "Prepares"

    def __init__(self) -> None:
        self._tries = 0

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self._tries += 1
        Journal.entries.append(f"try {self._tries}")
        await asyncio.sleep(0.01)
        return SUCCESS if self._tries > 1 else error("disk on fire")


class NothingToDo(PreBind):
    name = "NothingToDo"

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SKIP

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        Journal.entries.append("must not be called")
        return SUCCESS


def test_a_failed_pre_bind_is_an_error_and_the_pod_is_tried_again(journal: list[str]) -> None:
    async def run() -> None:
        async with scheduler(First, Prepares, NothingToDo) as here:
            here.create_pod("p")
            await eventually(lambda: here.message("p"))

            assert here.message("p") == 'running PreBind plugin "Prepares": disk on fire'
            await eventually(lambda: here.node_of("p"))
            assert "must not be called" not in journal
            assert journal.count("First unreserves p") == 1

    asyncio.run(run())


class OwnBinder(Bind):
    """Leaves all pods but one to the default binder."""

    name = "OwnBinder"

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        if pod.pod.metadata.name != "refused":
            return SKIP
        return error("will not bind this")


def test_a_binder_that_skips_leaves_the_pod_to_the_next() -> None:
    own_binder_first = {
        "schedulerName": "default-scheduler",
        "plugins": {
            "bind": {
                "disabled": [{"name": "DefaultBinder"}],
                "enabled": [{"name": "OwnBinder"}, {"name": "DefaultBinder"}],
            }
        },
    }

    async def run() -> None:
        async with scheduler(OwnBinder, profiles=[own_binder_first]) as here:
            here.create_pod("other")
            here.create_pod("refused")
            await eventually(lambda: here.node_of("other") and here.message("refused"))

            assert here.message("refused") == 'running Bind plugin "OwnBinder": will not bind this'
            assert here.app.cluster.assumed_count == 0

    asyncio.run(run())


class Breaks(Reserve):
    """A plugin with a bug."""

    name = "Breaks"

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        if pod.pod.metadata.name == "unlucky":
            raise ZeroDivisionError("a bug")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        pass


def test_a_plugin_with_a_bug_costs_that_pod_its_attempt_and_nothing_else() -> None:
    async def run() -> None:
        async with scheduler(Breaks) as here:
            here.create_pod("unlucky")
            here.create_pod("other")
            await eventually(lambda: here.node_of("other"))

            assert here.node_of("unlucky") == ""
            assert here.app.cluster.assumed_count == 0

    asyncio.run(run())


class AlwaysRefuses(Permit):
    """Says no, and does not say what might help."""

    name = "AlwaysRefuses"

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        Journal.entries.append(pod.pod.metadata.name)
        return unschedulable("no"), 0.0


def test_pods_that_are_refused_do_not_wake_each_other(journal: list[str]) -> None:
    async def run() -> None:
        async with scheduler(AlwaysRefuses) as here:
            here.create_pod("one")
            here.create_pod("two")
            await eventually(lambda: here.message("one") and here.message("two"))
            await asyncio.sleep(0.3)  # time in which they could wake each other again and again

            # Their own conditions are updates of theirs, which may help whom nobody knows better.
            assert len(journal) < 10

    asyncio.run(run())


class BreaksEverywhere(PreEnqueue, Reserve, PreBind, PostBind):
    """Raises wherever it is told to."""

    name = "BreaksEverywhere"
    at: ClassVar[str] = ""
    raised: ClassVar[int] = 0

    def _maybe(self, point: str) -> None:
        if BreaksEverywhere.at == point:
            BreaksEverywhere.raised += 1
            raise ZeroDivisionError(f"a bug in {point}")

    def pre_enqueue(self, pod: PodInfo) -> Status:
        self._maybe("pre_enqueue")
        return SUCCESS

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._maybe("unreserve")

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self._maybe("pre_flight")
        return SUCCESS

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self._maybe("pre_bind")
        return error("not now") if BreaksEverywhere.at == "unreserve" else SUCCESS

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._maybe("post_bind")


@pytest.mark.parametrize("point", ["pre_enqueue", "unreserve", "pre_flight", "pre_bind"])
def test_no_pod_is_lost_wherever_a_plugin_raises(point: str) -> None:
    async def run() -> None:
        BreaksEverywhere.at, BreaksEverywhere.raised = point, 0
        async with scheduler(BreaksEverywhere) as here:
            uid = here.create_pod("p")["metadata"]["uid"]
            await eventually(
                lambda: (
                    BreaksEverywhere.raised
                    and uid in here.app.queue
                    and here.app.cluster.assumed_count == 0
                )
            )

            BreaksEverywhere.at = ""
            here.cluster.add_nodes(1)
            await eventually(lambda: here.node_of("p"))

    asyncio.run(run())


def test_a_plugin_that_raises_after_binding_changes_nothing() -> None:
    async def run() -> None:
        BreaksEverywhere.at = "post_bind"
        async with scheduler(BreaksEverywhere) as here:
            here.create_pod("p")
            await eventually(lambda: here.node_of("p"))
            await eventually(lambda: here.app.queue.in_flight_count == 0)

    asyncio.run(run())


def test_a_pod_that_somebody_else_binds_is_left_alone() -> None:
    async def run() -> None:
        async with scheduler(Gatekeeper, nodes=2) as here:
            uid = here.create_pod("waits")["metadata"]["uid"]
            await eventually(lambda: Gatekeeper.waiting.get(uid))
            body = {"target": {"kind": "Node", "name": "node-0001"}}
            path = "/api/v1/namespaces/default/pods/waits/binding"
            await here.app.client.post(path, {"metadata": {"name": "waits"}, **body})
            await eventually(lambda: here.node_of("waits"))
            waiting = Gatekeeper.waiting.get(uid)
            assert waiting is not None

            waiting.allow("Gatekeeper")
            await eventually(lambda: here.app.queue.in_flight_count == 0)
            await asyncio.sleep(0.05)  # a second binding would have reached the server by then

            assert here.node_of("waits") == "node-0001"
            assert here.app.cluster.node_of(uid) == "node-0001"
            assert uid not in here.app.queue

    asyncio.run(run())
