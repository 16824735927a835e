"""What the page can be asked, and what becomes of those who ask for something else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.web.page import BODY_LIMIT_BYTES, WebPage
from kubesched.web.world_state import WorldState
from tests.support.objects import node, pod
from tests.support.waiting import eventually
from tests.support.worlds import world_of

from .conftest import Run
from .forks import forks
from .harness import JSON, Reply, asked, living, page_of, request

OBJECTS = (
    node("n1", cpu="4", zone="a", labels={"disk": "ssd"}, taints=["t=v:NoSchedule", "u:NoExecute"]),
    node("n2", cpu="4", zone="b"),
    pod("placed", namespace="shop", node="n1", cpu="1500m", priority=3),
    pod("waiting", namespace="shop", cpu="5"),
    pod("gated", namespace="shop", gates=["g"]),
)


def ask(target: str, method: str = "GET", *, body: object = None, **headers: str) -> Reply:
    """Ask a page of a few objects one thing."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}

    async def main() -> Reply:
        async with asked(page_of(*OBJECTS)) as page:
            if body is None:
                return await page(target, method, headers=sent)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            return await page(target, method, headers={**JSON, **sent}, body=data)

    return asyncio.run(main())


# --- what can be asked ------------------------------------------------------------------------


def test_the_overview() -> None:
    told = ask("/ui/api/overview").json

    assert told["source"] == "snapshot"
    assert told["title"] == "test"
    assert told["schedulerNames"] == ["default-scheduler"]
    assert told["time"] == "2027-01-15T08:00:00.000Z"
    assert told["nodes"] == 2
    assert told["pods"] == {
        "placed": 1,
        "active": 1,
        "backoff": 0,
        "unschedulable": 0,
        "gated": 1,
        "unclaimed": 0,
    }
    assert told["latency"] == {"p50Ms": None, "p99Ms": None}
    assert told["rate"] == {"perSecond": 0.0, "history": []}
    assert told["resources"] == ["cpu", "memory", "pods"]
    assert told["recording"] is None
    assert told["whatIf"] is True


def test_the_nodes() -> None:
    told = ask("/ui/api/nodes").json

    assert told["names"] == ["n1", "n2"]
    assert told["resources"]["cpu"] == {"allocatable": [4000, 4000], "requested": [1500, 0]}
    assert told["version"] >= 1


def test_a_node() -> None:
    told = ask("/ui/api/nodes/n1").json

    assert told["labels"] == {"disk": "ssd", "topology.kubernetes.io/zone": "a"}
    assert told["zone"] == "a"
    assert told["taints"] == ["t=v:NoSchedule", "u:NoExecute"]
    assert told["unschedulable"] is False
    assert told["resources"]["cpu"] == {"allocatable": "4", "requested": "1500m"}
    assert told["resources"]["memory"] == {"allocatable": "8Gi", "requested": "0"}
    assert told["resources"]["pods"] == {"allocatable": "110", "requested": "1"}
    assert told["pods"] == [
        {"namespace": "shop", "name": "placed", "priority": 3, "requests": {"cpu": "1500m"}}
    ]


def test_the_queue() -> None:
    told = ask("/ui/api/queue").json

    assert told["total"] == 2
    assert [each["name"] for each in told["pods"]] == ["waiting", "gated"]
    assert told["pods"][1]["message"] == "waiting for scheduling gates: [g]"
    assert told["reasons"] == [{"plugin": "SchedulingGates", "pods": 1}]


def test_the_queue_can_be_searched_and_cut() -> None:
    assert ask("/ui/api/queue?search=shop/gat").json["total"] == 1
    cut = ask("/ui/api/queue?limit=1").json

    assert (cut["total"], len(cut["pods"])) == (2, 1)


def test_pods_are_found_wherever_they_are() -> None:
    assert ask("/ui/api/pods?search=place").json["pods"] == [
        {"namespace": "shop", "name": "placed", "node": "n1"}
    ]
    assert len(ask("/ui/api/pods").json["pods"]) == 3
    assert len(ask("/ui/api/pods?limit=2").json["pods"]) == 2
    assert ask("/ui/api/pods?search=%C3%A9").json["pods"] == []


def test_a_pod_is_explained() -> None:
    told = ask("/ui/api/pods/shop/waiting/explanation").json

    assert told["pod"] == "shop/waiting"
    assert told["outcome"] == "Unschedulable"
    assert {each["node"] for each in told["nodes"]} == {"n1", "n2"}
    assert any("request" in each["title"] for each in told["changes"])


