"""An engine at work without a server: a world of objects that answers its calls, sometimes badly.

    random things happen ──> objects ──> handlers ──> engine, recorded ──> calls ──> objects

Answers come a few turns of the loop later, as they would over a network. Nothing waits for a clock,
so thousands of decisions take a second.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from kubesched.api.core import Node, Pod, PodCondition
from kubesched.api.scheduling import GroupCondition, PodGroup
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.clock import VirtualClock
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.cluster.storage import ClaimKey
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ClientError, ConflictError, NotFoundError
from kubesched.framework.status import unschedulable
from kubesched.metrics.recorder import Metrics
from kubesched.plugins.in_tree import IN_TREE
from kubesched.recording.journal import Journal
from kubesched.recording.reader import Recording
from kubesched.recording.writer import Redactor, Writer
from kubesched.scheduler.api_calls import ApiCalls
from kubesched.scheduler.engine import Engine, EngineOptions
from kubesched.scheduler.extenders import ExtenderVerdict, PodsOnNode, Victims
from kubesched.scheduler.handlers import PodHandler, state_handlers
from kubesched.scheduler.observed_pods import ObservedPodHandler
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.recorders import Recorders
from kubesched.simulate.claims import SimulatedClaims

GATES = FeatureGates.of()
PodKey = tuple[str, str]


class Lab:
    """A world, and an engine in it whose journal is on."""

    def __init__(
        self,
        path: Path,
        rng: random.Random,
        *,
        config: SchedulerConfiguration | None = None,
        max_bytes: int = 1 << 30,
        files: int = 4,
        redactor: Redactor | None = None,
        trouble: float = 0.1,
        gates: FeatureGates = GATES,
    ) -> None:
        self.rng = rng
        #: how often a call fails
        self.trouble = trouble
        #: any time but the epoch
        self.clock = VirtualClock(1_700_000_000.0)
        self._writer = Writer(path, max_bytes=max_bytes, files=files, redactor=redactor)
        self.journal = Journal(self._writer, clock=self.clock)
        self.cluster = self.journal.make_cluster(RequestRules.of(gates))
        device_claims = SimulatedClaims(self.cluster)
        self.pods: dict[PodKey, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.claims: dict[ClaimKey, PersistentVolumeClaim] = {}
        self._version = 0
        self._later: list[asyncio.Task[None]] = []
        outside = Outside(
            api_calls=cast("ApiCalls", self),
            volume_writer=self,
            claim_writer=device_claims,
            recorders=Recorders({}),
            find_pod=lambda namespace, name: self.pods.get((namespace, name)),
            make_extenders=lambda config: RandomExtenders(self) if config.extenders else None,
            clock=self.clock,
            metrics=Metrics(gates),
            observer=self.journal,
        )
        self.engine = Engine(
            config or SchedulerConfiguration.default(gates),
            gates,
            self.cluster,
            outside,
            registry=IN_TREE,
            options=EngineOptions(seed=rng.randrange(1000)),
        )
        device_claims.attach(self.engine.queue)
        self._make_handlers()

    def _make_handlers(self) -> None:
        engine, queue = self.engine, self.engine.queue
        pods = PodHandler(
            self.cluster,
            queue,
            nominations=engine.nominations,
            waiting=engine.waiting,
            is_ours=engine.is_ours,
            on_unreadable=engine.failures.refuse,
        )
        self.on_pod = ObservedPodHandler(pods, self.journal)
        #: kind → its handler
        self.on = state_handlers(self.cluster, queue, engine.nominations)

    # --- running ----------------------------------------------------------------------------

    async def run(self, script: Callable[[Lab], Any]) -> None:
        """Run the engine while a script makes things happen, and until nothing is under way."""
        with self.journal:
            self.engine.failures.begin()
            loop = asyncio.create_task(self.engine.scheduler.run())
            try:
                await script(self)
                await self.settle()
            finally:
                loop.cancel()
                await asyncio.gather(loop, return_exceptions=True)
                await self.engine.bindings.drain(1.0)
                await self.engine.evictions.drain(1.0)
                await self.engine.reports.drain(1.0)
                for task in self._later:
                    task.cancel()
                await asyncio.gather(*self._later, return_exceptions=True)
        self.cluster.validate()
        assert not self._writer.failure

    async def turns(self, count: int) -> None:
        """Let everybody have the loop for a while."""
        for _ in range(count):
            await asyncio.sleep(0)

    async def settle(self) -> None:
        """Let pods come back from their backoff, and what is under way end."""
        for _ in range(3):
            await self.turns(60)
            self.clock.advance(11.0)
            self.engine.queue.flush_backoff()
        await self.turns(100)

    def soon(self, act: Callable[[], None]) -> None:
        """Let something happen a few turns later."""

        async def wait() -> None:
            await self.turns(self.rng.randrange(1, 12))
            act()

        self._later.append(asyncio.create_task(wait()))

    def version(self) -> str:
        self._version += 1
        return str(self._version)

    def next_file(self) -> None:
        """Let the recording go on in another file, as if this one were full."""
        self._writer.full = True

    # --- the world --------------------------------------------------------------------------

    def create_pod(self, pod: Pod) -> None:
        pod = _with_version(pod, self.version())
        self.pods[_key(pod)] = pod
        self.on_pod.on_add(pod, initial=False)

    def update_pod(self, key: PodKey, change: Callable[[Pod], Pod]) -> None:
        old = self.pods.get(key)
        if old is not None:
            new = self.pods[key] = _with_version(change(old), self.version())
            self.on_pod.on_update(old, new)

    def delete_pod(self, key: PodKey) -> None:
        gone = self.pods.pop(key, None)
        if gone is not None:
            self.on_pod.on_delete(gone)

    def put_node(self, node: Node) -> None:
        old = self.nodes.get(node.metadata.name)
        self.nodes[node.metadata.name] = node
        if old is None:
            self.on["Node"].on_add(node, initial=False)
        else:
            self.on["Node"].on_update(old, node)

    def delete_node(self, name: str) -> None:
        self.on["Node"].on_delete(self.nodes.pop(name))

    def put_volume(self, volume: PersistentVolume) -> PersistentVolume:
        volume = _with_version(volume, self.version())
        old = self.volumes.get(volume.metadata.name)
        self.volumes[volume.metadata.name] = volume
        _tell(self.on["PersistentVolume"], old, volume)
        return volume

    def put_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        claim = _with_version(claim, self.version())
        old = self.claims.get(_key(claim))
        self.claims[_key(claim)] = claim
        _tell(self.on["PersistentVolumeClaim"], old, claim)
        return claim

    def put(self, obj: Any) -> None:
        """Put an object of any other kind."""
        self.on[type(obj).__name__].on_add(obj, initial=False)

    # --- calls of the engine ----------------------------------------------------------------

    async def _answer(self, what: str) -> None:
        await self.turns(self.rng.randrange(6))
        if self.rng.random() < self.trouble:
            raise ClientError(f"{what}: bad luck")

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        await self._answer("bind")
        key = _key(pod.pod)
        newest = self.pods.get(key)
        if newest is None or newest.metadata.uid != pod.uid:
            raise NotFoundError("gone", code=404)

        def bound(old: Pod) -> Pod:
            return replace(old, spec=replace(old.spec, node_name=node_name))

        self.soon(lambda: self.update_pod(key, bound))

    async def nominate(self, pod: Pod, node_name: str) -> None:
        await self._answer("nominate")
        self.soon(lambda: self.update_pod(_key(pod), lambda old: _nominated(old, node_name)))

    async def report_group(self, group: PodGroup, condition: GroupCondition) -> None:
        await self._answer("report group")

    async def mark_as_preempted(self, pod: Pod, **_told: Any) -> None:
        await self._answer("mark")

        def marked(old: Pod) -> Pod:
            condition = PodCondition(
                type="DisruptionTarget", status="True", reason="PreemptionByScheduler"
            )
            return replace(old, status=replace(old.status, conditions=(condition,)))

        self.update_pod(_key(pod), marked)

    async def delete(self, pod: Pod, **_told: Any) -> None:
        await self._answer("delete")
        key = _key(pod)

        def going(old: Pod) -> Pod:
            meta = replace(old.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            return replace(old, metadata=meta)

        self.update_pod(key, going)
        self.soon(lambda: self.delete_pod(key))

    async def report_unschedulable(
        self, pod: Pod, *, reason: str, message: str, nominated_node: str | None
    ) -> None:
        await self._answer("report")

        def told(old: Pod) -> Pod:
            condition = PodCondition(
                type="PodScheduled", status="False", reason=reason, message=message
            )
            status = replace(old.status, conditions=(condition,))
            if nominated_node is not None:
                status = replace(status, nominated_node_name=nominated_node)
            return replace(old, status=status)

        self.update_pod(_key(pod), told)

    async def write_volume(self, volume: PersistentVolume) -> PersistentVolume:
        await self._answer("write volume")
        known = self.volumes.get(volume.metadata.name)
        if known is None or known.metadata.resource_version != volume.metadata.resource_version:
            raise ConflictError("changed", code=409)
        written = self.put_volume(volume)
        reference = volume.spec.claim_ref
        if reference is not None:
            self.soon(lambda: self._bind_claim(reference.namespace, reference.name, volume))
        return written

    async def write_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        await self._answer("write claim")
        known = self.claims.get(_key(claim))
        if known is None or known.metadata.resource_version != claim.metadata.resource_version:
            raise ConflictError("changed", code=409)
        return self.put_claim(claim)

    def _bind_claim(self, namespace: str, name: str, volume: PersistentVolume) -> None:
        claim = self.claims.get((namespace, name))
        if claim is not None:
            annotations = {
                **(claim.metadata.annotations or {}),
                "pv.kubernetes.io/bind-completed": "yes",
            }
            self.put_claim(
                replace(
                    claim,
                    metadata=replace(claim.metadata, annotations=annotations),
                    spec=replace(claim.spec, volume_name=volume.metadata.name),
                    status=replace(claim.status, phase="Bound"),
                )
            )

    async def poll(
        self,
        check: Callable[[], bool],
        *,
        claims: Collection[ClaimKey],
        timeout_s: float,
    ) -> bool:
        for _ in range(30):
            if check():
                return True
            await asyncio.sleep(0)
        return False


class RandomExtenders:
    """Extenders that take their time, and say anything."""

    has_filters = has_prioritizers = has_preemptors = True

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    async def _think(self) -> None:
        await self._lab.turns(self._lab.rng.randrange(8))
        if self._lab.rng.random() < self._lab.trouble:
            raise ClientError("the extender is out")

    async def filter(self, pod: Pod, node_names: Sequence[str]) -> ExtenderVerdict:
        await self._think()
        kept = [name for name in node_names if self._lab.rng.random() < 0.7]
        why = unschedulable("the extender does not like it")
        return ExtenderVerdict(kept, {name: why for name in node_names if name not in kept})

    async def prioritize(self, pod: Pod, node_names: Sequence[str]) -> dict[str, int]:
        await self._think()
        return {name: self._lab.rng.randrange(100) for name in node_names}

    async def preempt(
        self, pod: Pod, candidates: Mapping[str, Victims], *, pods_on: PodsOnNode
    ) -> dict[str, Victims]:
        await self._think()
        return {name: each for name, each in candidates.items() if self._lab.rng.random() < 0.7}

    async def bind(self, pod: Pod, node_name: str) -> bool:
        return False


def _key(obj: Pod | PersistentVolumeClaim) -> tuple[str, str]:
    return obj.metadata.namespace, obj.metadata.name


def _with_version(obj: Any, version: str) -> Any:
    return replace(obj, metadata=replace(obj.metadata, resource_version=version))


def _nominated(pod: Pod, node_name: str) -> Pod:
    return replace(pod, status=replace(pod.status, nominated_node_name=node_name))


def _tell(handler: Any, old: Any, new: Any) -> None:
    if old is None:
        handler.on_add(new, initial=False)
    else:
        handler.on_update(old, new)


def record(path: Path, script: Callable[[Lab], Any], *, seed: int = 0, **options: Any) -> Recording:
    """Record what a script makes happen, and open the recording."""
    lab = Lab(path, random.Random(seed), **options)
    asyncio.run(lab.run(script))
    return Recording.open(path)
