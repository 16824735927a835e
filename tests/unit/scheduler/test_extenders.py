"""Extenders in the cycles: who is asked, in which order, and what becomes of the answers."""

from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest

from kubesched.api.core import Container, Pod, ResourceRequirements
from kubesched.config.types import Extender, ExtenderManagedResource
from kubesched.errors import ClientError, ExtenderError, NotFoundError
from kubesched.framework.status import unresolvable, unschedulable
from kubesched.scheduler.extenders import HttpExtenders, Victims
from tests.support.objects import container, pod
from tests.support.servers import Exchange, Script, ScriptedServer, answer
from tests.support.waiting import settle

from .extender_lab import Objects, connected, extender, run, say, serving

POD = pod("p1", uid="u1")
NODES = ["a", "b", "c"]


def passing(*names: str) -> bytes:
    return say({"NodeNames": names})


def scoring(**scores: int) -> bytes:
    return say([{"Host": host, "Score": score} for host, score in scores.items()])


def asked(server: ScriptedServer) -> list[str]:
    return [exchange.path for exchange in server.requests]


# --- interest ---------------------------------------------------------------------------------


def managing(*names: str) -> Extender:
    return Extender(
        url_prefix="http://127.0.0.1:1",
        filter_verb="filter",
        bind_verb="bind",
        managed_resources=tuple(ExtenderManagedResource(name=name) for name in names),
    )


def with_limit(name: str) -> Container:
    return Container(name="main", resources=ResourceRequirements(limits={name: "1"}))


@pytest.mark.parametrize(
    ("candidate", "want"),
    [
        (pod(requests={"example.com/gpu": "1"}), True),
        (pod(requests={"example.com/fpga": "0"}), True),
        (pod(containers=[container(), with_limit("example.com/gpu")]), True),
        (pod(init_containers=[container("i", requests={"example.com/gpu": "1"})]), True),
        (pod(init_containers=[with_limit("example.com/gpu")]), True),
        (pod(requests={"example.com/other": "1"}), False),
        (pod(cpu="1"), False),
        (pod(), False),
        (pod(overhead={"example.com/gpu": "1"}), False),
        (pod(pod_level={"example.com/gpu": "1"}), False),
    ],
)
def test_managed_resources_decide_which_pods_concern_an_extender(
    candidate: Pod, want: bool
) -> None:
    choosy = HttpExtenders([managing("example.com/gpu", "example.com/fpga")], Objects())
    assert (choosy.binder(candidate) is not None) is want
    assert HttpExtenders([managing()], Objects()).binder(candidate) is not None


def test_an_extender_that_is_not_concerned_is_not_asked() -> None:
    async def main() -> None:
        async with serving(Script()) as server:
            config = extender(
                server,
                filter_verb="filter",
                prioritize_verb="prioritize",
                weight=1,
                bind_verb="bind",
                preempt_verb="preempt",
                managed_resources=(ExtenderManagedResource(name="example.com/gpu"),),
            )
            async with connected(config) as extenders:
                assert (await extenders.filter(POD, NODES)).feasible == NODES
                assert await extenders.prioritize(POD, NODES) == {}
                assert not await extenders.bind(POD, "a")
                victims = {"a": Victims([POD])}
                assert await extenders.preempt(POD, victims, pods_on=lambda _: []) == victims
            assert server.requests == []

    run(main())


def test_no_extenders_are_false_and_change_nothing() -> None:
    async def main() -> None:
        async with connected() as none:
            assert not none
            assert (await none.filter(POD, NODES)).feasible == NODES
            assert await none.prioritize(POD, NODES) == {}
            assert not none.has_filters
            assert not none.has_prioritizers
        binder = Extender(url_prefix="http://127.0.0.1:1", bind_verb="bind")
        async with connected(binder) as one:
            assert one
            assert not one.has_filters
            assert not one.has_prioritizers
        both = Extender(url_prefix="http://h", filter_verb="f", prioritize_verb="p", weight=1)
        async with connected(binder, both) as two:
            assert two.has_filters
            assert two.has_prioritizers

    run(main())


# --- filter -----------------------------------------------------------------------------------


