"""Evictions, end to end on an embedded API server, and in slow motion on a pretended one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.client.meta import ObjectReference
from kubesched.clock import RealClock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.embedded.nodes import NodeTemplate
from kubesched.errors import ApiError, ConnectionFailedError, NotFoundError, WithdrawnError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import GroupInfo
from kubesched.framework.null_writers import NullVolumeWriter
from kubesched.framework.plugin import Permit, Plugin, PreBind
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SUCCESS, Code, Status
from kubesched.framework.waiting import PreBindingPods, WaitingPod, WaitingPods
from kubesched.metrics.recorder import Metrics
from kubesched.queue.events import ClusterEvent
from kubesched.queue.hints import Registrations
from kubesched.scheduler.evictions import Evictions
from kubesched.scheduler.nominations import Nominations
from kubesched.scheduler.outside import Outside
from tests.support.embedded_scheduler import Harness, scheduler
from tests.support.group_objects import key, member, pod_group
from tests.support.objects import on_node, pod
from tests.support.scheduling import DEFAULT_GATES
from tests.support.waiting import eventually

Json = dict[str, Any]

# --- end to end -------------------------------------------------------------------------------


@asynccontextmanager
async def cluster_of_one_cpu(*plugins: type[Plugin]) -> AsyncIterator[Harness]:
    """One node with room for one pod, and two priorities."""
    async with scheduler(*plugins, nodes=0) as here:
        here.cluster.add_nodes(1, NodeTemplate(cpu="1"))
        for name, value, policy in (
            ("high", 1000, "PreemptLowerPriority"),
            ("polite", 1000, "Never"),
        ):
            here.cluster.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                    "preemptionPolicy": policy,
                }
            )
        yield here


def known(here: Harness, name: str) -> Pod | None:
    """What the scheduler knows of a pod."""
    return here.app.find_pod("default", name)


def is_going(here: Harness, name: str) -> bool:
    found = known(here, name)
    return found is not None and found.metadata.deletion_timestamp is not None


async def preempted_events(here: Harness, seconds: float = 5.0) -> list[Json]:
    """Wait for events about victims."""
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    async with asyncio.timeout(seconds):
        while True:
            items: list[Json] = (await here.app.client.get(path, dict))["items"]
            found = [each for each in items if each["reason"] == "Preempted"]
            if found:
                return found
            await asyncio.sleep(0.01)


def test_a_pod_of_high_priority_takes_the_place_of_another() -> None:
    async def run() -> None:
        async with cluster_of_one_cpu() as here:
            here.create_pod("victim")
            await eventually(lambda: here.node_of("victim"))
            created = here.create_pod("preemptor", priorityClassName="high")
            await eventually(lambda: is_going(here, "victim"))
            victim = known(here, "victim")
            assert victim is not None
            (target,) = [
                each for each in victim.status.conditions if each.type == "DisruptionTarget"
            ]
            assert (target.status, target.reason, target.message) == (
                "True",
                "PreemptionByScheduler",
                "default-scheduler: preempting to accommodate a higher priority pod",
            )
            await eventually(
                lambda: (each := known(here, "preemptor")) and each.status.nominated_node_name
            )
            preemptor = known(here, "preemptor")
            assert preemptor is not None
            assert preemptor.status.nominated_node_name == "node-0000"
            assert here.message("preemptor") == (
                "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential "
                "placement for pod on node node-0000, preempting 1 victims"
            )

            (event,) = await preempted_events(here)
            uid = created["metadata"]["uid"]
            assert event["note"] == f"Preempted by pod {uid} on node node-0000"
            assert (event["type"], event["action"]) == ("Normal", "Preempting")
            assert event["regarding"]["name"] == "victim"
            assert event["regarding"]["uid"] == victim.metadata.uid
            assert event["reportingController"] == "default-scheduler"

            await eventually(lambda: here.node_of("preemptor") == "node-0000")
            assert known(here, "victim") is None
            assert not here.app.engine.evictions.is_evicting_for(uid)

    asyncio.run(run())


def test_a_polite_pod_evicts_nobody() -> None:
    async def run() -> None:
        async with cluster_of_one_cpu() as here:
            here.create_pod("stays")
            await eventually(lambda: here.node_of("stays"))
            here.create_pod("polite", priorityClassName="polite")
            await eventually(lambda: here.message("polite"))

            assert here.message("polite").endswith(
                "Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
            )
            await asyncio.sleep(0.05)  # an eviction would have reached the server by then
            assert not is_going(here, "stays")

    asyncio.run(run())


def test_the_preemptor_is_gated_until_its_last_victim_goes() -> None:
    async def run() -> None:
        async with cluster_of_one_cpu() as here:
            here.create_pod("victim")
            await eventually(lambda: here.node_of("victim"))
            api_calls: Any = here.app.engine.evictions._api_calls
            really_delete, asked, go_on = api_calls.delete, asyncio.Event(), asyncio.Event()

            async def slow_delete(each: Pod, **options: Any) -> None:
                asked.set()
                await go_on.wait()
                await really_delete(each, **options)

            api_calls.delete = slow_delete
            uid = here.create_pod("preemptor", priorityClassName="high")["metadata"]["uid"]
            await asked.wait()
            here.app.queue.activate([uid])
            await eventually(lambda: here.app.queue.gated_count == 1)
            (waiting,) = here.app.queue.pods()
            assert here.app.why_waiting(waiting) == (
                "waiting for the preemption for this pod to be finished"
            )

            go_on.set()
            await eventually(lambda: here.node_of("preemptor"))

    asyncio.run(run())


def test_a_preemptor_whose_victim_cannot_be_evicted_is_tried_again() -> None:
    async def run() -> None:
        async with cluster_of_one_cpu() as here:
            here.create_pod("victim")
            await eventually(lambda: here.node_of("victim"))
            api_calls: Any = here.app.engine.evictions._api_calls
            really_delete = api_calls.delete
            failures: list[str] = []

            async def fails_once(each: Pod, **options: Any) -> None:
                if not failures:
                    failures.append(each.metadata.name)
                    raise ConnectionFailedError("the server is gone")
                await really_delete(each, **options)

            api_calls.delete = fails_once
            here.create_pod("preemptor", priorityClassName="high")
            await eventually(lambda: here.node_of("preemptor"))
            assert failures == ["victim"]

    asyncio.run(run())


class Gatekeeper(Permit):
    """Makes pods wait until somebody lets them go."""

    name = "Gatekeeper"
    waiting: ClassVar[WaitingPods]

    @classmethod
    def create(cls, context: PluginContext) -> Gatekeeper:
        Gatekeeper.waiting = context.waiting
        return cls()

    def events_to_register(self) -> Registrations:
        return []

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        if pod.pod.metadata.name.startswith("waits"):
            return Status(Code.WAIT), 60.0
        return SUCCESS, 0.0


def test_a_victim_that_waits_for_permission_is_turned_away_not_deleted() -> None:
    async def run() -> None:
        async with cluster_of_one_cpu(Gatekeeper) as here:
            waiting_uid = here.create_pod("waits")["metadata"]["uid"]
            await eventually(lambda: Gatekeeper.waiting.get(waiting_uid))
            uid = here.create_pod("preemptor", priorityClassName="high")["metadata"]["uid"]
            await eventually(lambda: here.node_of("preemptor"))

            assert known(here, "waits") is not None
            assert not is_going(here, "waits")
            (event,) = await preempted_events(here)
            assert event["note"] == (
                f"Preempted by pod {uid} on node node-0000 (in kube-scheduler memory)."
            )
            assert event["regarding"]["name"] == "waits"
            waits = known(here, "waits")
            assert waits is not None
            assert not any(each.type == "DisruptionTarget" for each in waits.status.conditions)

    asyncio.run(run())


class SlowVolumes(PreBind):
    """Takes for ever to prepare the volumes of some pods, until it is told to stop."""

    name = "SlowVolumes"
    at_work: ClassVar[set[str]] = set()

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        if pod.pod.metadata.name.startswith("waits"):
            self.at_work.add(pod.uid)
            try:
                await asyncio.sleep(3600)
            finally:
                self.at_work.discard(pod.uid)
        return SUCCESS


def test_a_victim_in_pre_bind_is_turned_back_not_deleted() -> None:
    async def run() -> None:
        async with cluster_of_one_cpu(SlowVolumes) as here:
            waiting_uid = here.create_pod("waits")["metadata"]["uid"]
            await eventually(lambda: waiting_uid in SlowVolumes.at_work)
            here.create_pod("preemptor", priorityClassName="high")
            await eventually(lambda: here.node_of("preemptor"))

            assert known(here, "waits") is not None
            assert not is_going(here, "waits")
            assert SlowVolumes.at_work == set()
            (event,) = await preempted_events(here)
            assert event["note"].endswith("(in kube-scheduler memory).")

    asyncio.run(run())


# --- in slow motion ---------------------------------------------------------------------------


class SlowServer:
    """An API server that answers when the test says so."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.failures: dict[str, Exception] = {}
        #: requests that wait for their turn, and those that wait for their answer
        self.waiting: dict[str, asyncio.Event] = {}
        self.held: dict[str, asyncio.Event] = {}

    async def _do(self, what: str, still_wanted: Callable[[], bool] = lambda: True) -> None:
        if what in self.waiting:
            await self.waiting[what].wait()
        if not still_wanted():
            raise WithdrawnError(what)
        self.log.append(what)
        if what in self.held:
            await self.held[what].wait()
        if what in self.failures:
            raise self.failures[what]

    async def nominate(self, each: Pod, node_name: str) -> None:
        await self._do(f"nominate {each.metadata.name} {node_name!r}")

    async def mark_as_preempted(
        self, each: Pod, *, by: str, preemptor: str, still_wanted: Callable[[], bool]
    ) -> None:
        await self._do(f"mark {each.metadata.name}", still_wanted)

    async def delete(self, each: Pod, *, still_wanted: Callable[[], bool]) -> None:
        await self._do(f"delete {each.metadata.name}", still_wanted)