def test_what_if() -> None:
    told = ask("/ui/api/what-if", "POST", body={"kind": "drain", "nodes": ["n1"]}).json

    assert told["moves"] == {"shop/placed": "n2"}


# --- what cannot ------------------------------------------------------------------------------

REFUSED = [
    ("/ui/nothing.js", "GET", 404),
    ("/ui/../page.py", "GET", 404),
    ("/ui/..%2fpage.py", "GET", 404),
    ("/ui/assets/index.html", "GET", 404),
    ("/ui/.hidden.js", "GET", 404),
    ("/ui/page.py", "GET", 404),
    ("/ui/api", "GET", 404),
    ("/ui/api/", "GET", 404),
    ("/ui/api/nothing", "GET", 404),
    ("/ui/api/overview/", "GET", 404),
    ("/ui/api/nodes/", "GET", 404),
    ("/ui/api/nodes/a/b", "GET", 404),
    ("/ui/api/nodes/nobody", "GET", 404),
    ("/ui/api/pods/shop/nobody/explanation", "GET", 404),
    ("/ui/api/pods/shop/a/b/explanation", "GET", 404),
    ("/ui/api/overview", "POST", 405),
    ("/ui/api/overview", "HEAD", 405),
    ("/ui/", "DELETE", 405),
    ("/ui/api/what-if", "GET", 405),
    ("/ui/api/overview?at=1", "GET", 400),
    ("/ui/api/nodes?at=x", "GET", 400),
    ("/ui/api/nodes?at=-1", "GET", 400),
    ("/ui/api/nodes?at=" + "9" * 5000, "GET", 400),
    ("/ui/api/queue?limit=0", "GET", 400),
    ("/ui/api/queue?limit=1001", "GET", 400),
    ("/ui/api/queue?limit=%D9%A1", "GET", 400),
    ("/ui/api/queue?colour=red", "GET", 400),
    ("/ui/api/nodes/n1?limit=3", "GET", 400),
    ("/ui/api/pods/shop/waiting?version=1", "GET", 400),
    ("/ui/api/stream?at=3", "GET", 400),
    ("/ui/api/stream", "GET", 404),
]


@pytest.mark.parametrize(("target", "method", "code"), REFUSED)
def test_what_is_not_there_is_refused_in_one_line(target: str, method: str, code: int) -> None:
    reply = ask(target, method)

    assert reply.code == code
    assert reply.error
    assert "\n" not in reply.error
    if code == 405:
        assert reply.headers["allow"] in ("GET", "POST")


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({"Content-Type": "text/plain"}, b"{}", 415),
        ({"Content-Type": ""}, b"{}", 415),
        ({"Origin": "https://evil.example"}, b"{}", 403),
        ({"Origin": "null"}, b"{}", 403),
        ({"Origin": "http://127.0.0.1:2"}, b"{}", 403),
        ({}, b"{}", 400),
        ({}, b"x" * (BODY_LIMIT_BYTES + 1), 413),
        ({}, b'{"kind":"loss","node":"nobody"}', 422),
        ({}, b'{"kind":"loss","node":"n1","at":3}', 400),
    ],
)
def test_a_question_that_is_none_is_refused(
    headers: dict[str, str], body: bytes, code: int
) -> None:
    reply = ask("/ui/api/what-if", "POST", body=body, **headers)

    assert reply.code == code
    assert reply.error


def test_a_question_of_our_own_page_is_answered() -> None:
    body = {"kind": "loss", "node": "n1"}
    reply = ask(
        "/ui/api/what-if",
        "POST",
        body=body,
        Origin="http://127.0.0.1:1",
        Content_Type="application/json; charset=utf-8",
    )

    assert reply.code == 200


@settings(max_examples=80, deadline=None)
@given(
    path=st.text(max_size=40),
    query=st.text(alphabet=st.characters(max_codepoint=127), max_size=40),
    method=st.sampled_from(["GET", "POST", "PUT"]),
)
def test_whatever_is_asked_there_is_an_answer(path: str, query: str, method: str) -> None:
    reply = ask(f"/ui/api/{path.replace('?', '')}?{query}", method)

    assert 400 <= reply.code < 500
    assert reply.error