def test_names_go_out_and_come_back_in_the_given_order() -> None:
    async def main() -> None:
        script = Script().on("POST", "/scheduler/filter", passing("c", "a", "c"))
        async with serving(script) as server:
            config = extender(server, "/scheduler/", filter_verb="filter")
            objects = Objects()
            async with connected(config, objects=objects) as extenders:
                verdict = await extenders.filter(POD, NODES)
            assert verdict.feasible == ["a", "c"]
            assert verdict.rejected == {}
            (request,) = server.requests
            assert request.method == "POST"
            assert request.headers["content-type"] == "application/json"
            assert request.body == (
                b'{"Pod":{"metadata":{"name":"p1"}},"Nodes":null,"NodeNames":["a","b","c"]}'
            )
            assert objects.nodes_asked == []

    run(main())


def test_an_extender_without_a_cache_gets_and_returns_whole_nodes() -> None:
    async def main() -> None:
        nodes = {"items": [{"metadata": {"name": "b"}, "spec": {}}]}
        # A list of names is not looked at: it is for those that know nodes by name.
        reply = say({"Nodes": nodes, "NodeNames": ["a"]})
        async with serving(Script().on("POST", "/filter", reply)) as server:
            config = extender(server, filter_verb="filter", node_cache_capable=False)
            async with connected(config) as extenders:
                assert (await extenders.filter(POD, ["a", "b"])).feasible == ["b"]
            assert server.requests[0].body == (
                b'{"Pod":{"metadata":{"name":"p1"}},"Nodes":{"metadata":{},"items":['
                b'{"metadata":{"name":"a"},"spec":{}},{"metadata":{"name":"b"},"spec":{}}]},'
                b'"NodeNames":null}'
            )

    run(main())


@pytest.mark.parametrize(
    ("capable", "reply", "want"),
    [
        (True, {"Nodes": {"items": [{"metadata": {"name": "b"}}]}}, ["b"]),
        (True, {"NodeNames": ["a"], "Nodes": {"items": [{"metadata": {"name": "b"}}]}}, ["a"]),
        (True, {"NodeNames": []}, []),
        (True, {}, []),
        (False, {}, []),
        (False, {"NodeNames": ["a"]}, []),
        (False, {"Nodes": {}}, []),
    ],
)
def test_which_of_the_two_lists_counts(capable: bool, reply: object, want: list[str]) -> None:
    async def main() -> None:
        async with serving(Script().on("POST", "/filter", say(reply))) as server:
            config = extender(server, filter_verb="filter", node_cache_capable=capable)
            async with connected(config) as extenders:
                assert (await extenders.filter(POD, NODES)).feasible == want

    run(main())


def test_reasons_become_statuses_and_unresolvable_wins() -> None:
    async def main() -> None:
        reply = say(
            {
                "NodeNames": ["a"],
                "FailedNodes": {"b": "full", "c": "perhaps", "stranger": "?"},
                "FailedAndUnresolvableNodes": {"c": "never"},
            }
        )
        async with (
            serving(Script().on("POST", "/filter", reply)) as server,
            connected(extender(server, filter_verb="filter")) as extenders,
        ):
            verdict = await extenders.filter(POD, NODES)
        assert verdict.feasible == ["a"]
        assert verdict.rejected == {"b": unschedulable("full"), "c": unresolvable("never")}

    run(main())


def test_each_extender_sees_what_the_one_before_left_until_nothing_is_left() -> None:
    async def main() -> None:
        script = (
            Script()
            .on("POST", "/1/filter", say({"NodeNames": ["a", "b"], "FailedNodes": {"c": "one"}}))
            .on("POST", "/2/filter", say({"NodeNames": [], "FailedNodes": {"a": "x", "c": "two"}}))
        )
        async with serving(script) as server:
            configs = [extender(server, f"/{number}", filter_verb="filter") for number in (1, 2, 3)]
            async with connected(*configs) as extenders:
                verdict = await extenders.filter(POD, NODES)
            assert asked(server) == ["/1/filter", "/2/filter"]
            assert server.requests[1].json["NodeNames"] == ["a", "b"]
            assert verdict.feasible == []
            # The later word on a node counts.
            assert verdict.rejected == {"a": unschedulable("x"), "c": unschedulable("two")}

    run(main())


