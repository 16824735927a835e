"""The two servers that contract tests run against: the embedded one, and kube-apiserver."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from kubesched.embedded import EmbeddedCluster

from .contract import Api, Client
from .control_plane import ControlPlane


class EmbeddedServer:
    """The embedded server in a thread and a loop of its own."""

    def __init__(self) -> None:
        self._ready: Future[tuple[EmbeddedCluster, asyncio.AbstractEventLoop]] = Future()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        self.cluster, self._loop = self._ready.result(10)

    async def _run(self) -> None:
        try:
            async with EmbeddedCluster(run_kubelet=False) as cluster:
                self._ready.set_result((cluster, asyncio.get_running_loop()))
                await self._stop.wait()
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            raise

    def call(self, function: Callable[[], None]) -> None:
        """Call something in the server's own thread, and wait for it."""
        done: Future[None] = Future()

        def run() -> None:
            try:
                function()
                done.set_result(None)
            except Exception as error:  # noqa: BLE001  it is raised by result()
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        done.result(10)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


@contextlib.contextmanager
def embedded_api(server: EmbeddedServer, namespace: str) -> Iterator[Api]:
    client = Client(server.cluster.kubeconfig())
    with Api(client, namespace, lambda: server.call(server.cluster.store.compact)) as api:
        api.do("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        yield api
        api.ask("DELETE", f"/api/v1/namespaces/{namespace}")


@contextlib.contextmanager
def real_api(plane: ControlPlane, namespace: str) -> Iterator[Api]:
    client = Client(plane.admin_kubeconfig.read_text())

    def forget_history() -> None:
        """Compact etcd, and restart the server, which has a memory of its own."""
        revision = plane.request("GET", "/api/v1/nodes")["metadata"]["resourceVersion"]
        url = f"http://127.0.0.1:{plane.etcd_port}/v3/kv/compaction"
        body = json.dumps({"revision": revision, "physical": True}).encode()
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=10):
            plane.kill_apiserver()
        plane.start_apiserver()

    plane.create_namespace(namespace)
    with Api(client, namespace, forget_history) as api:
        yield api
    # Emptying a namespace of all kinds takes longer than most tests. Only its pods would be seen
    # by others; the rest stays in a namespace that never ends, for as long as this plane lives.
    plane.purge(f"/api/v1/namespaces/{namespace}/pods")
    plane.request("DELETE", f"/api/v1/namespaces/{namespace}")
