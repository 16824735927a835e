"""One contract, two API servers: the embedded one must answer as kube-apiserver does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from kubesched.embedded import EmbeddedCluster

from .contract import Api, Client
from .contract_bindings import BindingContract, PodDeletionContract
from .contract_deletes import DeleteContract
from .contract_events import EventContract
from .contract_lists import ListContract, PageContract, SelectorContract
from .contract_objects import (
    CreateContract,
    ReadContract,
    UpdateContract,
)
from .contract_patches import ApplyContract, PatchContract
from .contract_pod_rules import PodValidationContract, PriorityContract
from .contract_pods import PodCreationContract, PodUpdateContract
from .contract_status import NamespaceContract, StatusContract
from .contract_tables import DiscoveryContract, TableContract
from .contract_watches import ForgettingContract, WatchContract
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


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedServer]:
    server = EmbeddedServer()
    yield server
    server.close()


@pytest.fixture(params=["embedded", "kube-apiserver"])
def api(request: pytest.FixtureRequest) -> Iterator[Api]:
    """The server under test, with a new namespace."""
    name = f"contract-{secrets.token_hex(4)}"
    if request.param == "embedded":
        with embedded_api(request.getfixturevalue("embedded"), name) as found:
            yield found
    else:
        with real_api(request.getfixturevalue("control_plane"), name) as found:
            yield found


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


class TestBinding(BindingContract):
    pass


class TestPodDeletion(PodDeletionContract):
    pass


class TestDelete(DeleteContract):
    pass


class TestEvent(EventContract):
    pass


class TestList(ListContract):
    pass


class TestPage(PageContract):
    pass


class TestSelector(SelectorContract):
    pass


class TestCreate(CreateContract):
    pass


class TestRead(ReadContract):
    pass


class TestUpdate(UpdateContract):
    pass


class TestStatus(StatusContract):
    pass


class TestNamespace(NamespaceContract):
    pass


class TestPatch(PatchContract):
    pass


class TestApply(ApplyContract):
    pass


class TestPriority(PriorityContract):
    pass


class TestPodValidation(PodValidationContract):
    pass


class TestPodCreation(PodCreationContract):
    pass


class TestPodUpdate(PodUpdateContract):
    pass


class TestTable(TableContract):
    pass


class TestDiscovery(DiscoveryContract):
    pass


class TestWatch(WatchContract):
    pass


class TestForgetting(ForgettingContract):
    pass