def test_no_nodes_means_no_questions() -> None:
    async def main() -> None:
        async with serving(Script()) as server:
            config = extender(server, filter_verb="filter", prioritize_verb="p", weight=1)
            async with connected(config) as extenders:
                assert (await extenders.filter(POD, [])).feasible == []
                assert await extenders.prioritize(POD, []) == {}
            assert server.requests == []

    run(main())


def test_extenders_without_the_verb_leave_nodes_alone() -> None:
    async def main() -> None:
        async with serving(Script()) as server:
            async with connected(extender(server, bind_verb="bind")) as extenders:
                assert (await extenders.filter(POD, NODES)).feasible == NODES
            assert server.requests == []

    run(main())


@pytest.mark.parametrize("capable", [True, False])
def test_a_node_that_was_not_asked_about_is_an_error(capable: bool) -> None:
    async def main() -> None:
        items = [{"metadata": {"name": name}} for name in ("a", "zzz")]
        reply = say({"NodeNames": ["a", "zzz"]} if capable else {"Nodes": {"items": items}})
        async with serving(Script().on("POST", "/filter", reply)) as server:
            config = extender(server, filter_verb="filter", node_cache_capable=capable)
            async with connected(config) as extenders:
                with pytest.raises(ExtenderError) as refused:
                    await extenders.filter(POD, NODES)
            assert str(refused.value) == (
                f'extender "{server.url}" claims a filtered node "zzz" which is not found '
                "in the input node list"
            )

    run(main())


def test_the_error_of_a_filter_fails_the_attempt_in_its_own_words() -> None:
    async def main() -> None:
        reply = say({"NodeNames": NODES, "Error": "the oracle is silent"})
        async with (
            serving(Script().on("POST", "/filter", reply)) as server,
            connected(extender(server, filter_verb="filter")) as extenders,
        ):
            with pytest.raises(ExtenderError, match=r"^the oracle is silent$"):
                await extenders.filter(POD, NODES)

    run(main())


def test_ignorable_extenders_come_last_and_their_errors_are_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        script = (
            Script()
            .on("POST", "/may/filter", say({"Error": "broken", "FailedNodes": {"a": "no"}}))
            .on("POST", "/must/filter", passing("a", "b"))
            .on("POST", "/last/filter", passing("b"))
        )
        async with serving(script) as server:
            may = extender(server, "/may", filter_verb="filter", ignorable=True)
            must = extender(server, "/must", filter_verb="filter")
            last = extender(server, "/last", filter_verb="filter", ignorable=True)
            async with connected(may, must, last) as extenders:
                verdict = await extenders.filter(POD, NODES)
            assert asked(server) == ["/must/filter", "/may/filter", "/last/filter"]
            assert verdict.feasible == ["b"]
            assert verdict.rejected == {}
            (line,) = caplog.messages
            assert line == (
                "Skipping extender as it returned error and has ignorable flag set: "
                f"extender={server.url}/may err=broken"
            )

    run(main())


def test_a_pod_that_is_gone_fails_the_attempt_before_anybody_is_asked() -> None:
    async def main() -> None:
        async with serving(Script()) as server:
            objects = Objects(error=NotFoundError('pods "p1" not found', code=404))
            config = extender(server, filter_verb="filter", prioritize_verb="p", weight=1)
            async with connected(config, objects=objects) as extenders:
                with pytest.raises(NotFoundError):
                    await extenders.filter(POD, NODES)
                assert await extenders.prioritize(POD, NODES) == {}
            assert server.requests == []

    run(main())


# --- prioritize -------------------------------------------------------------------------------


