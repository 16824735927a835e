"""What happens around the scheduler: pods arrive, run and end; nodes come, go and change.

    Arrivals    pods of some applications at a rate, of which one is rolled out anew each second
    Kubelets    bound pods run, and end; victims terminate
    NodeChurn   nodes leave with their pods, join, are relabelled, cordoned, resized; heartbeats

All of it becomes JSON events of the server. Its own CPU time is measured, to be subtracted.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from benchmarks.large_cluster import objects
from benchmarks.large_cluster.objects import PodText
from benchmarks.large_cluster.server import MemoryServer
from msgspec.structs import replace

from kubesched.api.core import Node, Pod, PodCondition
from kubesched.cluster.cluster import Cluster
from kubesched.scheduler.engine import Engine

#: How long a pod is started, runs, and terminates.
START_S, LIFE_S, TERMINATION_S = 0.2, 10.0, 1.0
#: How often a kubelet reports the status of its node although nothing changed.
HEARTBEAT_S = 300.0
TICK_S = 0.005
#: Applications whose pods arrive.
ARRIVING_APPS = 500

_encode = msgspec.json.Encoder().encode
ADDED, MODIFIED, DELETED = b"ADDED", b"MODIFIED", b"DELETED"


class OwnTime:
    """The CPU time of the surroundings."""

    def __init__(self) -> None:
        self.cpu_s = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        started = time.thread_time()
        try:
            yield
        finally:
            self.cpu_s += time.thread_time() - started


class Kubelets:
    """Carries out what the scheduler writes, and runs pods."""

    def __init__(
        self,
        server: MemoryServer,
        find_pod: Callable[[str, str], Pod | None],
        own: OwnTime,
    ) -> None:
        self._pods = server.feeds["Pod"]
        self._find_pod = find_pod
        self._own = own
        self._version = 1
        self.preempted = 0
        #: name → when the pod was created, of pods that are not bound yet
        self.created_at_s: dict[str, float] = {}
        self.latencies_s: list[float] = []

    def bind(self, namespace: str, name: str, node_name: str) -> None:
        created_at_s = self.created_at_s.pop(name, None)
        if created_at_s is not None:
            self.latencies_s.append(asyncio.get_running_loop().time() - created_at_s)
        with self._own.counted():
            old = self._find_pod(namespace, name)
            if old is not None:
                self._send(MODIFIED, replace(old, spec=replace(old.spec, node_name=node_name)))
        loop = asyncio.get_running_loop()
        loop.call_later(START_S, self._run, namespace, name)
        loop.call_later(LIFE_S, self.end, namespace, name)

    def _run(self, namespace: str, name: str) -> None:
        with self._own.counted():
            old = self._find_pod(namespace, name)
            if old is not None:
                status = replace(old.status, phase="Running", nominated_node_name="")
                self._send(MODIFIED, replace(old, status=status))

    def end(self, namespace: str, name: str) -> None:
        with self._own.counted():
            old = self._find_pod(namespace, name)
            if old is not None:
                self._send(DELETED, old)

    def patch_status(self, namespace: str, name: str, status: dict[str, Any]) -> None:
        with self._own.counted():
            old = self._find_pod(namespace, name)
            if old is None:
                return
            new = old.status
            if "conditions" in status:
                written = msgspec.convert(status["conditions"], tuple[PodCondition, ...])
                types = {each.type for each in written}
                left = [each for each in new.conditions if each.type not in types]
                new = replace(new, conditions=(*left, *written))
            if "nominatedNodeName" in status:
                new = replace(new, nominated_node_name=status["nominatedNodeName"] or "")
            self._send(MODIFIED, replace(old, status=new))

    def delete(self, namespace: str, name: str) -> None:
        self.preempted += 1
        with self._own.counted():
            old = self._find_pod(namespace, name)
            if old is not None:
                meta = replace(old.metadata, deletion_timestamp=objects.HEARTBEAT)
                self._send(MODIFIED, replace(old, metadata=meta))
        asyncio.get_running_loop().call_later(TERMINATION_S, self.end, namespace, name)

    def _send(self, event: bytes, pod: Pod) -> None:
        self._version += 1
        meta = replace(pod.metadata, resource_version=str(self._version))
        self._pods.send(event, _encode(replace(pod, metadata=meta)))


class Arrivals:
    """Pods arrive at a rate, whether or not those before them are bound."""

    def __init__(
        self, server: MemoryServer, kubelets: Kubelets, own: OwnTime, rng: random.Random
    ) -> None:
        self._pods = server.feeds["Pod"]
        self._kubelets = kubelets
        self._own = own
        self._rng = rng
        self._texts = [PodText(app) for app in range(ARRIVING_APPS)]
        self._revision = 0
        self.count = 0

    async def run(self, per_second: float) -> None:
        loop, rolled_out_s = asyncio.get_running_loop(), 0.0
        started = loop.time()
        while True:
            passed_s = loop.time() - started
            with self._own.counted():
                while self.count < passed_s * per_second:
                    self._arrive()
                if passed_s - rolled_out_s >= 1.0:
                    rolled_out_s = passed_s
                    self._roll_out()
            await asyncio.sleep(TICK_S)

    def _arrive(self) -> None:
        self.count += 1
        name = f"pod-{self.count}"
        text = self._rng.choice(self._texts)
        self._kubelets.created_at_s[name] = asyncio.get_running_loop().time()
        self._pods.send(ADDED, text.pod(self.count, name=name))

    def _roll_out(self) -> None:
        self._revision += 1
        app = self._rng.randrange(ARRIVING_APPS)
        self._texts[app] = PodText(app, self._revision)


class NodeChurn:
    """Nodes leave, join and change."""

    def __init__(
        self, server: MemoryServer, engine: Engine, kubelets: Kubelets, own: OwnTime, seed: int
    ) -> None:
        self._nodes, self._csi_nodes = server.feeds["Node"], server.feeds["CSINode"]
        self._cluster: Cluster = engine.cluster
        self._kubelets = kubelets
        self._own = own
        self._rng = random.Random(seed)  # noqa: S311 (repeatable)
        self._names = list(engine.cluster.table.names())
        self._version = 1
        self._joined = 0
        self.count = 0
        self.heartbeats = 0

    async def run(self, per_second: float) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        beats_per_second = len(self._names) / HEARTBEAT_S
        while True:
            passed_s = loop.time() - started
            with self._own.counted():
                while self.count < passed_s * per_second:
                    self.count += 1
                    self._rng.choices(self._changes, self._weights)[0](self)
                while self.heartbeats < passed_s * beats_per_second:
                    self.heartbeats += 1
                    self._change(lambda node: node)
            await asyncio.sleep(TICK_S)

    def _leave(self) -> None:
        node = self._pick()
        self._names.remove(node.metadata.name)
        self._nodes.send(DELETED, _encode(node))
        self._csi_nodes.send(DELETED, objects.csi_node(node.metadata.name))
        row = self._cluster.table.row_of(node.metadata.name)
        for pod in list(self._cluster.table.pods[row].values()) if row is not None else ():
            meta = pod.pod.metadata
            self._kubelets.end(meta.namespace, meta.name)

    def _join(self) -> None:
        self._joined += 1
        name = f"joined-{self._joined}"
        made = objects.node(self._rng.randrange(10_000), name=name, is_full=False)
        self._nodes.send(ADDED, _encode(made))
        self._csi_nodes.send(ADDED, objects.csi_node(name))
        asyncio.get_running_loop().call_later(1.0, self._names.append, name)

    def _relabel(self) -> None:
        def change(node: Node) -> Node:
            labels = {**(node.metadata.labels or {}), objects.POOL: f"pool-{self.count % 20}"}
            return replace(node, metadata=replace(node.metadata, labels=labels))

        self._change(change)

    def _label_anew(self) -> None:
        def change(node: Node) -> Node:
            labels = {**(node.metadata.labels or {}), "example.com/revision": str(self.count)}
            return replace(node, metadata=replace(node.metadata, labels=labels))

        self._change(change)

    def _resize(self) -> None:
        def change(node: Node) -> Node:
            room = {**(node.status.allocatable or {}), "cpu": f"{28_000 + self.count % 4000}m"}
            return replace(node, status=replace(node.status, allocatable=room))

        self._change(change)

    def _cordon(self) -> None:
        def change(node: Node) -> Node:
            is_closed = not node.spec.unschedulable
            return replace(node, spec=replace(node.spec, unschedulable=is_closed))

        self._change(change)

    _changes = (_leave, _join, _relabel, _label_anew, _resize, _cordon)
    _weights = (0.3, 0.3, 0.1, 0.1, 0.1, 0.1)

    def _change(self, change: Callable[[Node], Node]) -> None:
        node = change(self._pick())
        self._version += 1
        meta = replace(node.metadata, resource_version=f"n{self._version}")
        self._nodes.send(MODIFIED, _encode(replace(node, metadata=meta)))

    def _pick(self) -> Node:
        """Return a node that is there, and not one that is full."""
        while True:
            row = self._cluster.table.row_of(self._rng.choice(self._names))
            node = None if row is None else self._cluster.table.node_at(row)
            if node is not None and not _is_full(node):
                return node


def _is_full(node: Node) -> bool:
    return (node.metadata.labels or {}).get(objects.POOL) == "full"
