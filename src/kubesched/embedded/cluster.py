"""A whole cluster in this process: an API server, simulated nodes and a simulated kubelet.

    async with EmbeddedCluster() as cluster:
        cluster.add_nodes(1000, NodeTemplate(cpu="32"))
        cluster.write_kubeconfig(path)          # kubectl --kubeconfig=path get nodes

All state is in memory and in the loop that entered the ``async with``; leaving it ends everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import uvicorn
import yaml

from kubesched.clock import Clock
from kubesched.embedded.app import EmbeddedApiApp
from kubesched.embedded.claims import ClaimController
from kubesched.embedded.drivers import SimulatedDriver, SliceController
from kubesched.embedded.groups import GroupProtection
from kubesched.embedded.kubelet import Kubelet, KubeletOptions
from kubesched.embedded.namespaces import NamespaceController
from kubesched.embedded.nodes import NodeTemplate, ready_condition
from kubesched.embedded.pods import Admission
from kubesched.embedded.provisioner import SimulatedProvisioner
from kubesched.embedded.registry import ObjectRegistry, Where, without_nulls
from kubesched.embedded.resources import BY_KIND
from kubesched.embedded.store import HISTORY, VersionedStore
from kubesched.embedded.versions import encode
from kubesched.embedded.workloads import WorkloadControllers
from kubesched.errors import UsageError

JsonObject = dict[str, Any]

_LOG: Final = logging.getLogger(__name__)
_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_BACKLOG: Final = 2048
_SYSTEM_CLASSES: Final = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        (
            "Used for system critical pods that must run in the cluster, but can be moved to "
            "another node if necessary."
        ),
    ),
)


class EmbeddedCluster:
    """An API server over HTTP, with its controllers; an async context manager."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        allow_remote: bool = False,
        kubelet: KubeletOptions | None = None,
        run_kubelet: bool = True,
        admission: Admission | None = None,
        clock: Clock | None = None,
        history: int = HISTORY,
        drivers: Sequence[SimulatedDriver] = (),
        run_workloads: bool = False,
    ) -> None:
        """Port 0 means any free one; ``allow_remote`` must be set for other than loopback.

        ``run_kubelet`` is about all that a cluster does by itself: kubelet, volumes, devices.
        ``run_workloads`` adds the controllers that make pods of Deployments, Jobs and the like.

        There is no authentication: every client that can connect has full access.
        """
        if host not in _LOOPBACK and not allow_remote:
            raise UsageError(
                f"the embedded API server has no authentication and listens on loopback only, not "
                f"on {host}: allow remote connections explicitly if you mean it"
            )
        self._host = host
        self._port = port
        self.store = VersionedStore(history=history)
        self.registry = ObjectRegistry(self.store, clock=clock, admission=admission)
        self._app = EmbeddedApiApp(self.registry, allowed_hosts=None if allow_remote else _LOOPBACK)
        kubelets = Kubelet(self.store, self._app.deletion, self.registry.times, kubelet)
        self._controllers: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "kubelet": kubelets.run,
            "provisioner": SimulatedProvisioner(self.registry).run,
            "claim controller": ClaimController(self.registry, self._app.deletion).run,
            "group protection": GroupProtection(self.store).run,
            "driver of devices": SliceController(self.registry, drivers).run,
        }
        if run_workloads:
            workloads = WorkloadControllers(self.registry, self._app.deletion)
            self._controllers["workload controllers"] = workloads.run
        self._run_kubelet = run_kubelet
        self._namespaces = NamespaceController(self.store, self._app.deletion)
        self._server: _Server | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._nodes = 0
        self._bootstrap()

    def _bootstrap(self) -> None:
        """Create the objects that every cluster has."""
        for name in _NAMESPACES:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name, value, description in _SYSTEM_CLASSES:
            self.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                    "description": description,
                }
            )
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {
                    "name": "kubernetes",
                    "labels": {"component": "apiserver", "provider": "kubernetes"},
                },
                "spec": {
                    "clusterIP": "10.96.0.1",
                    "ports": [{"name": "https", "port": 443, "targetPort": 6443}],
                },
            }
        )

    # ------------------------------------------------------------ running

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; raises UsageError if the address is not available."""
        listener = _listener(self._host, self._port)
        self._port = listener.getsockname()[1]
        self._app.begin_watches()
        config = uvicorn.Config(
            self._app,
            http="httptools",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=3600,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._tasks = [asyncio.create_task(self._server.serve(sockets=[listener]))]
        try:
            await self._server.listening.wait()
        except asyncio.CancelledError:
            # It can only be stopped once it has started, which takes no time.
            await self._server.listening.wait()
            await self.stop()
            raise
        self._tasks.append(_eternal("namespace controller", self._namespaces.run))
        if self._run_kubelet:
            self._tasks += [_eternal(name, run) for name, run in self._controllers.items()]

    async def stop(self) -> None:
        """End watches, connections and controllers."""
        if self._server is None:
            return
        self._server.should_exit = True
        self._server.force_exit = True
        self._app.end_watches()
        serving, *others = self._tasks
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await serving
        self._server = None

    @property
    def url(self) -> str:
        """The URL of the API."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._port

    def kubeconfig(self) -> str:
        """Return a kubeconfig for kubectl and schedulers."""
        name = "kubesched"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": self.url}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        return yaml.safe_dump(config, sort_keys=False)

    def write_kubeconfig(self, path: Path) -> None:
        """Write the kubeconfig to a file that only its owner can read."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(self.kubeconfig())

    # ------------------------------------------------------------ objects

    def create(self, obj: JsonObject) -> JsonObject:
        """Create an object as a POST would; return it. StatusError if it is refused."""
        resource = BY_KIND.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
        if resource is None:
            raise UsageError(f"there is no kind {obj.get('kind')!r} in {obj.get('apiVersion')!r}")
        own: JsonObject = without_nulls(msgspec.json.decode(encode(obj)))
        namespace = ""
        if resource.namespaced:
            namespace = str((own.get("metadata") or {}).get("namespace") or "default")
        version = self.registry.create(Where(resource, namespace), own)
        return {"kind": resource.kind, "apiVersion": resource.api_version, **version.obj}

    def create_all(self, objects: Iterable[JsonObject]) -> None:
        """Create many objects."""
        for obj in objects:
            self.create(obj)

    def add_nodes(self, count: int, template: NodeTemplate | None = None) -> list[str]:
        """Add nodes after those that were added before; return their names."""
        nodes = list((template or NodeTemplate()).nodes(count, start=self._nodes))
        for node in nodes:
            node["status"]["conditions"] = [ready_condition(self.registry.times.now())]
        self.create_all(nodes)
        self._nodes += count
        return [str(node["metadata"]["name"]) for node in nodes]


def _eternal(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
    """Start a task that must never end by itself; log it if it does."""

    async def guarded() -> None:
        try:
            # Called only now: the cluster may end before the task first runs.
            await work()
        except Exception:  # noqa: BLE001  the cluster goes on without it, and logs that
            _LOG.exception("the embedded %s stopped working", name)

    return asyncio.create_task(guarded(), name=name)


class _Server(uvicorn.Server):
    """A server among others in this process: it handles no signals."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and set the event that callers wait for."""
        await super().startup(sockets=sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the process's signal handlers alone."""
        yield


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is given.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"cannot listen on {host}:{port}: address already in use; "
                "choose another with --port"
            ) from None
        why = error.strerror or str(error)
        raise UsageError(f"cannot listen on {host}:{port}: {why.lower()}") from None
    return listener