def test_scores_are_weighted_scaled_and_added_up() -> None:
    async def main() -> None:
        script = (
            Script()
            .on("POST", "/1/prioritize", scoring(a=10, b=1, stranger=10))
            .on("POST", "/2/prioritize", say([{"Host": "a", "Score": 2}] * 2))
        )
        async with serving(script) as server:
            one = extender(server, "/1", prioritize_verb="prioritize", weight=3)
            two = extender(server, "/2", prioritize_verb="prioritize", weight=5)
            async with connected(one, two) as extenders:
                totals = await extenders.prioritize(POD, NODES)
            assert totals == {"a": 10 * 3 * 10 + 2 * (2 * 5 * 10), "b": 1 * 3 * 10}
            assert server.requests[0].body == (
                b'{"Pod":{"metadata":{"name":"p1"}},"Nodes":null,"NodeNames":["a","b","c"]}'
            )

    run(main())


def test_an_interested_extender_without_the_verb_scores_all_nodes_with_zero() -> None:
    async def main() -> None:
        async with serving(Script().on("POST", "/prioritize", scoring(b=1))) as server:
            silent = extender(server, filter_verb="filter")
            async with connected(silent) as extenders:
                assert await extenders.prioritize(POD, NODES) == {"a": 0, "b": 0, "c": 0}
            loud = extender(server, prioritize_verb="prioritize", weight=1)
            async with connected(silent, loud) as extenders:
                assert await extenders.prioritize(POD, NODES) == {"a": 0, "b": 10, "c": 0}

    run(main())


def test_errors_of_prioritizing_are_passed_over_even_of_extenders_that_must_not_fail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="kubesched.scheduler.extenders")

    async def main() -> None:
        script = (
            Script()
            .on("POST", "/1/p", answer("oops", status=500))
            .on("POST", "/2/p", scoring(a=1))
            .on("POST", "/3/p", answer("not JSON"))
        )
        async with serving(script) as server:
            configs = [extender(server, f"/{n}", prioritize_verb="p", weight=1) for n in (1, 2, 3)]
            async with connected(*configs) as extenders:
                assert await extenders.prioritize(POD, NODES) == {"a": 10}
            assert len(caplog.messages) == 2
            assert caplog.messages[0].startswith(
                "Failed to run extender's priority function. No score given by this extender.: "
                f"err=failed p with extender at URL {server.url}/1/p, code 500 pod=default/p1"
            )

    run(main())


def test_all_are_asked_at_once_with_one_request_for_each_form() -> None:
    async def main() -> None:
        everybody_asked = asyncio.Barrier(3)

        async def wait_for_the_others(exchange: Exchange) -> bytes:
            await everybody_asked.wait()
            return scoring(a=1)

        async with serving(wait_for_the_others) as server:
            configs = [
                extender(server, "/1", prioritize_verb="p", weight=1),
                extender(server, "/2", prioritize_verb="p", weight=1, ignorable=True),
                extender(server, "/3", prioritize_verb="p", weight=1, node_cache_capable=False),
            ]
            objects = Objects()
            async with connected(*configs, objects=objects) as extenders:
                assert await extenders.prioritize(POD, NODES) == {"a": 30}
            assert objects.nodes_asked == [NODES]
            assert sorted(bool(each.json["Nodes"]) for each in server.requests) == [0, 0, 1]

    run(main())


def test_absurd_scores_wrap_around_as_in_go() -> None:
    async def main() -> None:
        async with serving(Script().on("POST", "/p", scoring(a=2**63 - 1, b=-1))) as server:
            config = extender(server, prioritize_verb="p", weight=2)
            async with connected(config) as extenders:
                assert await extenders.prioritize(POD, NODES) == {"a": -20, "b": -20}

    run(main())


# --- bind -------------------------------------------------------------------------------------


def test_the_first_interested_binder_binds() -> None:
    async def main() -> None:
        async with serving(Script().on("POST", "/2/bind", say({"Error": ""}))) as server:
            managed = (ExtenderManagedResource(name="example.com/gpu"),)
            others = extender(server, "/0", bind_verb="bind", managed_resources=managed)
            filters = extender(server, "/1", filter_verb="filter")
            binds = extender(server, "/2", bind_verb="bind")
            async with connected(others, filters, binds) as extenders:
                binder = extenders.binder(POD)
                assert binder is not None
                assert binder.name == f"{server.url}/2"
                assert await extenders.bind(POD, "b")
            (request,) = server.requests
            assert request.body == (
                b'{"PodName":"p1","PodNamespace":"default","PodUID":"u1","Node":"b"}'
            )

    run(main())


