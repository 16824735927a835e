"""A scheduler that decides nothing: each pod goes to the next node. It shows the upper limit.

    python -m kubesched.bench.null_scheduler --kubeconfig FILE [--events] [--no-watch]

    pods without a node ──> queue ──> workers: evict pods of lower priority from the next node,
                                               PATCH claims, POST binding, an event if asked for

The nodes are listed before the pods, so that a target is only a lookup. What remains is the cost of
a binding in the API server and of a request in our client.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from kubesched.bench import programs
from kubesched.bench.null_claims import NullClaims
from kubesched.bench.null_events import event_of
from kubesched.bench.null_evictions import NullEvictions
from kubesched.bench.pod_tracker import SeenMeta, SeenPod
from kubesched.client import kubeconfig
from kubesched.client.access import ClusterAccess
from kubesched.client.informer import Informer
from kubesched.client.resources import EVENTS, NODES, PODS
from kubesched.client.rest import ApiClient
from kubesched.errors import ApiError, ClientError

CONNECTIONS = 64
PENDING = "spec.nodeName="

_log = logging.getLogger(__name__)


class SeenNode(msgspec.Struct, frozen=True, gc=False):
    """A node; only its existence matters."""

    metadata: SeenMeta


class Targets:
    """Nodes in turn."""

    def __init__(self, nodes: Callable[[], list[str]]) -> None:
        self._nodes = nodes
        self._known: list[str] = []
        self._next = itertools.count()

    def forget(self) -> None:
        """Read the nodes again before the next one is returned."""
        self._known = []

    def take(self) -> str | None:
        """The next node; None if there is none."""
        if not self._known:
            self._known = sorted(self._nodes())
        if not self._known:
            return None
        return self._known[next(self._next) % len(self._known)]


class _NodeHandler:
    def __init__(self, targets: Targets) -> None:
        self._targets = targets

    def on_add(self, obj: SeenNode, initial: bool) -> None:  # noqa: ARG002  a handler's signature
        self._targets.forget()

    def on_update(self, old: SeenNode, new: SeenNode) -> None:
        pass

    def on_delete(self, obj: SeenNode) -> None:  # noqa: ARG002  a handler's signature
        self._targets.forget()


class _PodHandler:
    def __init__(self, queue: asyncio.Queue[SeenPod]) -> None:
        self._queue = queue

    def on_add(self, obj: SeenPod, initial: bool) -> None:  # noqa: ARG002  a handler's signature
        if obj.is_ready:
            self._queue.put_nowait(obj)

    def on_update(self, old: SeenPod, new: SeenPod) -> None:
        if new.is_ready and not old.is_ready:
            self._queue.put_nowait(new)

    def on_delete(self, obj: SeenPod) -> None:
        pass


def binding_of(pod: SeenPod, node_name: str) -> bytes:
    """The Binding of a pod to a node."""
    meta = pod.metadata
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"kind": "Node", "name": node_name},
        }
    )


class Binder:
    """Binds pods as they come, many at once."""

    def __init__(
        self,
        client: ApiClient,
        queue: asyncio.Queue[SeenPod],
        targets: Targets,
        *,
        claims: NullClaims,
        evictions: NullEvictions,
        events: bool,
    ) -> None:
        self._client = client
        self._claims = claims
        self._evictions = evictions
        self._queue = queue
        self._targets = targets
        self._events = events

    async def run(self) -> None:
        """Bind for ever."""
        while True:
            pod = await self._queue.get()
            node_name = self._targets.take()
            if node_name is None:
                await asyncio.sleep(0.01)
                self._queue.put_nowait(pod)
                continue
            try:
                await self._bind(pod, node_name)
            except (ApiError, ClientError) as failed:
                _log.warning("%s", failed)

    async def _bind(self, pod: SeenPod, node_name: str) -> None:
        meta = pod.metadata
        await self._evictions.make_room(pod, node_name)
        if pod.spec.resource_claims:
            await self._claims.write(pod, node_name)
        path = PODS.item(meta.name, namespace=meta.namespace, subresource="binding")
        await self._client.post(path, binding_of(pod, node_name))
        if self._events:
            note = f"Successfully assigned {meta.namespace}/{meta.name} to {node_name}"
            event = event_of(pod, reason="Scheduled", action="Binding", note=note)
            await self._client.post(EVENTS.collection(meta.namespace), event)


async def _pending(client: ApiClient) -> AsyncIterator[SeenPod]:
    async for page in client.list_pages(PODS.collection(), SeenPod, field_selector=PENDING):
        for pod in page.items:
            yield pod


class Schedule:
    """Reads nodes and pods and binds the ones to the others, until it is cancelled."""

    def __init__(
        self,
        access: ClusterAccess,
        *,
        qps: float = 0.0,
        burst: int = 1,
        events: bool = False,
        watch: bool = True,
    ) -> None:
        self._client = ApiClient(access, qps=qps, burst=burst, max_connections=CONNECTIONS)
        self._events = events
        self._watch = watch
        self._queue: asyncio.Queue[SeenPod] = asyncio.Queue()

    async def run(self) -> None:
        """Bind for ever."""
        async with self._client as client, asyncio.TaskGroup() as tasks:
            targets = Targets(lambda: [name for _, name in nodes.objects])
            nodes = Informer(client, NODES, SeenNode, handler=_NodeHandler(targets))
            tasks.create_task(nodes.run())
            claims = NullClaims(client)
            tasks.create_task(claims.informer.run())
            await nodes.synced.wait()
            await claims.informer.synced.wait()
            if self._watch:
                handler = _PodHandler(self._queue)
                pods = Informer(client, PODS, SeenPod, handler=handler, field_selector=PENDING)
                tasks.create_task(pods.run())
            else:
                async for pod in _pending(client):
                    self._queue.put_nowait(pod)
            binder = Binder(
                client,
                self._queue,
                targets,
                claims=claims,
                evictions=NullEvictions(client, events=self._events),
                events=self._events,
            )
            for _ in range(CONNECTIONS):
                tasks.create_task(binder.run())


async def _schedule(flags: argparse.Namespace) -> None:
    await Schedule(
        kubeconfig.load(Path(flags.kubeconfig)),
        qps=flags.qps,
        burst=flags.burst,
        events=flags.events,
        watch=flags.watch,
    ).run()


def main() -> None:
    """Run until a signal ends it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--qps", type=float, default=0.0)
    parser.add_argument("--burst", type=int, default=1)
    parser.add_argument("--events", action="store_true")
    parser.add_argument("--no-watch", dest="watch", action="store_false")
    programs.run(_schedule(parser.parse_args()))


if __name__ == "__main__":
    main()
