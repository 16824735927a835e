"""Whole objects for extenders: read once, and again only when they changed."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from kubesched.api.core import Pod
from kubesched.api.meta import ObjectMeta
from kubesched.client.rest import ApiClient
from kubesched.errors import ApiError, ClientError, NotFoundError
from kubesched.scheduler.extender_objects import ApiObjects
from tests.support.servers import Exchange, Script, ScriptedServer, answer, failure
from tests.support.waiting import settle

from .extender_lab import run

PATH = "/api/v1/namespaces/ns/pods/p1"


def a_pod(version: str = "5", uid: str = "u1") -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p1", namespace="ns", uid=uid, resource_version=version),
    )


def pod_text(version: str = "5", uid: str = "u1") -> bytes:
    """A pod as the API server writes it, with much that the scheduler does not read."""
    return (
        b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p1","namespace":"ns","uid":"%b",'
        b'"resourceVersion":"%b","annotations":{"a":"b"},"managedFields":[{"manager":"kubectl"}]},'
        b'"spec":{"containers":[{"name":"c","env":[{"name":"X","value":"\\u003c1\\u003e"}]}],'
        b'"dnsPolicy":"ClusterFirst"},"status":{"phase":"Pending","qosClass":"BestEffort"}}\n'
    ) % (uid.encode(), version.encode())


def pod_as_go_sends_it(version: str = "5") -> bytes:
    return (
        b'{"metadata":{"name":"p1","namespace":"ns","uid":"u1",'
        b'"resourceVersion":"%b","annotations":{"a":"b"}},'
        b'"spec":{"containers":[{"name":"c","env":[{"name":"X","value":"\\u003c1\\u003e"}]}],'
        b'"dnsPolicy":"ClusterFirst"},"status":{"phase":"Pending","qosClass":"BestEffort"}}'
    ) % version.encode()


class Cluster:
    """The API server's nodes, and what the scheduler has heard of them."""

    def __init__(self, count: int) -> None:
        self.nodes = {f"n{number}": 1 for number in range(count)}
        self.known: dict[str, str] = {}
        self.hear()

    def hear(self) -> None:
        """The watch catches up."""
        self.known = {name: str(version) for name, version in self.nodes.items()}

    def change(self, *names: str) -> None:
        for name in names:
            self.nodes[name] += 1

    def item(self, name: str, **extra: str) -> dict[str, Any]:
        meta = {"name": name, "resourceVersion": str(self.nodes[name]), "managedFields": [{}]}
        return {**extra, "metadata": meta, "spec": {"podCIDR": "10.0.0.0/24"}}

    async def __call__(self, exchange: Exchange) -> bytes:
        if exchange.path == "/api/v1/nodes":
            return self._page(exchange)
        name = exchange.path.removeprefix("/api/v1/nodes/")
        if name not in self.nodes:
            return failure(404, "NotFound", f'nodes "{name}" not found')
        return answer(self.item(name, kind="Node", apiVersion="v1"))

    def _page(self, exchange: Exchange) -> bytes:
        start, limit = int(exchange.query.get("continue", 0)), int(exchange.query["limit"])
        names = list(self.nodes)[start : start + limit]
        more = start + limit < len(self.nodes)
        metadata = {"resourceVersion": "9", "continue": str(start + limit) if more else ""}
        items = [self.item(name) for name in names]
        return answer({"kind": "NodeList", "metadata": metadata, "items": items})


@asynccontextmanager
async def reading(
    handler: Script | Cluster,
) -> AsyncIterator[tuple[ScriptedServer, ApiObjects]]:
    known = handler.known if isinstance(handler, Cluster) else {}
    async with ScriptedServer(handler) as server, ApiClient(server.access) as client:

        def version_of(name: str) -> str | None:
            return (handler.known if isinstance(handler, Cluster) else known).get(name)

        yield server, ApiObjects(client, version_of)
        await settle()


def versions(nodes: Sequence[bytes]) -> dict[str, str]:
    metas = [msgspec.json.decode(node)["metadata"] for node in nodes]
    return {meta["name"]: meta["resourceVersion"] for meta in metas}