def test_without_a_binder_the_plugins_bind() -> None:
    async def main() -> None:
        async with serving(Script()) as server:
            async with connected(extender(server, filter_verb="filter")) as extenders:
                assert extenders.binder(POD) is None
                assert not await extenders.bind(POD, "a")
            assert server.requests == []

    run(main())


def test_a_binding_that_fails_is_an_error_unless_ignorable(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        async with serving(Script().on("POST", "/bind", say({"error": "node is full"}))) as server:
            config = extender(server, bind_verb="bind")
            async with connected(config) as extenders:
                with pytest.raises(ExtenderError, match=r"^node is full$"):
                    await extenders.bind(POD, "a")
            ignorable = msgspec.structs.replace(config, ignorable=True)
            async with connected(ignorable) as extenders:
                assert not await extenders.bind(POD, "a")
            (line,) = caplog.messages
            assert line == (
                "Skipping extender in bind as it returned error and has ignorable flag set: "
                f"extender={server.url} err=node is full"
            )

    run(main())


def test_a_binding_is_not_sent_twice_when_a_kept_connection_dies() -> None:
    async def main() -> None:
        async def die_on_the_second(exchange: Exchange) -> bytes | None:
            if exchange.number == 0:
                return say({"NodeNames": NODES})
            exchange.hang_up()
            return None

        async with serving(die_on_the_second) as server:
            config = extender(server, filter_verb="filter", bind_verb="bind")
            async with connected(config) as extenders:
                await extenders.filter(POD, NODES)
                with pytest.raises(ClientError):
                    await extenders.bind(POD, "a")
                assert asked(server) == ["/filter", "/bind"]
                await extenders.filter(POD, NODES)
                await settle()
                # A question, on the other hand, may be asked again.
                await extenders.filter(POD, NODES)
            assert asked(server)[2:] == ["/filter", "/filter", "/filter"]

    run(main())


# --- preempt ----------------------------------------------------------------------------------

V1, V2, V3 = (pod(name, uid=f"uid-{name}") for name in ("v1", "v2", "v3"))
CANDIDATES = {"b": Victims([V1, V2], 1), "a": Victims([V3])}
ON_NODES = {"a": [V3], "b": [V1, V2], "c": [V3]}


def narrowing(nodes: dict[str, list[str]]) -> bytes:
    result = {
        node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 1}
        for node, uids in nodes.items()
    }
    return say({"NodeNameToMetaVictims": result})


@pytest.mark.parametrize("capable", [True, False])
def test_victims_are_sent_by_uid_or_whole_and_come_back_as_pods(capable: bool) -> None:
    async def main() -> None:
        reply = narrowing({"b": ["uid-v2"]})
        async with serving(Script().on("POST", "/preempt", reply)) as server:
            config = extender(server, preempt_verb="preempt", node_cache_capable=capable)
            async with connected(config) as extenders:
                narrowed = await extenders.preempt(POD, CANDIDATES, pods_on=ON_NODES.get)
            assert narrowed == {"b": Victims([V2], 1)}
            (request,) = server.requests
            assert request.body == (
                b'{"Pod":{"metadata":{"name":"p1"}},"NodeNameToVictims":null,'
                b'"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"uid-v3"}],"NumPDBViolations":0},'
                b'"b":{"Pods":[{"UID":"uid-v1"},{"UID":"uid-v2"}],"NumPDBViolations":1}}}'
                if capable
                else b'{"Pod":{"metadata":{"name":"p1"}},"NodeNameToVictims":{"a":{"Pods":['
                b'{"metadata":{"name":"v3"}}],"NumPDBViolations":0},"b":{"Pods":['
                b'{"metadata":{"name":"v1"}},{"metadata":{"name":"v2"}}],"NumPDBViolations":1}},'
                b'"NodeNameToMetaVictims":null}'
            )

    run(main())