# --- how it is said ---------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["/ui/", "/ui/api/overview", "/ui/nothing", "/ui/api/stream"])
def test_every_answer_has_the_headers_that_keep_the_page_to_itself(target: str) -> None:
    headers = ask(target).headers

    assert headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_the_page_without_its_slash_leads_to_the_page() -> None:
    reply = ask("/ui")

    assert (reply.code, reply.headers["location"]) == (308, "/ui/")


# --- how it ends ------------------------------------------------------------------------------


def test_who_leaves_before_the_answer_ends_the_work_on_it(
    run_once: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    from kubesched.web import questions

    monkeypatch.setattr(questions, "answered", lambda *_: time.sleep(60))

    async def main() -> None:
        gone = asyncio.Event()
        async with asked(page_of(*OBJECTS)) as page:
            asking = asyncio.create_task(
                _reply(page("/ui/api/pods/shop/waiting/explanation", gone=gone))
            )
            await eventually(lambda: len(forks()) == 1)
            gone.set()
            assert (await asking).code == 499
        assert forks() == []

    run_once(main())


async def _reply(asking: Awaitable[Reply]) -> Reply:
    return await asking


def test_streams_end_with_the_page(run_once: Run) -> None:
    async def main() -> None:
        page = WebPage(living(WorldState(world_of(*OBJECTS))))
        async with page:
            answer = await page.answer(request("/ui/api/stream"))
            assert answer.pieces is not None
            assert (await anext(answer.pieces)).startswith(b"retry:")
        async for _ in answer.pieces:
            pass

    run_once(main())


def test_nodes_can_be_grouped_by_labels_that_tell_them_apart(run_once: Run) -> None:
    async def main() -> None:
        nodes = [
            node("n1", labels={"pool": "a", "os": "linux", "host": "n1"}),
            node("n2", labels={"pool": "a", "os": "linux", "host": "n2"}),
            node("n3", labels={"pool": "b", "os": "linux", "host": "n3"}),
        ]
        async with asked(page_of(*nodes)) as ask:
            assert (await ask("/ui/api/labels")).json == {"keys": ["pool"], "key": "", "values": {}}
            told = (await ask("/ui/api/labels?key=pool")).json
            assert told["values"] == {"n1": "a", "n2": "a", "n3": "b"}

    run_once(main())


def test_a_parameter_that_is_not_known_is_named_with_those_that_are() -> None:
    reply = ask("/ui/api/queue?limit=3&colour=red")

    assert reply.error == "there is no parameter 'colour' here, only 'at', 'limit', 'search'"


def test_a_wrong_address_is_a_page_for_a_browser() -> None:
    reply = ask("/ui/nonsense", Accept="text/html")

    assert reply.code == 404
    assert reply.answer.content_type.startswith("text/html")
    assert b"There is nothing at /ui/nonsense" in reply.answer.body


def test_zones_have_one_name_everywhere() -> None:
    region = {"topology.kubernetes.io/region": "r"}
    objects = (node("n1", zone="a", labels=region), pod("p", cpu="1"))

    async def main() -> None:
        async with asked(page_of(*objects)) as page:
            nodes = (await page("/ui/api/nodes")).json
            one = (await page("/ui/api/nodes/n1")).json
            question = {"kind": "headroom", "namespace": "default", "name": "p"}
            body = json.dumps(question).encode()
            room = (await page("/ui/api/what-if", "POST", headers=JSON, body=body)).json
            body = json.dumps({"kind": "loss", "zone": "r/a"}).encode()
            lost = (await page("/ui/api/what-if", "POST", headers=JSON, body=body)).json
        names = nodes["zones"][0], one["zone"], next(iter(room["byZone"])), lost["name"]
        assert set(names) == {"r/a"}

    asyncio.run(main())


def test_what_is_not_there_is_said_so(run_once: Run) -> None:
    async def main() -> None:
        async with asked(page_of(node("n1"))) as ask:
            for target, why in (
                ("/ui/api/pods/shop/p", "there is no pod shop/p"),
                ("/ui/api/groups/shop/g", "there is no pod group shop/g"),
            ):
                reply = await ask(target)
                assert (reply.code, reply.error) == (404, why)
            assert (await ask("/ui/api/groups")).json == []
            assert (await ask("/ui/api/decisions")).json == {"decisions": [], "total": 0}

    run_once(main())