# --- pods -------------------------------------------------------------------------------------


def test_a_pod_is_given_as_the_api_server_has_it_without_what_go_programs_lack() -> None:
    async def main() -> None:
        async with reading(Script().on("GET", PATH, answer(pod_text()))) as (_, objects):
            assert await objects.pod_json(a_pod()) == pod_as_go_sends_it()

    run(main())


def test_a_pod_is_read_again_only_after_it_changed() -> None:
    async def main() -> None:
        script = Script().on("GET", PATH, answer(pod_text("6")), answer(pod_text("7")))
        async with reading(script) as (server, objects):
            # The scheduler still knows version 5; what came is 6, and does for both.
            for version in ("5", "5", "6"):
                assert await objects.pod_json(a_pod(version)) == pod_as_go_sends_it("6")
            assert len(server.requests) == 1
            assert await objects.pod_json(a_pod("7")) == pod_as_go_sends_it("7")
            assert len(server.requests) == 2

    run(main())


def test_only_so_many_pods_are_kept() -> None:
    async def main() -> None:
        async def any_pod(exchange: Exchange) -> bytes:
            uid = exchange.path.rpartition("/")[2]
            return answer({"metadata": {"name": uid, "uid": uid, "resourceVersion": "1"}})

        script = Script()
        pods = [
            Pod(metadata=ObjectMeta(name=uid, namespace="ns", uid=uid, resource_version="1"))
            for uid in (f"u{number}" for number in range(300))
        ]
        for each in pods:
            script.on("GET", f"/api/v1/namespaces/ns/pods/{each.metadata.name}", any_pod)
        async with reading(script) as (server, objects):
            for each in pods:
                await objects.pod_json(each)
            assert len(objects._pods) == 256
            await objects.pod_json(pods[-1])
            assert len(server.requests) == 300
            await objects.pod_json(pods[0])
            assert len(server.requests) == 301

    run(main())


def test_a_pod_that_is_gone_or_replaced_is_not_found() -> None:
    async def main() -> None:
        gone = failure(404, "NotFound", 'pods "p1" not found')
        script = Script().on("GET", PATH, gone, answer(pod_text(uid="u2")))
        async with reading(script) as (_, objects):
            with pytest.raises(NotFoundError, match=r'^pods "p1" not found$'):
                await objects.pod_json(a_pod())
            with pytest.raises(NotFoundError, match="another pod has its name"):
                await objects.pod_json(a_pod())

    run(main())


