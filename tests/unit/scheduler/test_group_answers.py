"""Groups where extenders have a say: a real HTTP service, an embedded API server, our scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubesched.cluster.cluster import Cluster
from kubesched.scheduler.group_answers import _at_once
from tests.support.embedded_scheduler import Harness, scheduler
from tests.support.group_objects import member
from tests.support.objects import node
from tests.support.servers import Exchange, ScriptedServer, answer
from tests.support.waiting import eventually

from .extender_lab import say

Json = dict[str, Any]
Verb = Callable[[Json], object]


def run(test: Callable[[Harness], Awaitable[None]], *, nodes: int = 2, **verbs: Verb) -> list[str]:
    """Schedule with an extender; return what it was asked, a verb and a pod each."""
    asked: list[str] = []

    async def handle(exchange: Exchange) -> bytes | None:
        verb = exchange.path.strip("/")
        if verb not in verbs:
            return answer(b"no such verb", status=404)
        asked.append(f"{verb} {exchange.json['Pod']['metadata']['name']}")
        return say(verbs[verb](exchange.json))

    async def main() -> None:
        async with ScriptedServer(handle) as server:
            extender = {
                "urlPrefix": server.url,
                "nodeCacheCapable": True,
                "weight": 1,
                **{f"{verb}Verb": verb for verb in verbs},
            }
            gates = {"GenericWorkload": True}
            async with scheduler(nodes=nodes, extenders=[extender], gates=gates) as harness:
                await test(harness)

    asyncio.run(main())
    return asked


def create_gang(harness: Harness, *names: str) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": len(names)}}},
    }
    harness.cluster.create(group)
    for name in names:
        harness.create_pod(name, schedulingGroup={"podGroupName": "g"})


def all_nodes(request: Json) -> object:
    return {"NodeNames": request["NodeNames"]}


def like_the_last(request: Json) -> object:
    return [{"Host": max(request["NodeNames"]), "Score": 10}]


def test_an_extender_filters_and_scores_nodes_for_each_member_once() -> None:
    async def test(harness: Harness) -> None:
        create_gang(harness, "a", "b", "c")
        await eventually(lambda: all(harness.node_of(name) for name in "abc"))
        assert {harness.node_of(name) for name in "abc"} == {"node-0002"}

    asked = run(test, nodes=3, filter=all_nodes, prioritize=like_the_last)
    assert asked == [f"{verb} {name}" for name in "abc" for verb in ("filter", "prioritize")]


def test_a_gang_of_which_an_extender_refuses_one_waits_and_is_tried_again() -> None:
    refuses = True

    def refuse_b(request: Json) -> object:
        if refuses and request["Pod"]["metadata"]["name"] == "b":
            return {"NodeNames": [], "FailedNodes": dict.fromkeys(request["NodeNames"], "not b")}
        return all_nodes(request)

    async def test(harness: Harness) -> None:
        nonlocal refuses
        create_gang(harness, "a", "b")
        await eventually(lambda: harness.message("b").endswith("2 not b."))
        await eventually(lambda: harness.message("a").startswith("pod group is unschedulable, min"))
        assert not harness.node_of("a")
        harness.app.cluster.validate()
        refuses = False
        await eventually(lambda: harness.node_of("a") and harness.node_of("b"))

    run(test, filter=refuse_b)


def test_an_extender_that_fails_fails_the_attempt() -> None:
    broken = True

    def break_down(request: Json) -> object:
        return {"Error": "out of order"} if broken else all_nodes(request)

    async def test(harness: Harness) -> None:
        nonlocal broken
        create_gang(harness, "a", "b")
        await eventually(lambda: "out of order" in harness.message("a"))
        broken = False
        await eventually(lambda: harness.node_of("a") and harness.node_of("b"))

    run(test, filter=break_down)


def test_an_attempt_must_not_wait() -> None:
    with pytest.raises(RuntimeError, match="must not wait"):
        _at_once(asyncio.sleep(0))


def test_what_an_exception_leaves_half_done_is_undone() -> None:
    cluster = Cluster()
    cluster.put_node(node("n1"))
    info = cluster.compiler.pending(member("p"))
    tx = cluster.transaction()
    part = tx.part()
    part.place(info, "n1")
    part.part().withdraw(info)

    tx.undo()

    assert cluster.node_of("p") is None
    cluster.validate()
