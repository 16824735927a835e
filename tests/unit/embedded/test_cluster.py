"""The cluster as a whole: starting, stopping, and being asked over HTTP."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched.embedded import EmbeddedCluster, NodeTemplate, StatusError
from kubesched.embedded.resources import NAMESPACES, NODES, PODS
from kubesched.errors import UsageError
from tests.support.waiting import eventually, settle

JsonObject = dict[str, Any]


def in_cluster(scenario: Callable[[EmbeddedCluster], Awaitable[None]], **options: Any) -> None:
    """Run a scenario with a cluster that answers."""

    async def run() -> None:
        async with asyncio.timeout(20), EmbeddedCluster(run_kubelet=False, **options) as cluster:
            await scenario(cluster)

    asyncio.run(run())


async def ask(cluster: EmbeddedCluster, request: str, *headers: str, body: bytes = b"") -> Any:
    """Make a request by hand; return the status line's code and the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", cluster.port)
    lines = [f"{request} HTTP/1.1", *headers, f"Content-Length: {len(body)}", "Connection: close"]
    if not any(line.startswith("Host") for line in headers):
        lines.append(f"Host: 127.0.0.1:{cluster.port}")
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    raw = await reader.read()
    writer.close()
    head, _, payload = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]), payload


def a_pod(name: str) -> JsonObject:
    container = {"name": "c", "image": "registry.example/app:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


def test_it_answers_where_its_kubeconfig_says(tmp_path: Path) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        path = tmp_path / "folder" / "kubeconfig"
        cluster.write_kubeconfig(path)
        config = yaml.safe_load(path.read_text())

        assert config["clusters"][0]["cluster"] == {"server": cluster.url}
        assert cluster.url == f"http://127.0.0.1:{cluster.port}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert await ask(cluster, "GET /readyz") == (200, b"ok")

    in_cluster(scenario)


def test_objects_created_within_the_process_are_like_all_others() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        sent = a_pod("web")
        created = cluster.create(sent)
        _, raw = await ask(cluster, "GET /api/v1/namespaces/default/pods/web")

        assert json.loads(raw) == created
        assert created["spec"]["schedulerName"] == "default-scheduler"
        assert sent == a_pod("web"), "what is passed in stays the caller's"

    in_cluster(scenario)


def test_what_is_refused_is_an_exception() -> None:
    cluster = EmbeddedCluster()
    cluster.create(a_pod("web"))

    with pytest.raises(StatusError, match='pods "web" already exists') as caught:
        cluster.create(a_pod("web"))
    with pytest.raises(UsageError, match="there is no kind 'Moon' in 'v1'"):
        cluster.create({"apiVersion": "v1", "kind": "Moon"})

    assert caught.value.code == 409


def test_nodes_are_added_to_those_there_are() -> None:
    cluster = EmbeddedCluster()

    names = cluster.add_nodes(2) + cluster.add_nodes(1, NodeTemplate(cpu="64"))

    assert names == ["node-0000", "node-0001", "node-0002"]
    version = cluster.store.get(NODES, "node-0002")
    assert version is not None
    assert version.obj["status"]["allocatable"]["cpu"] == "64"


def test_a_port_that_is_taken() -> None:
    async def scenario() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(UsageError) as caught:
                await EmbeddedCluster(port=port).start()

        assert str(caught.value) == (
            f"cannot listen on 127.0.0.1:{port}: address already in use; choose another with --port"
        )

    asyncio.run(scenario())


def test_other_than_loopback_must_be_allowed() -> None:
    with pytest.raises(UsageError, match="listens on loopback only"):
        EmbeddedCluster("0.0.0.0")  # noqa: S104  it is refused

    EmbeddedCluster("0.0.0.0", allow_remote=True)  # noqa: S104  it is not started


def test_a_host_that_is_not_ours_is_refused() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        code, _ = await ask(cluster, "GET /api/v1/pods", "Host: evil.example:80")
        assert code == 403
        for host in ("localhost", f"localhost:{cluster.port}", "[::1]:80", "127.0.0.1"):
            code, _ = await ask(cluster, "GET /api/v1/pods", f"Host: {host}")
            assert code == 200, host

    in_cluster(scenario)


def test_stopping_ends_watches() -> None:
    async def scenario() -> None:
        cluster = EmbeddedCluster(run_kubelet=False)
        await cluster.start()
        watching = asyncio.ensure_future(ask(cluster, "GET /api/v1/pods?watch=1"))
        await eventually(lambda: bool(cluster._app._streams))

        async with asyncio.timeout(5):
            await cluster.stop()
            code, _ = await watching

        assert code == 200

    asyncio.run(scenario())


@pytest.mark.parametrize("turns", range(6))
def test_a_cluster_may_end_before_anything_in_it_has_begun(turns: int) -> None:
    """Nothing is left behind, be it a coroutine that nobody ever waited for."""

    async def end_at_once() -> None:
        async with EmbeddedCluster():
            for _ in range(turns):
                await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(end_at_once())
    gc.collect()  # what is left behind is a warning, and warnings are errors


@pytest.mark.parametrize("turns", range(6))
def test_a_start_that_is_cancelled_leaves_nothing_behind(turns: int) -> None:
    async def start_and_cancel() -> None:
        cluster = EmbeddedCluster()
        starting = asyncio.create_task(cluster.start())
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        if not starting.cancelled():  # it had started before
            await cluster.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(start_and_cancel())
    gc.collect()


def test_a_client_that_leaves_is_forgotten() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", cluster.port)
        writer.write(b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        streams = cluster._app._streams
        await eventually(lambda: bool(streams))
        writer.close()
        await eventually(lambda: not streams)

        assert cluster.store.collection(PODS)._watchers == []

    in_cluster(scenario)


def test_a_client_that_does_not_read_is_cut_off() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.port, limit=1024)
        writer.write(b"GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await eventually(lambda: bool(cluster._app._streams))
        (stream,) = cluster._app._streams
        assert stream._watcher is not None
        stream._watcher._limit = 10
        large = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "y" * 100_000}}
        for number in range(200):
            cluster.create({**large, "metadata": {"name": f"c{number}"}})
            await asyncio.sleep(0)

        assert stream._watcher.closed
        last = b""
        while not last.endswith(b"0\r\n\r\n"):
            last = last[-5:] + await reader.read(1 << 20)
        writer.close()

    in_cluster(scenario)