@pytest.mark.parametrize(
    "reply", [failure(500, "InternalError", "etcd is unwell"), answer("nonsense")]
)
def test_what_the_scheduler_knows_has_to_do_if_the_api_server_fails(
    reply: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def main() -> None:
        script = Script().on("GET", PATH, reply, answer(pod_text()))
        async with reading(script) as (_, objects):
            assert await objects.pod_json(a_pod()) == (
                b'{"metadata":{"name":"p1","namespace":"ns","uid":"u1","resourceVersion":"5"}}'
            )
            (line,) = caplog.messages
            assert line.startswith("Extenders get only the fields of the pod that the scheduler")
            assert "pod=ns/p1" in line
            # It is not kept.
            assert await objects.pod_json(a_pod()) == pod_as_go_sends_it()

    run(main())


# --- nodes ------------------------------------------------------------------------------------


def test_few_nodes_are_read_one_by_one_and_given_whole() -> None:
    async def main() -> None:
        async with reading(Cluster(3)) as (server, objects):
            nodes = await objects.nodes_json(["n2", "n0"])
            assert nodes == [
                b'{"metadata":{"name":"%b","resourceVersion":"1","managedFields":[{}]},'
                b'"spec":{"podCIDR":"10.0.0.0/24"}}' % name
                for name in (b"n2", b"n0")
            ]
            paths = sorted(exchange.path for exchange in server.requests)
            assert paths == ["/api/v1/nodes/n0", "/api/v1/nodes/n2"]

    run(main())


def test_many_nodes_are_read_as_a_list_in_pages_and_kept_as_they_are() -> None:
    async def main() -> None:
        cluster = Cluster(1100)
        async with reading(cluster) as (server, objects):
            names = list(reversed(cluster.nodes))
            nodes = await objects.nodes_json(names)
            assert list(versions(nodes)) == names
            assert [exchange.path for exchange in server.requests] == ["/api/v1/nodes"] * 2
            assert nodes[0] == msgspec.json.encode(cluster.item("n1099"))
            assert await objects.nodes_json(names[:700]) == nodes[:700]
            assert len(server.requests) == 2

    run(main())


def test_only_what_changed_is_read_again() -> None:
    async def main() -> None:
        cluster = Cluster(100)
        async with reading(cluster) as (server, objects):
            names = list(cluster.nodes)
            await objects.nodes_json(names)
            assert len(server.requests) == 1

            cluster.change("n7", "n9")
            assert set(versions(await objects.nodes_json(names)).values()) == {"1"}
            assert len(server.requests) == 1  # the scheduler has not heard of it

            cluster.hear()
            found = versions(await objects.nodes_json(names))
            assert (found["n7"], found["n8"], found["n9"]) == ("2", "1", "2")
            assert len(server.requests) == 3

            cluster.change(*names[:21])
            cluster.hear()
            assert versions(await objects.nodes_json(names)) == cluster.known
            assert server.requests[-1].path == "/api/v1/nodes"
            assert len(server.requests) == 4

    run(main())


@pytest.mark.parametrize("count", [3, 50])
def test_what_is_newer_than_known_is_not_read_again_when_the_news_arrives(count: int) -> None:
    async def main() -> None:
        cluster = Cluster(count)
        cluster.change(*cluster.nodes)  # the scheduler still knows version 1
        async with reading(cluster) as (server, objects):
            names = list(cluster.nodes)
            assert set(versions(await objects.nodes_json(names)).values()) == {"2"}
            requests = len(server.requests)
            await objects.nodes_json(names)
            cluster.hear()
            await objects.nodes_json(names)
            assert len(server.requests) == requests

    run(main())


@pytest.mark.parametrize("count", [3, 50])
def test_nodes_that_are_gone_are_left_out(count: int) -> None:
    async def main() -> None:
        cluster = Cluster(count)
        async with reading(cluster) as (_, objects):
            names = list(cluster.nodes)
            del cluster.nodes["n1"]
            assert list(versions(await objects.nodes_json(names))) == [
                name for name in names if name != "n1"
            ]
            # One that goes later is still known from before, as it is in kube-scheduler's cache.
            del cluster.nodes["n2"]
            cluster.hear()
            assert "n2" in versions(await objects.nodes_json(names))

    run(main())


def test_nodes_come_and_go_without_memory_growing_for_ever() -> None:
    async def main() -> None:
        cluster = Cluster(10)
        async with reading(cluster) as (_, objects):
            for generation in range(150):
                cluster.nodes = {f"g{generation}-{number}": 1 for number in range(10)}
                cluster.hear()
                assert len(await objects.nodes_json(list(cluster.nodes))) == 10
            assert len(objects._nodes) <= 1010

    run(main())


@pytest.mark.parametrize("count", [3, 50])
def test_an_api_server_that_fails_is_an_error_and_nothing_is_left_running(count: int) -> None:
    async def main() -> None:
        script = Script().on("GET", "/api/v1/nodes", failure(500, "InternalError", "unwell"))
        for number in range(3):
            script.on("GET", f"/api/v1/nodes/n{number}", failure(500, "InternalError", "unwell"))
        async with reading(script) as (_, objects):
            with pytest.raises(ApiError, match="unwell"):
                await objects.nodes_json([f"n{number}" for number in range(count)])

    run(main())


@pytest.mark.parametrize("body", [b"nonsense", b'{"items":[5]}', b'{"metadata":5,"items":[{}]}'])
def test_an_answer_that_is_no_node_is_an_error(body: bytes) -> None:
    async def main() -> None:
        script = Script().on("GET", "/api/v1/nodes", answer(body))
        async with reading(script) as (_, objects):
            with pytest.raises(ClientError):
                await objects.nodes_json([f"n{number}" for number in range(30)])

    run(main())
