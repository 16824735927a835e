"""What an operator sees who asks for the state: all of it, and where the API server disagrees."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

import pytest

from kubesched.client.access import ClusterAccess
from kubesched.client.rest import ApiClient
from kubesched.logs.formats import ERR, FIELDS
from kubesched.scheduler.debugging import dump_and_compare
from tests.support.embedded_scheduler import Harness, scheduler
from tests.support.objects import node
from tests.support.waiting import eventually

LOGGER = "kubesched.scheduler.debugging"


def asked(
    caplog: pytest.LogCaptureFixture, prepare: Callable[[Harness], None] = lambda _: None
) -> dict[str, list[dict[str, object]]]:
    """Ask a scheduler with a node, a placed pod and one that waits; return fields by message."""
    caplog.set_level(logging.INFO, logger=LOGGER)

    async def main() -> None:
        async with scheduler(nodes=2) as harness:
            harness.create_pod("placed")
            harness.create_pod("waits", nodeSelector={"no": "where"})
            harness.create_pod("others", schedulerName="another")
            await eventually(lambda: harness.node_of("placed") and harness.message("waits"))
            prepare(harness)
            await dump_and_compare(harness.app.engine, harness.app.client)

    asyncio.run(main())
    found: dict[str, list[dict[str, object]]] = {}
    for record in caplog.records:
        if record.name == LOGGER:
            found.setdefault(record.getMessage(), []).append(vars(record)[FIELDS])
    return found


def test_state_and_queue(caplog: pytest.LogCaptureFixture) -> None:
    found = asked(caplog)
    (nodes,) = found["Dump of cached NodeInfo"]
    texts = str(nodes["nodes"]).split("\n\n")
    assert len(texts) == 2
    (with_pod,) = (text for text in texts if "name: placed, namespace: default, " in text)
    assert "Deleted: false\n" in with_pod
    assert "'cpu': 1000" in with_pod.partition("Allocatable")[0]
    assert "Scheduled Pods(number: 1):\n" in with_pod
    (queue,) = found["Dump of scheduling queue"]
    assert queue["summary"] == "activeQ:0; backoffQ:0; unschedulableEntities:1"
    assert str(queue["pods"]).startswith("name: waits, namespace: default, uid: ")


def test_nothing_to_complain_about(caplog: pytest.LogCaptureFixture) -> None:
    found = asked(caplog)
    assert found["Cache matches the API server"] == [
        {"kind": "nodes", "count": 2},
        {"kind": "pods", "count": 2},
    ]
    assert "Cache mismatch" not in found


def test_promised_room_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    def nominate(harness: Harness) -> None:
        (waiting,) = harness.app.queue.pods()
        name = harness.node_of("placed")
        harness.app.cluster.nominator.nominate(waiting.info, name)

    (nodes,) = asked(caplog, nominate)["Dump of cached NodeInfo"]
    assert "Nominated Pods(number: 1):\nname: waits, " in str(nodes["nodes"])


def test_what_is_missed_and_what_is_too_much(caplog: pytest.LogCaptureFixture) -> None:
    def confuse(harness: Harness) -> None:
        app = harness.app
        app.cluster.put_node(node("imagined"))
        (waiting,) = app.queue.pods()
        app.queue.delete(waiting.info.uid)
        uids.append(waiting.info.uid)

    uids: list[str] = []
    found = asked(caplog, confuse)
    assert found["Cache mismatch"] == [
        {"missedNodes": [], "redundantNodes": ["imagined"]},
        {"missedPods": uids, "redundantPods": []},
    ]


def test_pods_in_flight_are_known(caplog: pytest.LogCaptureFixture) -> None:
    def pop(harness: Harness) -> None:
        (waiting,) = harness.app.queue.pods()
        harness.app.queue.activate([waiting.info.uid])
        assert harness.app.queue.pop() is waiting
        assert not list(harness.app.queue.pods())

    assert "Cache mismatch" not in asked(caplog, pop)


def test_an_api_server_that_does_not_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with scheduler() as harness:
            # Bound, so that nobody else has the port; not listening, so that nobody answers.
            with socket.socket() as silent:
                silent.bind(("127.0.0.1", 0))
                access = ClusterAccess.plain(f"http://127.0.0.1:{silent.getsockname()[1]}")
                async with ApiClient(access, timeout_s=1) as nobody:
                    await dump_and_compare(harness.app.engine, nobody)

    asyncio.run(main())
    (record,) = (each for each in caplog.records if each.levelno == logging.ERROR)
    assert record.getMessage() == "Cache comparer could not read the cluster"
    assert "connect" in str(vars(record)[ERR])


def test_others_get_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesched.scheduler.debugging._NODES_A_TURN", 1)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main() -> None:
        async with scheduler(nodes=20) as harness:
            counting = asyncio.create_task(count())
            await dump_and_compare(harness.app.engine, harness.app.client)
            counting.cancel()

    asyncio.run(main())
    assert turns > 20
