"""Runs a simulation on the real engine, in virtual time.

    snapshot, events ──> SimulatedCluster <──> Engine: queue, cycles, bindings ──> Observations

The engine does all that a scheduler does; only the clock and the cluster around it are simulated.
The same events and seed give the same result.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.clock import VirtualClock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import RequestRules
from kubesched.config.extenders import with_extender_effects
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.metrics.recorder import Metrics
from kubesched.plugins.in_tree import IN_TREE
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.engine import Engine, EngineOptions
from kubesched.scheduler.outside import Outside
from kubesched.scheduler.scheduler import PARKED_FLUSH_PERIOD_S
from kubesched.simulate.claims import SimulatedClaims
from kubesched.simulate.observing import Observations
from kubesched.simulate.placing import in_order
from kubesched.simulate.report import UsageSample, Utilisation
from kubesched.simulate.simulated_cluster import (
    Delays,
    SimulatedCluster,
    SimulationRecorder,
    unplaced,
)
from kubesched.simulate.timed_events import TimedEvent
from kubesched.simulate.virtual_time import run_in_virtual_time
from kubesched.simulate.volumes import SimulatedVolumes
from kubesched.snapshot.contents import Snapshot
from kubesched.snapshot.filling import Filled, fill
from kubesched.snapshot.world import is_bound_to_its_node

#: Start time for clusters without timestamps.
DEFAULT_START = "2026-01-01T00:00:00Z"
#: How long pods whose attempts failed with errors are retried when nothing else will happen.
PATIENCE_S = 600.0
READING_DELAY_S = 0.001
#: How often progress is reported, in virtual time.
PROGRESS_PERIOD_S = 60.0


def _tell_nothing(seconds: float, waiting: int) -> None:
    """Tell nothing of the progress."""


class Conditions(Struct, frozen=True):
    """The input of a simulation."""

    snapshot: Snapshot
    config: SchedulerConfiguration
    gates: FeatureGates
    registry: Registry = IN_TREE
    seed: int = 0
    delays: Delays = Delays()
    #: whether all pods that may move are placed again, not only pending ones
    everything: bool = False
    #: whether equivalent pods wait in line (lines.py): faster, but approximate
    in_line: bool = False
    #: end time; None: when nothing is left to happen
    until_s: float | None = None
    #: seconds between samples; 0 takes only the last
    reading_period_s: float = 0.0
    #: told of the virtual time that has passed, and how many pods wait
    progress: Callable[[float, int], None] = _tell_nothing


class Played(Struct, frozen=True):
    """The result of a simulation."""

    cluster: Cluster
    #: all pods at the end
    pods: tuple[Pod, ...]
    #: names of pods that were pending at the start
    pending_at_start: frozenset[str]
    observations: Observations
    seconds: float
    notes: tuple[str, ...]


def play(conditions: Conditions, happenings: Sequence[TimedEvent] = ()) -> Played:
    """Run the events in order of time, and return the result."""
    clock = VirtualClock(_start_s(conditions.snapshot))
    # Existing objects stay alive throughout: exclude them from garbage collection.
    gc.freeze()
    try:
        return run_in_virtual_time(clock, _Play(conditions, clock).run(happenings))
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    finally:
        gc.unfreeze()


def _start_s(snapshot: Snapshot) -> float:
    """Return a time after everything in a snapshot, in seconds since the epoch."""
    times = [each.metadata.creation_timestamp or "" for each in snapshot.pods]
    times += [each.status.start_time or "" for each in snapshot.pods]
    times += [each.metadata.creation_timestamp or "" for each in snapshot.nodes]
    latest = max(times, default="") or DEFAULT_START
    with suppress(ValueError):
        return datetime.fromisoformat(latest).timestamp() // 60 * 60 + 60
    return datetime.fromisoformat(DEFAULT_START).timestamp()


class _Play:
    """One simulation."""

    def __init__(self, conditions: Conditions, clock: VirtualClock) -> None:
        self._conditions = conditions
        self._clock = clock
        self._start_s = clock.time()

    async def run(self, happenings: Sequence[TimedEvent]) -> Played:
        """Run it."""
        conditions = self._conditions
        cluster = Cluster(RequestRules.of(conditions.gates))
        filled = fill(cluster, conditions.snapshot)
        pending = self._to_be_placed(cluster, filled)
        observations = Observations(self._clock)
        stage = SimulatedCluster(
            cluster,
            filled,
            clock=self._clock,
            delays=conditions.delays,
            observations=observations,
            in_line=conditions.in_line,
        )
        audience = SimulationRecorder(stage, observations)
        engine = self._engine(cluster, stage, audience)
        stage.attach(engine)
        engine.queue.is_futile = stage.futility
        stage.futility.on_skip = audience.stirred.set
        engine.failures.begin()
        # If the scheduler fails, so does the simulation.
        async with asyncio.TaskGroup() as background:
            work = [
                background.create_task(engine.scheduler.run()),
                background.create_task(_flush(engine.queue, self._clock, audience.stirred)),
                background.create_task(self._read(cluster, observations)),
                background.create_task(self._tell(observations)),
            ]
            for pod in pending:
                stage.create(pod)
            await self._all(happenings, stage, engine)
            observations.readings.append(self._reading(cluster, observations))
            for task in work:
                task.cancel()
        return Played(
            cluster=cluster,
            pods=tuple(stage.pods.values()),
            pending_at_start=frozenset(_name(pod) for pod in pending),
            observations=observations,
            seconds=self._now_s(),
            notes=tuple(self._notes(filled, stage)),
        )

    def _now_s(self) -> float:
        return self._clock.time() - self._start_s

    def _to_be_placed(self, cluster: Cluster, filled: Filled) -> list[Pod]:
        """Return the pods to be placed; remove those from their nodes that are placed again."""
        pods = list(filled.pending.values())
        if self._conditions.everything:
            for key, pod in list(filled.placed.items()):
                if not is_bound_to_its_node(pod):
                    cluster.remove_pod(pod.metadata.uid)
                    del filled.placed[key]
                    pods.append(unplaced(pod))
        return in_order(pods)

    def _engine(
        self, cluster: Cluster, stage: SimulatedCluster, audience: SimulationRecorder
    ) -> Engine:
        conditions = self._conditions
        volumes, claims = SimulatedVolumes(cluster), SimulatedClaims(cluster)
        engine = Engine(
            with_extender_effects(conditions.config),
            conditions.gates,
            cluster,
            Outside(
                api_calls=stage,
                volume_writer=volumes,
                claim_writer=claims,
                recorders=audience,
                find_pod=stage.find_pod,
                make_extenders=lambda _config: None,
                clock=self._clock,
                metrics=Metrics(conditions.gates),
            ),
            registry=conditions.registry,
            # Its budget is real time, and would make runs differ.
            options=EngineOptions(seed=conditions.seed, queue_check_share=0.0),
        )
        volumes.attach(engine.queue)
        claims.attach(engine.queue)
        stage.claims = claims
        return engine

    async def _all(
        self, happenings: Sequence[TimedEvent], stage: SimulatedCluster, engine: Engine
    ) -> None:
        """Run all events that are due before the end, and their consequences."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._conditions.until_s):
                for happening in sorted(happenings, key=lambda each: each.at_s):
                    await asyncio.sleep(max(happening.at_s - self._now_s(), 0.0))
                    happening.happen(stage)
                await _rest(stage, engine)

    async def _read(self, cluster: Cluster, observations: Observations) -> None:
        period_s = self._conditions.reading_period_s
        # Slightly late: events of the same moment, and their consequences, come first.
        await asyncio.sleep(READING_DELAY_S)
        while period_s:
            too_many = observations.read(self._reading(cluster, observations))
            # This one was dropped, too: the next is due at its regular time.
            await asyncio.sleep(period_s)
            if too_many:
                period_s *= 2

    async def _tell(self, observations: Observations) -> None:
        """Report progress at regular intervals of virtual time."""
        while True:
            self._conditions.progress(self._now_s(), observations.waiting_count)
            await asyncio.sleep(PROGRESS_PERIOD_S)

    def _reading(self, cluster: Cluster, observations: Observations) -> UsageSample:
        used = Utilisation.of(cluster.table)
        return UsageSample(
            at_s=round(self._now_s(), 2),
            nodes=len(cluster.table),
            pods=cluster.pod_count,
            waiting=observations.waiting_count,
            cpu=used.cpu,
            memory=used.memory,
        )

    def _notes(self, filled: Filled, stage: SimulatedCluster) -> Iterator[str]:
        yield from filled.notes
        if stage.adopted:
            yield (
                f"{stage.adopted} pods name schedulers that the configuration does not have; "
                "its first profile places them"
            )
        extenders = len(self._conditions.config.extenders)
        if extenders:
            yield f"{extenders} extenders of the configuration are not asked"


