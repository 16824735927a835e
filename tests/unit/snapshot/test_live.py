"""A live cluster is read by lists alone, and whoever may not see everything gets a note."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from kubesched.client.access import ClusterAccess
from kubesched.client.rest import ApiClient
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.errors import NotFoundError
from kubesched.kinds import KINDS
from kubesched.snapshot import live
from kubesched.snapshot.contents import Snapshot

T = TypeVar("T")


def _in_cluster(work: Callable[[EmbeddedCluster], Awaitable[T]]) -> T:
    async def run() -> T:
        async with EmbeddedCluster(port=0) as cluster:
            await asyncio.sleep(
                0
            )  # a cluster that ends before its tasks began leaves them unawaited
            return await work(cluster)

    return asyncio.run(run())


def _pod(name: str, **spec: object) -> dict[str, object]:
    containers = [{"name": "c", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers, **spec},
    }


def test_all_kinds_are_listed_and_nothing_but_get_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []
    original = ApiClient.request

    async def request(self: ApiClient, method: str, path: str, **options: object) -> object:
        sent.append((method, path))
        return await original(self, method, path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ApiClient, "request", request)

    async def work(cluster: EmbeddedCluster) -> Snapshot:
        cluster.add_nodes(3)
        cluster.create(_pod("p"))
        return await live.read(ClusterAccess.plain(cluster.url))

    found = _in_cluster(work)

    assert len(found.nodes) == 3
    assert [each.metadata.name for each in found.pods] == ["p"]
    assert {method for method, _ in sent} == {"GET"}
    assert {path for _, path in sent} == {each.path.collection() for each in KINDS.values()}


def test_what_may_not_be_seen_is_noted_unless_nothing_goes_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hidden = {"/api/v1/persistentvolumes"}
    original = ApiClient.request

    async def request(self: ApiClient, method: str, path: str, **options: object) -> object:
        if path in hidden:
            raise NotFoundError("not for you", code=404)
        return await original(self, method, path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ApiClient, "request", request)

    async def work(cluster: EmbeddedCluster) -> Snapshot:
        return await live.read(ClusterAccess.plain(cluster.url))

    assert _in_cluster(work).notes == ["persistentvolumes are not taken into account: not for you"]
    hidden.add("/api/v1/nodes")
    with pytest.raises(NotFoundError):
        _in_cluster(work)