def test_a_body_that_is_too_large() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        body = json.dumps({"metadata": {"name": "x"}, "data": {"x": "y" * (3 << 20)}}).encode()

        code, raw = await ask(cluster, "POST /api/v1/namespaces/default/configmaps", body=body)

        assert (code, json.loads(raw)["reason"]) == (413, "RequestEntityTooLarge")

    in_cluster(scenario)


def test_a_mistake_of_ours_is_an_answer_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        def broken(*_: object) -> None:
            raise RuntimeError("oh no")

        monkeypatch.setattr(cluster.registry, "get", broken)

        code, raw = await ask(cluster, "GET /api/v1/nodes/x")

        assert (code, json.loads(raw)["message"]) == (500, "Internal error occurred: oh no")
        assert "GET /api/v1/nodes/x failed" in caplog.text

    in_cluster(scenario)


def test_a_kubelet_that_fails_is_heard_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        cluster = EmbeddedCluster()

        async def broken() -> None:
            raise RuntimeError("oh no")

        monkeypatch.setitem(cluster._controllers, "kubelet", broken)
        async with cluster:
            await settle()
            assert await ask(cluster, "GET /readyz") == (200, b"ok")

    asyncio.run(scenario())

    assert "the embedded kubelet stopped working" in caplog.text


def test_a_namespace_is_emptied_and_goes() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        meta = {"name": "team"}
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        pod = a_pod("web")
        pod["metadata"] |= {"namespace": "team", "finalizers": ["example.com/hold"]}
        cluster.create(pod)

        def is_going() -> bool:
            held = cluster.store.get(PODS, "team/web")
            return held is not None and "deletionTimestamp" in held.obj["metadata"]

        await ask(cluster, "DELETE /api/v1/namespaces/team")
        await eventually(is_going)
        await asyncio.sleep(0.3)  # it stays so for longer than a round of the kubelet takes
        assert is_going(), "somebody holds it"
        assert cluster.store.get(NAMESPACES, "team") is not None

        body = b'{"metadata":{"finalizers":null}}'
        kind = "Content-Type: application/merge-patch+json"
        await ask(cluster, "PATCH /api/v1/namespaces/team/pods/web", kind, body=body)
        await eventually(lambda: cluster.store.get(NAMESPACES, "team") is None)

        assert len(cluster.store.collection(PODS)) == 0

    in_cluster(scenario)