async def _flush(queue: SchedulingQueue, clock: VirtualClock, stirred: asyncio.Event) -> None:
    """Flush due pods from the queue, at full seconds as the scheduler does.

    Seconds without due pods are skipped: most of a day's.
    """
    while True:
        stirred.clear()
        period_s = 1.0 if queue.backoff_count else PARKED_FLUSH_PERIOD_S
        with suppress(TimeoutError):
            has_parked = len(queue) > queue.active_count
            wait_s = period_s - clock.time() % period_s if has_parked else None
            async with asyncio.timeout(wait_s):
                await stirred.wait()
                continue
        queue.flush_backoff()
        if period_s == PARKED_FLUSH_PERIOD_S or clock.time() % PARKED_FLUSH_PERIOD_S == 0.0:
            queue.flush_parked()


async def _rest(stage: SimulatedCluster, engine: Engine) -> None:
    """Wait until nothing is left to happen."""
    patience_s = PATIENCE_S
    while patience_s > 0.0:
        await stage.until_nothing_is_due()
        if _is_idle(engine):
            return
        await asyncio.sleep(1.0)
        patience_s -= 1.0


def _is_idle(engine: Engine) -> bool:
    queue = engine.queue
    return not (
        queue.active_count or queue.backoff_count or queue.in_flight_count or len(engine.bindings)
    )


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