class Notes:
    """Events that were recorded."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str, str]] = []

    def preempted(
        self, victim: Pod, *, by: ObjectReference, scheduler_name: str, note: str
    ) -> None:
        self.notes.append((victim.metadata.name, by.name, note))


class Bench:
    """Evictions with everything around them pretended."""

    def __init__(self) -> None:
        self.server, self.notes, self.cluster = SlowServer(), Notes(), Cluster()
        self.waiting = WaitingPods()
        self.activated: list[str] = []
        self.gated: set[str] = set()
        self.pods: dict[str, Pod] = {}
        anything: Any = self.server
        recorders: Any = self.notes
        outside = Outside(
            api_calls=anything,
            volume_writer=NullVolumeWriter(),
            recorders=recorders,
            find_pod=lambda namespace, name: self.pods.get(name),
            make_extenders=lambda _config: None,
            clock=RealClock(),
            metrics=Metrics(DEFAULT_GATES),
        )
        self.evictions = Evictions(outside, self.cluster, self.waiting, PreBindingPods())
        queue: Any = self
        self.evictions.on_ended = Nominations(self.cluster, queue).after_eviction
        self.preemptor = self.cluster.compiler.pending(pod("preemptor", priority=10))

    # As a queue:

    def activate(self, uids: Iterable[str]) -> None:
        self.activated += uids

    def try_again(self, uid: str, _event: ClusterEvent, *, at_once: bool) -> None:
        self.activated.append(uid)

    def is_gated(self, uid: str) -> bool:
        return uid in self.gated

    def victims(self, *names: str) -> list[PodInfo]:
        for name in names:
            self.pods[name] = on_node(pod(name), "n1")
        return [self.cluster.put_pod(self.pods[name]) for name in names]

    def evict(self, *names: str, by: str = "preemptor", priority: int = 10) -> None:
        preemptor = self.cluster.compiler.pending(pod(by, priority=priority))
        self.evictions.evict(preemptor, "n1", self.victims(*names))

    def gone(self, name: str) -> None:
        """The informer says that a pod is gone."""
        self.cluster.remove_pod(self.pods.pop(name).metadata.uid)

    def terminating(self, name: str) -> None:
        """The informer says that a pod is terminating."""
        meta = replace(self.pods[name].metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        self.pods[name] = replace(self.pods[name], metadata=meta)
        self.cluster.put_pod(self.pods[name])

    def is_under_way(self) -> bool:
        return self.evictions.is_evicting_for("preemptor")


def slow_motion(test: Callable[[Bench], Any]) -> None:
    async def run() -> None:
        await test(Bench())

    asyncio.run(run())


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_all_but_the_last_at_once_then_the_last() -> None:
    async def steps(bench: Bench) -> None:
        bench.server.held = {f"delete {name}": asyncio.Event() for name in "abc"}
        bench.evict("a", "b", "c")
        await turns()
        assert sorted(bench.server.log) == ["delete a", "delete b", "mark a", "mark b"]
        for name in "ab":
            del bench.pods[name]
            bench.server.held[f"delete {name}"].set()
        await turns()
        assert bench.server.log[4:] == ["mark c", "delete c"]
        assert bench.is_under_way()
        del bench.pods["c"]
        assert not bench.is_under_way(), "the last victim is gone, whatever the answer will be"
        bench.server.held["delete c"].set()
        await bench.evictions.drain(5)
        assert not bench.is_under_way()
        assert bench.activated == []
        assert sorted(bench.notes.notes) == [
            (name, "preemptor", "Preempted by pod preemptor on node n1") for name in "abc"
        ]

    slow_motion(steps)


def test_victims_of_more_important_and_then_of_earlier_preemptors_go_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubesched.scheduler.evictions.AT_ONCE", 1)

    async def steps(bench: Bench) -> None:
        bench.server.held = {"delete a": asyncio.Event()}
        bench.evict("a", "b", "c")
        await turns()
        bench.evict("d", "e", by="second")
        bench.evict("f", by="important", priority=20)
        await turns()
        bench.server.held["delete a"].set()
        await bench.evictions.drain(5)
        assert bench.server.log == [
            f"{call} {name}" for name in "afbdce" for call in ("mark", "delete")
        ], "c, the last victim, gets in line when b is gone, and is before e"

    slow_motion(steps)


def test_a_victim_is_deleted_until_that_is_observed() -> None:
    async def steps(bench: Bench) -> None:
        bench.server.held = {"delete a": asyncio.Event()}
        bench.evict("a")
        await turns()
        assert not bench.evictions.is_deleted("a"), "it may fail"
        bench.server.held["delete a"].set()
        await bench.evictions.drain(5)
        assert bench.evictions.is_deleted("a")
        assert not bench.evictions.is_deleted("b")
        bench.terminating("a")
        assert not bench.evictions.is_deleted("a")

    slow_motion(steps)


def test_a_failure_is_told_when_all_others_are_through() -> None:
    async def steps(bench: Bench) -> None:
        bench.server.failures = {"delete a": ApiError("no", code=500)}
        bench.server.held = {"delete b": asyncio.Event()}
        bench.evict("a", "b", "c")
        await turns()
        assert bench.is_under_way(), "b is still being deleted"
        assert bench.activated == []
        bench.server.held["delete b"].set()
        await bench.evictions.drain(5)
        assert bench.activated == ["preemptor"]
        assert "mark c" not in bench.server.log

    slow_motion(steps)


def test_pods_that_are_on_their_way_out_are_left_alone() -> None:
    async def steps(bench: Bench) -> None:
        gone = bench.victims("gone")[0]
        staying = on_node(pod("going"), "n1")
        meta = replace(staying.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        going = bench.cluster.compiler.placed(replace(staying, metadata=meta))
        bench.evictions.evict(bench.preemptor, "n1", [going])
        assert not bench.is_under_way()
        await bench.evictions.drain(5)
        assert bench.server.log == []
        bench.evictions.evict(bench.preemptor, "n1", [going, gone])
        await bench.evictions.drain(5)
        assert bench.server.log == ["mark gone", "delete gone"]

    slow_motion(steps)


@pytest.mark.parametrize("call", ["mark a", "delete a"])
def test_a_victim_that_is_gone_already_is_fine(call: str) -> None:
    async def steps(bench: Bench) -> None:
        bench.server.failures = {call: NotFoundError('pods "a" not found', code=404)}
        bench.evict("a")
        await bench.evictions.drain(5)
        assert bench.notes.notes == []
        assert not bench.is_under_way()
        assert bench.activated == [], "that it is gone is an event, which wakes the preemptor"

    slow_motion(steps)


@pytest.mark.parametrize("call", ["mark a", "delete a", "mark c", "delete c"])
def test_any_other_failure_ends_the_wait_and_activates_the_preemptor(call: str) -> None:
    async def steps(bench: Bench) -> None:
        bench.server.failures = {call: ApiError("no", code=500)}
        bench.evict("a", "b", "c")
        await bench.evictions.drain(5)
        assert bench.activated == ["preemptor"]
        assert not bench.is_under_way()
        assert ("mark c" in bench.server.log) == call.endswith("c"), "the last comes after all"

    slow_motion(steps)


def test_a_victim_that_two_preemptors_chose_is_deleted_once() -> None:
    """While it is not seen to be terminating, a third may choose it, too."""

    async def steps(bench: Bench) -> None:
        bench.server.held = {"delete a": asyncio.Event()}
        bench.evict("a")
        bench.evict("a", by="second")
        await turns()
        bench.server.held["delete a"].set()
        await turns()
        bench.evict("a", by="third")
        await bench.evictions.drain(5)
        assert bench.server.log == ["mark a", "delete a"]
        assert [name for name, _, _ in bench.notes.notes] == ["a"]
        assert bench.evictions.preemptors() == set()

    slow_motion(steps)


def test_a_deletion_that_fails_fails_for_everybody_who_waits_for_it() -> None:
    async def steps(bench: Bench) -> None:
        bench.server.held = {"delete a": asyncio.Event()}
        bench.server.failures = {"delete a": ApiError("no", code=500)}
        bench.evict("a")
        bench.evict("a", by="second")
        await turns()
        bench.server.held["delete a"].set()
        await bench.evictions.drain(5)
        assert sorted(bench.activated) == ["preemptor", "second"]
        bench.server.failures.clear()
        bench.evict("a")
        await bench.evictions.drain(5)
        assert bench.server.log == ["mark a", "delete a"] * 2, "and is tried again afterwards"

    slow_motion(steps)


@pytest.mark.parametrize("call", ["mark a", "delete a"])
@pytest.mark.parametrize("what_happens", ["terminating", "gone", "replaced"])
def test_a_request_that_waited_for_its_turn_looks_at_the_victim_again(
    call: str, what_happens: str
) -> None:
    """Its turn may come seconds later: what has gone meanwhile must not be deleted again."""

    async def steps(bench: Bench) -> None:
        bench.server.waiting = {call: asyncio.Event()}
        bench.evict("a")
        await turns()
        if what_happens == "terminating":
            bench.terminating("a")
        else:
            bench.gone("a")
        if what_happens == "replaced":
            bench.cluster.put_pod(another := on_node(pod("a", uid="another"), "n1"))
            bench.pods["a"] = another
        bench.server.waiting[call].set()
        await bench.evictions.drain(5)
        assert call not in bench.server.log
        assert bench.notes.notes == []
        assert not bench.is_under_way()

    slow_motion(steps)


def test_a_preemptor_whose_victims_went_before_it_could_wait_for_them_is_woken() -> None:
    """It was kept out of the queue when their departure would have woken it."""

    async def steps(bench: Bench) -> None:
        bench.server.held = {"mark a": asyncio.Event()}
        bench.evict("a")
        await turns()
        bench.gone("a")
        bench.server.held["mark a"].set()
        await bench.evictions.drain(5)
        assert bench.activated == ["preemptor"]
        assert not bench.is_under_way()

    slow_motion(steps)


def test_a_preemptor_that_an_event_may_help_meanwhile_is_tried_afterwards() -> None:
    """It was gated when the event came, and would wait for its victims to terminate."""

    async def steps(bench: Bench) -> None:
        bench.gated.add("preemptor")
        bench.evict("a")
        await bench.evictions.drain(5)
        assert bench.activated == ["preemptor"]

    slow_motion(steps)


def test_less_important_pods_lose_their_nomination_to_the_node() -> None:
    async def steps(bench: Bench) -> None:
        nominator, compiler = bench.cluster.nominator, bench.cluster.compiler
        for name, priority, node_name in (
            ("lower", 1, "n1"),
            ("same", 10, "n1"),
            ("elsewhere", 1, "n2"),
        ):
            nominated = compiler.pending(pod(name, priority=priority, nominated=node_name))
            nominator.nominate(nominated, node_name)
        bench.evict("a")
        await bench.evictions.drain(5)
        assert bench.server.log == ["nominate lower ''", "mark a", "delete a"]

    slow_motion(steps)


def test_victims_are_evicted_even_if_a_nomination_cannot_be_taken_back() -> None:
    async def steps(bench: Bench) -> None:
        lower = bench.cluster.compiler.pending(pod("lower", priority=1, nominated="n1"))
        bench.cluster.nominator.nominate(lower, "n1")
        bench.server.failures = {"nominate lower ''": ApiError("no", code=500)}
        bench.evict("a")
        await bench.evictions.drain(5)
        assert bench.server.log[1:] == ["mark a", "delete a"]
        assert bench.activated == ["preemptor"]

    slow_motion(steps)


def test_a_victim_that_waits_is_told_why_it_waits_no_longer() -> None:
    async def steps(bench: Bench) -> None:
        told: list[Status] = []
        (victim,) = bench.victims("a")
        bench.waiting.add(WaitingPod(victim, {"Gatekeeper"}, told.append))
        bench.evictions.evict(bench.preemptor, "n1", [victim])
        await bench.evictions.drain(5)
        assert [(each.code, each.message) for each in told] == [
            (Code.ERROR, "waiting on permit for pod: preempted")
        ]
        assert bench.server.log == []

    slow_motion(steps)


def test_a_preemptor_may_preempt_again_before_the_answer_about_its_last_victim() -> None:
    """Its last victim is gone, so it was let in again, and preempts somewhere else."""

    async def steps(bench: Bench) -> None:
        bench.server.held = {"delete a": asyncio.Event(), "delete b": asyncio.Event()}
        bench.evict("a")
        await turns()
        del bench.pods["a"]
        assert not bench.is_under_way()
        bench.evict("b")
        await turns()
        assert bench.is_under_way()
        bench.server.held["delete a"].set()
        await turns()
        assert bench.is_under_way(), "b is still there"
        bench.server.held["delete b"].set()
        await bench.evictions.drain(5)
        assert not bench.is_under_way()

    slow_motion(steps)


@pytest.mark.parametrize(
    ("left", "tried"), [pytest.param("a", [], id="one"), pytest.param("ab", ["m"], id="all")]
)
def test_a_group_waits_for_its_victims_to_leave(left: str, tried: list[str]) -> None:
    async def steps(bench: Bench) -> None:
        group = pod_group(gang=1, priority=10)
        members = (bench.cluster.compiler.pending(member("m", priority=10)),)
        bench.gated.add("m")
        victims = bench.victims("a", "b")
        bench.evictions.evict_for_group(GroupInfo(key(), group, members), victims)
        for name in left:
            bench.gone(name)
        await bench.evictions.drain(5)
        assert bench.activated == tried

    slow_motion(steps)