def test_each_extender_narrows_what_the_one_before_left() -> None:
    async def main() -> None:
        script = (
            Script()
            .on("POST", "/1/preempt", narrowing({"c": ["uid-v3"], "a": ["uid-v3"]}))
            .on("POST", "/2/preempt", say({}))
        )
        async with serving(script) as server:
            configs = [extender(server, f"/{n}", preempt_verb="preempt") for n in (1, 2, 3)]
            async with connected(*configs[:1]) as extenders:
                first = await extenders.preempt(POD, CANDIDATES, pods_on=ON_NODES.get)
            assert list(first) == ["a", "c"]
            async with connected(*configs) as extenders:
                assert await extenders.preempt(POD, CANDIDATES, pods_on=ON_NODES.get) == {}
            assert asked(server) == ["/1/preempt", "/1/preempt", "/2/preempt"]
            assert list(server.requests[2].json["NodeNameToMetaVictims"]) == ["a", "c"]

    run(main())


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        (
            {"a": ["uid-v1"]},
            (
                "extender: {url} claims to preempt pod (UID: &{{uid-v1}}) on node: a, "
                "but the pod is not found on that node"
            ),
        ),
        ({"zzz": ["uid-v1"]}, 'nodeinfo not found for node name "zzz"'),
        ({"b": ["uid-v1"], "a": []}, 'expected at least one victim pod on node "a"'),
    ],
)
def test_victims_that_cannot_be_are_errors(nodes: dict[str, list[str]], want: str) -> None:
    async def main() -> None:
        async with serving(Script().on("POST", "/preempt", narrowing(nodes))) as server:
            async with connected(extender(server, preempt_verb="preempt")) as extenders:
                with pytest.raises(ExtenderError) as refused:
                    await extenders.preempt(POD, CANDIDATES, pods_on=ON_NODES.get)
            assert str(refused.value) == want.format(url=server.url)

    run(main())


def test_an_ignorable_extender_loses_its_say_or_the_node_without_victims() -> None:
    async def main() -> None:
        script = (
            Script()
            .on("POST", "/1/preempt", answer("", status=503))
            .on("POST", "/2/preempt", narrowing({"a": [], "b": ["uid-v1"]}))
        )
        async with serving(script) as server:
            configs = [
                extender(server, f"/{n}", preempt_verb="preempt", ignorable=True) for n in (1, 2)
            ]
            async with connected(*configs) as extenders:
                narrowed = await extenders.preempt(POD, CANDIDATES, pods_on=ON_NODES.get)
            assert narrowed == {"b": Victims([V1], 1)}

    run(main())


# --- until nobody needs them any more ---------------------------------------------------------


def test_extenders_are_in_use_while_somebody_asks_them_and_asks_on() -> None:
    async def main() -> None:
        arrived, proceed = asyncio.Event(), asyncio.Event()

        async def slowly(_exchange: Exchange) -> bytes:
            arrived.set()
            await proceed.wait()
            return passing("a", "b")

        script = Script().on("POST", "/filter", slowly).on("POST", "/prioritize", scoring(a=1))
        async with serving(script) as server:
            config = extender(server, filter_verb="filter", prioritize_verb="prioritize", weight=1)
            async with connected(config) as extenders:
                await asyncio.wait_for(extenders.wait_until_unused(), 1)

                async def cycle() -> dict[str, int]:
                    verdict = await extenders.filter(POD, NODES)
                    return await extenders.prioritize(POD, verdict.feasible)

                cycling = asyncio.create_task(cycle())
                await arrived.wait()
                unused = asyncio.create_task(extenders.wait_until_unused())
                await settle()
                assert not unused.done()
                proceed.set()
                await unused
                assert cycling.done(), "the cycle had not asked for scores yet"
                assert await cycling == {"a": 10}

    run(main())


def test_extenders_that_fail_are_not_in_use_any_more() -> None:
    async def main() -> None:
        async with serving(Script()) as server:
            config = extender(server, filter_verb="filter", bind_verb="bind")
            async with connected(config) as extenders:
                for attempt in (extenders.filter(POD, NODES), extenders.bind(POD, "a")):
                    with pytest.raises(ExtenderError):
                        await attempt
                await asyncio.wait_for(extenders.wait_until_unused(), 1)

    run(main())
