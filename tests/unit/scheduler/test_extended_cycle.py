"""Extenders take part in scheduling: a real HTTP service, an embedded API server, our scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pytest

from kubesched.api.core import Pod
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ExtenderError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PostFilter, PostFilterResult
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import unschedulable
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import EXTENDER_EVENTS
from kubesched.scheduler.cycle import Decision, SchedulingCycle
from kubesched.scheduler.extended_cycle import ExtendedCycle
from kubesched.scheduler.extenders import ExtenderVerdict, PodsOnNode, Victims
from tests.support.embedded_scheduler import scheduler
from tests.support.objects import named, node, pod, requires
from tests.support.scheduling import Lab
from tests.support.servers import Exchange, ScriptedServer, answer
from tests.support.waiting import eventually

from .extender_lab import say

Json = dict[str, Any]


def handler(**verbs: Callable[[Json], object]) -> Callable[[Exchange], Any]:
    """Answer each verb by a function of the request."""

    async def handle(exchange: Exchange) -> bytes | None:
        verb = exchange.path.strip("/")
        if verb not in verbs:
            return answer(b"no such verb", status=404)
        return say(verbs[verb](exchange.json))

    return handle


def test_an_extender_filters_and_scores_nodes() -> None:
    """Of three nodes one is refused, and of the others one is liked better."""

    def keep_two(request: Json) -> object:
        names = request["NodeNames"]
        kept = [name for name in names if name != "node-0000"]
        return {"NodeNames": kept, "FailedNodes": {"node-0000": "too hot"}}

    def like_the_last(request: Json) -> object:
        return [{"Host": "node-0002", "Score": 10}]

    async def run() -> None:
        script = handler(filter=keep_two, prioritize=like_the_last)
        async with ScriptedServer(script) as server:
            extender = {
                "urlPrefix": server.url,
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "weight": 5,
                "nodeCacheCapable": True,
            }
            async with scheduler(nodes=3, extenders=[extender]) as here:
                for number in range(3):
                    here.create_pod(f"p{number}")
                await eventually(lambda: all(here.node_of(f"p{n}") for n in range(3)))

                assert {here.node_of(f"p{n}") for n in range(3)} == {"node-0002"}

    asyncio.run(run())


def test_events_that_may_help_a_pod_that_extenders_refused_everywhere() -> None:
    def wakes(event: ClusterEvent) -> bool:
        return any(event.matches(each.event) for each in EXTENDER_EVENTS)

    happened = [ClusterEvent(each, Action.UPDATE) for each in Resource if each is not Resource.ANY]
    assert {each.resource for each in happened if not wakes(each)} == {
        Resource.VOLUME_ATTACHMENT,
        Resource.RESOURCE_SLICE,
        Resource.COMPOSITE_POD_GROUP,
        Resource.DEVICE_TAINT_RULE,
    }


def test_a_pod_that_an_extender_refuses_everywhere_waits_for_any_event() -> None:
    refuses = True

    def decide(request: Json) -> object:
        if not refuses:
            return {"NodeNames": request["NodeNames"]}
        return {
            "NodeNames": [],
            "FailedNodes": {"node-0000": "licence in use"},
            "FailedAndUnresolvableNodes": {"node-0001": "no licence here"},
        }

    async def run() -> None:
        nonlocal refuses
        async with ScriptedServer(handler(filter=decide)) as server:
            extender = {
                "urlPrefix": server.url,
                "filterVerb": "filter",
                "nodeCacheCapable": True,
            }
            async with scheduler(nodes=2, extenders=[extender]) as here:
                here.create_pod("p")
                await eventually(lambda: here.message("p"))
                assert here.message("p") == (
                    "0/2 nodes are available: 1 licence in use, 1 no licence here. "
                    "preemption: 0/2 nodes are available: "
                    "1 No preemption victims found for incoming pod, "
                    "1 Preemption is not helpful for scheduling."
                )

                refuses = False
                here.cluster.add_nodes(1)
                await eventually(lambda: here.node_of("p"))

    asyncio.run(run())


def test_an_extender_sees_whole_objects_unless_it_knows_nodes_itself() -> None:
    seen: list[Json] = []

    def remember(request: Json) -> object:
        seen.append(request)
        return {"Nodes": {"items": request["Nodes"]["items"]}}

    async def run() -> None:
        async with ScriptedServer(handler(filter=remember)) as server:
            extender = {"urlPrefix": server.url, "filterVerb": "filter"}
            async with scheduler(nodes=2, extenders=[extender]) as here:
                here.create_pod("p", hostname="not-read-by-the-scheduler")
                await eventually(lambda: here.node_of("p"))

        request = seen[0]
        nodes = request["Nodes"]["items"]
        assert request["Pod"]["spec"]["hostname"] == "not-read-by-the-scheduler"
        assert {node["status"]["nodeInfo"]["osImage"] for node in nodes} == {"kubesched"}

    asyncio.run(run())


def test_an_extender_that_fails_ends_the_attempt_unless_it_may_fail() -> None:
    async def run(*, ignorable: bool) -> str:
        async with ScriptedServer(handler()) as server:
            extender = {
                "urlPrefix": server.url,
                "filterVerb": "filter",
                "nodeCacheCapable": True,
                "ignorable": ignorable,
            }
            async with scheduler(nodes=1, extenders=[extender]) as here:
                here.create_pod("p")
                await eventually(lambda: here.message("p") or here.node_of("p"))
                return here.node_of("p") or here.message("p").replace(server.url, "URL")

    assert asyncio.run(run(ignorable=True)) == "node-0000"
    message = asyncio.run(run(ignorable=False))
    assert message == "failed filter with extender at URL URL/filter, code 404"


def test_an_extender_binds_instead_of_the_plugins() -> None:
    bound: list[Json] = []

    def bind(request: Json) -> object:
        bound.append(request)
        return {"Error": "not on my watch"}

    async def run() -> None:
        async with ScriptedServer(handler(bind=bind)) as server:
            extender = {"urlPrefix": server.url, "bindVerb": "bind"}
            async with scheduler(nodes=1, extenders=[extender]) as here:
                created = here.create_pod("p")
                await eventually(lambda: here.message("p"))

                assert here.message("p") == "not on my watch"
                assert here.app.cluster.assumed_count == 0
                assert bound[0] == {
                    "PodName": "p",
                    "PodNamespace": "default",
                    "PodUID": created["metadata"]["uid"],
                    "Node": "node-0000",
                }

    asyncio.run(run())


def test_an_extender_narrows_down_whom_to_evict() -> None:
    """Two nodes would do; the extender leaves one of them, and then none."""
    asked: list[Json] = []
    allowed = {"node-0001"}

    def preempt(request: Json) -> object:
        asked.append(request)
        offered = request["NodeNameToMetaVictims"]
        left = {node: victims for node, victims in offered.items() if node in allowed}
        return {"NodeNameToMetaVictims": left}

    async def run() -> None:
        async with ScriptedServer(handler(preempt=preempt)) as server:
            extender = {
                "urlPrefix": server.url,
                "preemptVerb": "preempt",
                "nodeCacheCapable": True,
            }
            async with scheduler(nodes=2, extenders=[extender]) as here:
                large = {"requests": {"cpu": "6"}}
                container = {"name": "c", "image": "i", "resources": large}
                for name in ("low-a", "low-b"):
                    here.create_pod(name, containers=[container])
                await eventually(lambda: here.node_of("low-a") and here.node_of("low-b"))

                here.create_pod(
                    "high", containers=[container], priorityClassName="system-node-critical"
                )
                await eventually(lambda: here.node_of("high"))
                assert here.node_of("high") == "node-0001"
                assert set(asked[0]["NodeNameToMetaVictims"]) == {"node-0000", "node-0001"}

                allowed.clear()
                here.create_pod(
                    "higher", containers=[container], priorityClassName="system-node-critical"
                )
                await eventually(lambda: here.message("higher"))
                assert here.message("higher").endswith(
                    "preemption: no candidate node for preemption"
                )

    asyncio.run(run())


class Watching(PostFilter):
    """Notes whether an attempt may be paused once extenders were asked."""

    name = "Watching"
    may_pause: set[bool]

    @classmethod
    def create(cls, context: PluginContext) -> Watching:
        return cls()

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        Watching.may_pause.add(state.may_pause)
        return PostFilterResult(unschedulable("nothing helps"))


@pytest.mark.parametrize("with_extender", [False, True])
def test_an_attempt_is_not_paused_after_extenders_were_asked(*, with_extender: bool) -> None:
    """Otherwise they would be asked again."""
    Watching.may_pause = set()

    async def run() -> None:
        async with ScriptedServer(handler()) as server:
            extenders = [{"urlPrefix": server.url, "nodeCacheCapable": True}]
            async with scheduler(Watching, extenders=extenders if with_extender else []) as here:
                here.create_pod("p", nodeSelector={"there": "none"})
                await eventually(lambda: here.message("p"))

    asyncio.run(run())
    assert Watching.may_pause == {not with_extender}


# --- single attempts, with extenders that the test plays ------------------------------------------


class Played:
    """Extenders that reject some nodes, or fail on them."""

    has_filters = has_preemptors = True
    has_prioritizers = False

    def __init__(self, *, rejects: Collection[str] = (), fails_on: Collection[str] = ()) -> None:
        self.rejects, self.fails_on = rejects, fails_on
        self.asked: list[list[str]] = []

    async def filter(self, pod: Pod, node_names: Sequence[str]) -> ExtenderVerdict:
        self.asked.append([*node_names])
        if list(node_names) == [*self.fails_on]:
            raise ExtenderError("no answer")
        left = [name for name in node_names if name not in self.rejects]
        refused = unschedulable("not today")
        return ExtenderVerdict(left, {name: refused for name in node_names if name not in left})

    async def prioritize(self, pod: Pod, node_names: Sequence[str]) -> dict[str, int]:
        return {}

    async def preempt(
        self, pod: Pod, candidates: Mapping[str, Victims], *, pods_on: PodsOnNode
    ) -> dict[str, Victims]:
        raise ExtenderError("no victims for you")


def attempt(lab: Lab, wanted: Pod, extenders: Played) -> Decision:
    cycle = ExtendedCycle(SchedulingCycle(lab.cluster, seed=0), lab.cluster, extenders)
    return asyncio.run(cycle.schedule(lab.framework, lab.pending(wanted)))


@pytest.mark.parametrize("how", ["rejects", "fails_on"])
def test_other_nodes_are_tried_if_extenders_reject_the_nominated_one(how: str) -> None:
    lab = Lab(node("n1", cpu="1"), node("n2", cpu="1"))
    extenders = Played(rejects=["n1"]) if how == "rejects" else Played(fails_on=["n1"])
    decision = attempt(lab, pod("p", cpu="1", nominated="n1"), extenders)
    assert decision.status.ok
    assert extenders.asked == [["n1"], ["n1", "n2"]]
    assert decision.node_name in ({"n2"} if how == "rejects" else {"n1", "n2"})


def test_no_other_node_is_tried_if_extenders_accept_the_nominated_one() -> None:
    lab = Lab(node("n1", cpu="1"), node("n2", cpu="1"))
    extenders = Played()
    assert attempt(lab, pod("p", cpu="1", nominated="n2"), extenders).node_name == "n2"
    assert extenders.asked == [["n2"]]


def test_nodes_that_pre_filter_left_out_keep_their_reason() -> None:
    lab = Lab(node("n1"), node("n2"), node("n3"))
    wanted = pod("p", node_affinity=requires(named("n2")))
    decision = attempt(lab, wanted, Played(rejects=["n2"]))
    assert decision.diagnosis is not None
    assert decision.diagnosis.unschedulable_plugins == {"Extender", "NodeAffinity"}
    assert decision.status.message.startswith(
        "0/3 nodes are available: 1 not today, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
    )


def test_an_extender_that_fails_ends_preemption_and_not_the_attempt() -> None:
    lab = Lab(node("n1", cpu="1"), pod("low", cpu="1", node="n1"))
    decision = attempt(lab, pod("p", cpu="1", priority=5, nominated="n1"), Played())
    assert decision.status.rejected
    assert decision.status.message == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: no victims for you"
    )
    assert decision.nominated_node is None
