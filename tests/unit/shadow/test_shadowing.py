"""Shadow on an API server in memory: lists, watches, judges, and ends as it was told to."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubesched.client.access import ClusterAccess
from kubesched.client.rest import ApiClient
from kubesched.config.types import SchedulerConfiguration
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.errors import ConnectionFailedError
from kubesched.plugins.in_tree import IN_TREE
from kubesched.shadow.lines import JsonLines
from kubesched.shadow.shadowing import Shadow, ShadowOptions

from .lab import GATES

Json = dict[str, Any]


def make(url: str, out: io.StringIO, **options: Any) -> Shadow:
    return Shadow(
        ClusterAccess.plain(url),
        SchedulerConfiguration.default(GATES),
        GATES,
        registry=IN_TREE,
        lines=JsonLines(out),
        options=ShadowOptions(**options),
    )


def shadowing(
    work: Callable[[EmbeddedCluster, ApiClient], Awaitable[None]], **options: object
) -> list[Json]:
    """Run a shadow beside `work`, which is the other scheduler; return what it wrote."""
    out = io.StringIO()

    async def run() -> None:
        async with (
            EmbeddedCluster(port=0) as cluster,
            ApiClient(ClusterAccess.plain(cluster.url)) as client,
        ):
            cluster.add_nodes(3)
            cluster.create(pod("there"))
            shadow = make(cluster.url, out, **options)
            running = asyncio.create_task(shadow.run())
            await asyncio.wait_for(shadow.watched.synced.wait(), 10)
            await work(cluster, client)
            await asyncio.wait_for(running, 10)

    asyncio.run(run())
    return [json.loads(line) for line in out.getvalue().splitlines()]


def pod(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


async def bind(client: ApiClient, name: str, node_name: str) -> None:
    path = f"/api/v1/namespaces/default/pods/{name}/binding"
    target = {"kind": "Node", "name": node_name}
    await client.post(path, {"metadata": {"name": name}, "target": target})


async def _first_node(client: ApiClient) -> str:
    nodes = await client.get("/api/v1/nodes", dict)
    return str(nodes["items"][0]["metadata"]["name"])


def test_judges_until_the_time_is_over() -> None:
    async def work(cluster: EmbeddedCluster, client: ApiClient) -> None:
        cluster.create(pod("p"))
        node_name = await _first_node(client)
        await bind(client, "p", node_name)
        await bind(client, "there", node_name)

    first, second, summary = shadowing(work, duration_s=1.0)

    assert (first["pod"], first["verdict"]) == ("default/p", "Same")
    assert second["pod"] == "default/there"
    assert second["verdict"] == "LowerScore", "the node of the pod before is the worst now"
    assert (summary["kind"], summary["final"], summary["bindings"]) == ("Summary", True, 2)


def test_only_differences_are_listed_and_all_are_counted() -> None:
    async def work(_: EmbeddedCluster, client: ApiClient) -> None:
        await bind(client, "there", await _first_node(client))

    (summary,) = shadowing(work, duration_s=1.0, only_differences=True)

    assert summary["ties"] == summary["tiesSame"] == 1


def test_a_summary_comes_now_and_then_if_there_is_something_new() -> None:
    async def work(_: EmbeddedCluster, client: ApiClient) -> None:
        await bind(client, "there", await _first_node(client))

    lines = shadowing(work, duration_s=2.2, summary_every_s=0.6)

    assert [each["kind"] for each in lines] == ["Binding", "Summary", "Summary"]
    assert [each["final"] for each in lines[1:]] == [False, True]


def test_a_cluster_that_cannot_be_reached_is_an_error_and_no_summary() -> None:
    out = io.StringIO()
    with pytest.raises(ConnectionFailedError):
        asyncio.run(make("http://127.0.0.1:1", out).run())
    assert out.getvalue() == ""


class Closed(io.StringIO):
    """Whoever read this has gone."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_when_nobody_reads_it_any_more_it_ends() -> None:
    async def run() -> None:
        async with (
            EmbeddedCluster(port=0) as cluster,
            ApiClient(ClusterAccess.plain(cluster.url)) as client,
        ):
            cluster.add_nodes(1)
            cluster.create(pod("p"))
            shadow = make(cluster.url, Closed())
            running = asyncio.create_task(shadow.run())
            await asyncio.wait_for(shadow.watched.synced.wait(), 10)
            await bind(client, "p", await _first_node(client))
            with pytest.raises(BrokenPipeError):
                await asyncio.wait_for(running, 10)

    asyncio.run(run())


def test_a_snapshot_of_what_is_watched() -> None:
    async def run() -> None:
        async with EmbeddedCluster(port=0) as cluster:
            cluster.add_nodes(3)
            cluster.create(pod("p"))
            shadow = make(cluster.url, io.StringIO())
            running = asyncio.create_task(shadow.run())
            await asyncio.wait_for(shadow.watched.synced.wait(), 10)
            taken = shadow.watched.snapshot()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert dict(taken.counts())["Node"] == 3
        assert [each.metadata.name for each in taken.pods] == ["p"]

    asyncio.run(run())
