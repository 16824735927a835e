"""A cluster that never rests: what comes is like nothing that was there before, and goes again.

    pods        come, run and end; some are gated at first
    rollouts    a new version of an application, with labels, sizes, constraints, a ReplicaSet, a
                service and a disruption budget of its own, replaces the one before pod by pod
    claims      pods with devices, pods with volumes
    gangs       pods that are placed together or not at all
    misfits     pods that fit nowhere
    victims     a node full of pods that an urgent one preempts
    nodes       are replaced, under new names, with new labels, images and devices

All names are new, sizes and labels too, so that whatever a scheduler keeps by any of them must go
again. The number of pods and nodes is stable.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from kubesched.client.rest import MERGE_PATCH
from kubesched.errors import ClientError, KubeschedError, NotFoundError

from . import objects
from .bound_pods import BoundPods, Life
from .objects import JsonObject, Labels
from .traffic import Target, every

#: How long pods live, so that their number is stable.
POD_LIFE_S: Final = 30.0
MISFIT_LIFE_S: Final = 15.0
GATED_S: Final = 1.0
#: A pod that has no node after that is counted, and ended.
PATIENCE_S: Final = 60.0
NODE_REPLACED_EVERY_S: Final = 20.0
#: The share of each kind, in pods.
SHARES: Final = {
    "pod": 40,
    "rollout": 25,
    "devices": 10,
    "volume": 5,
    "gang": 10,
    "misfit": 5,
    "preemption": 5,
}
_REPLICAS: Final = 10
_GANG: Final = 4
_SLOTS: Final = 2
#: What a scheduler, or the API server, gives a finalizer to that a controller takes away.
_FINALIZED: Final = (objects.DEVICE_CLAIMS, objects.GROUPS)
#: How many pods each kind creates at once.
_PODS: Final = {"rollout": _REPLICAS, "gang": _GANG, "preemption": _SLOTS + 1}


@dataclass
class Application:
    """One version of an application, and its pods."""

    name: str
    labels: Labels
    #: what its pods have beside names and sizes
    spec: JsonObject
    #: its ReplicaSet, service and budget
    belongings: contextlib.AsyncExitStack
    lives: list[asyncio.Task[None]] = field(default_factory=list)


class Churn:
    """Pods, applications and nodes that come and go."""

    def __init__(
        self, target: Target, bound: BoundPods, *, nodes: int, apps: int, seed: int
    ) -> None:
        self._client = target.client
        self._counts = target.counts
        self._bound = bound
        self._rng = random.Random(seed)
        self._numbers = itertools.count()
        self._node_numbers = itertools.count()
        self._nodes: deque[str] = deque()
        self._apps: deque[Application] = deque()
        self._size = (nodes, apps)
        #: what is under way; ended with the churn
        self._under_way: set[asyncio.Task[Any]] = set()
        self._is_over = False

    async def prepare(self) -> None:
        """Create the nodes, and what all pods use."""
        selectors = [{"cel": {"expression": f'device.driver == "{objects.DRIVER}"'}}]
        gpu = {"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}
        await self._client.post(objects.DEVICE_CLASSES, gpu)
        urgent = {"metadata": {"name": objects.URGENT}, "value": 1000}
        await self._client.post(objects.PRIORITIES, urgent)
        for _ in range(self._size[0]):
            await self._add_node()

    async def settle(self) -> None:
        """Create the applications, and wait for their pods."""
        for _ in range(self._size[1]):
            self._apps.append(await self._deploy())
        async with asyncio.timeout(PATIENCE_S):
            while self._bound.count < _REPLICAS * self._size[1]:
                await self._bound.another()

    async def come(self, pods_per_second: float) -> None:
        """Start something new at a steady rate."""
        due = time.monotonic()
        kinds = list(SHARES)
        weights = [share / _PODS.get(kind, 1) for kind, share in SHARES.items()]
        while True:
            (kind,) = self._rng.choices(kinds, weights)
            self._start(self._guarded(kind))
            due += _PODS.get(kind, 1) / pods_per_second
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    def tasks(self, pods_per_second: float) -> list[Coroutine[None, None, None]]:
        """What runs all the time."""
        return [
            self.come(pods_per_second),
            every(NODE_REPLACED_EVERY_S, self._replace_node, self._counts),
        ]

    async def end(self) -> None:
        """End what is under way; the cluster goes with all that is in it."""
        self._is_over = True
        while self._under_way:
            for each in (doomed := list(self._under_way)):
                each.cancel()
            await asyncio.gather(*doomed, return_exceptions=True)

    # --- kinds ------------------------------------------------------------------------------

    async def _guarded(self, kind: str) -> None:
        """Do something; count it, and count what fails."""
        try:
            await getattr(self, f"_{kind}")()
        except (KubeschedError, OSError) as failed:
            self._counts[f"failures of {kind} ({type(failed).__name__})"] += 1
        else:
            self._counts[kind] += 1

    async def _pod(self) -> None:
        name = self._name("p")
        labels = {"app": name}
        more: JsonObject = {}
        if self._rng.random() < 0.2:
            more["topologySpreadConstraints"] = [objects.spread(labels, must=False)]
        if self._rng.random() < 0.1:
            more["affinity"] = objects.apart(labels, must=False)
        is_gated = self._rng.random() < 0.1
        if is_gated:
            more["schedulingGates"] = [{"name": f"example.com/{name}"}]
        body = objects.pod(name, self._rng, labels, **more)
        async with self._living(body, timed=not is_gated) as life:
            if is_gated:
                await asyncio.sleep(GATED_S)
                await self._patch(f"{objects.PODS}/{name}", {"spec": {"schedulingGates": None}})
            await self._run(name, life, POD_LIFE_S)
            await self._patch(f"{objects.PODS}/{name}/status", {"status": {"phase": "Succeeded"}})

    async def _rollout(self) -> None:
        """Replace an application by a new version, pod by pod."""
        if not self._apps:
            return  # all are being replaced
        old = self._apps.popleft()
        new = await self._deploy(replicas=0)
        for each in list(old.lives):
            new.lives.append(self._start(self._replica(new)))
            await asyncio.sleep(self._rng.uniform(0.1, 1.0))
            each.cancel()
        await asyncio.gather(*old.lives, return_exceptions=True)
        self._apps.append(new)
        await old.belongings.aclose()

    async def _devices(self) -> None:
        name = self._name("d")
        claims = [{"name": "c", "resourceClaimName": name}]
        body = objects.pod(name, self._rng, {"app": "devices"}, resourceClaims=claims)
        async with self._having(objects.DEVICE_CLAIMS, objects.device_claim(name, 1)) as path:
            try:
                async with self._living(body) as life:
                    await self._run(name, life, POD_LIFE_S)
            finally:  # what the controller of claims would do
                status = {"reservedFor": None, "allocation": None}
                await self._patch(f"{path}/status", {"status": status})

    async def _volume(self) -> None:
        name, bound = self._name("v"), {"status": {"phase": "Bound"}}
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        body = objects.pod(name, self._rng, {"app": "volumes"}, volumes=volumes)
        async with (
            self._having(objects.VOLUMES, objects.volume(name, name)) as volume,
            self._having(objects.VOLUME_CLAIMS, objects.volume_claim(name, name)) as claim,
        ):
            await self._patch(f"{volume}/status", bound)
            await self._patch(f"{claim}/status", bound)
            async with self._living(body) as life:
                await self._run(name, life, POD_LIFE_S)

    async def _gang(self) -> None:
        name = self._name("g")
        async with self._having(objects.GROUPS, objects.gang(name, _GANG)):
            members = [self._start(self._member(name, number)) for number in range(_GANG)]
            await asyncio.gather(*members)

    async def _member(self, gang: str, number: int) -> None:
        name = f"{gang}-{number}"
        group = {"podGroupName": gang}
        body = objects.pod(name, self._rng, {"app": gang}, schedulingGroup=group)
        async with self._living(body, timed=False) as life:
            await self._run(name, life, POD_LIFE_S)

    async def _misfit(self) -> None:
        name = self._name("m")
        selector = {f"example.com/{name}": "true"} if self._rng.random() < 0.5 else {}
        body = objects.pod(
            name, self._rng, {"app": name}, requests={"cpu": "64"}, nodeSelector=selector
        )
        async with self._living(body, timed=False):
            await asyncio.sleep(MISFIT_LIFE_S)

    async def _preemption(self) -> None:
        """Fill a node with pods, and create one that takes a victim's place."""
        number = next(self._node_numbers)
        arena = f"arena-{number}"
        slot = {"requests": {objects.SLOT: "1"}, "limits": {objects.SLOT: "1"}}
        there = {
            "tolerations": [{"key": objects.ARENA, "operator": "Equal", "value": arena}],
            "nodeSelector": {"kubernetes.io/hostname": arena},
        }
        async with contextlib.AsyncExitStack() as stack:
            node = objects.node(arena, number, arena=arena)
            await stack.enter_async_context(self._having(objects.NODES, node))
            for place in range(_SLOTS + 1):
                is_urgent = place == _SLOTS
                more: JsonObject = {"priorityClassName": objects.URGENT} if is_urgent else {}
                name, labels = f"{arena}-{place}", {"app": arena}
                body = objects.pod(name, self._rng, labels, **there, **slot, **more)
                life = await stack.enter_async_context(self._living(body, timed=not is_urgent))
                await self._until_bound(life)
            await asyncio.sleep(MISFIT_LIFE_S)

    # --- applications -----------------------------------------------------------------------

    async def _deploy(self, replicas: int = _REPLICAS) -> Application:
        name = self._name("app")
        labels = {"app": name, "pod-template-hash": name}
        spec: JsonObject = {}
        match self._rng.randrange(4):
            case 0:
                spec["topologySpreadConstraints"] = [objects.spread(labels, must=True)]
            case 1:
                spec["affinity"] = objects.apart(labels, must=True)
            case 2:
                spec["affinity"] = objects.apart(labels, must=False)
        app = Application(name, labels, spec, contextlib.AsyncExitStack())
        for collection, body in (
            (objects.REPLICA_SETS, objects.replica_set(name, labels)),
            (objects.SERVICES, objects.service(name, labels)),
            (objects.BUDGETS, objects.budget(name, labels)),
        ):
            await app.belongings.enter_async_context(self._having(collection, body))
        app.lives += [self._start(self._replica(app)) for _ in range(replicas)]
        return app

    async def _replica(self, app: Application) -> None:
        """One pod of an application, and its successors if its node goes."""
        while True:
            name = self._name(app.name)
            try:
                body = objects.pod(name, self._rng, app.labels, **app.spec)
                async with self._living(body) as life:
                    await self._run(name, life, None)
            except (KubeschedError, OSError) as failed:
                self._counts[f"failures of replica ({type(failed).__name__})"] += 1
                await asyncio.sleep(1.0)

    # --- pods -------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _living(self, body: JsonObject, *, timed: bool = True) -> AsyncIterator[Life]:
        """Create a pod, and delete it at the end."""
        name = body["metadata"]["name"]
        life = self._bound.lives[name] = Life(timed=timed)
        try:
            async with self._having(objects.PODS, body):
                self._counts["pods created"] += 1
                yield life
        finally:
            del self._bound.lives[name]

    async def _run(self, name: str, life: Life, seconds: float | None) -> None:
        """Let a pod run as soon as it has a node, for some time or until it is evicted."""
        await self._until_bound(life)
        await self._patch(f"{objects.PODS}/{name}/status", {"status": {"phase": "Running"}})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await life.over.wait()

    async def _until_bound(self, life: Life) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await life.bound.wait()
        except TimeoutError:
            self._counts["pods without a node for a minute"] += 1

    # --- nodes ------------------------------------------------------------------------------

    async def _replace_node(self) -> None:
        await self._add_node()
        gone = self._nodes.popleft()
        await self._delete(f"{objects.NODES}/{gone}")
        await self._delete(f"{objects.SLICES}/slice-{gone}")
        for life in self._bound.on_node(gone):
            life.over.set()  # as the controllers of a cluster would see to it
        self._counts["nodes replaced"] += 1

    async def _add_node(self) -> None:
        number = next(self._node_numbers)
        name = f"node-{number}"
        await self._client.post(objects.NODES, objects.node(name, number))
        self._nodes.append(name)
        await self._client.post(objects.SLICES, objects.resource_slice(name))

    # --- requests ---------------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    def _name(self, prefix: str) -> str:
        return f"{prefix}-{next(self._numbers)}"

    @contextlib.asynccontextmanager
    async def _having(self, collection: str, body: JsonObject) -> AsyncIterator[str]:
        """Create an object, give its path, and delete it at the end."""
        path = f"{collection}/{body['metadata']['name']}"
        try:
            await self._client.post(collection, body)
            yield path
        finally:
            await self._delete(path)

    async def _patch(self, path: str, body: JsonObject) -> None:
        with contextlib.suppress(NotFoundError):
            await self._client.patch(path, body, content_type=MERGE_PATCH)

    async def _delete(self, path: str) -> None:
        """Delete an object, finalizers or not, however often that takes: none must stay."""
        options = {"gracePeriodSeconds": 0}
        while not self._is_over:
            try:
                await self._client.delete(path, options)
                if not path.startswith(_FINALIZED):
                    return
                await self._client.patch(path, {"metadata": {"finalizers": None}})
            except NotFoundError:
                return
            except (ClientError, OSError):
                self._counts["deletions repeated"] += 1
                await asyncio.sleep(1.0)
