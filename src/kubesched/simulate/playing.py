"""A play on the real engine, in virtual time.

    snapshot ──> Cluster ──┐
    happenings ─> Stage <──┴──> Engine: queue, cycles, preemption, bindings ──> Observations

All that a scheduler does is done by the engine itself; only time is not real, and the cluster that
it works on is a stage. The same happenings and the same seed give the same play.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Sequence
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
from kubesched.simulate.happenings import Happening
from kubesched.simulate.observing import Observations
from kubesched.simulate.placing import in_order
from kubesched.simulate.report import Reading, Utilisation
from kubesched.simulate.stage import Audience, Delays, Stage, unplaced
from kubesched.simulate.virtual_time import run_in_virtual_time
from kubesched.simulate.volumes import SimulatedVolumes
from kubesched.snapshot.contents import Snapshot
from kubesched.snapshot.filling import Filled, fill
from kubesched.snapshot.world import is_bound_to_its_node

#: When plays of clusters begin that do not say when they were.
DEFAULT_START = "2026-01-01T00:00:00Z"
#: How long pods that failed for no fault of theirs are tried when nothing else is to happen.
PATIENCE_S = 600.0
READING_DELAY_S = 0.001


class Conditions(Struct, frozen=True):
    """What a play is of."""

    snapshot: Snapshot
    config: SchedulerConfiguration
    gates: FeatureGates
    registry: Registry = IN_TREE
    seed: int = 0
    delays: Delays = Delays()
    #: whether all pods that may move are placed anew, not only those that wait
    everything: bool = False
    #: whether pods that are alike wait in line (lines.py): quicker, and not what would happen
    in_line: bool = False
    #: when it ends; None: when nothing is to happen any more
    until_s: float | None = None
    #: seconds between readings; 0 takes none but the last
    reading_period_s: float = 0.0


class Played(Struct, frozen=True):
    """What a play leaves behind."""

    cluster: Cluster
    #: every pod that is there in the end
    pods: tuple[Pod, ...]
    #: names of pods that wanted a node from the start
    pending_at_start: frozenset[str]
    observations: Observations
    seconds: float
    notes: tuple[str, ...]


def play(conditions: Conditions, happenings: Sequence[Happening] = ()) -> Played:
    """Let things happen, in the order of their times, and see what becomes of it."""
    clock = VirtualClock(_start_s(conditions.snapshot))
    # What is there stays for the time being: the garbage collector need not look at it again.
    gc.freeze()
    try:
        return run_in_virtual_time(clock, _Play(conditions, clock).run(happenings))
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    finally:
        gc.unfreeze()


def _start_s(snapshot: Snapshot) -> float:
    """Return a moment after everything that a snapshot has, in seconds since the epoch."""
    times = [each.metadata.creation_timestamp or "" for each in snapshot.pods]
    times += [each.status.start_time or "" for each in snapshot.pods]
    times += [each.metadata.creation_timestamp or "" for each in snapshot.nodes]
    latest = max(times, default="") or DEFAULT_START
    with suppress(ValueError):
        return datetime.fromisoformat(latest).timestamp() // 60 * 60 + 60
    return datetime.fromisoformat(DEFAULT_START).timestamp()


class _Play:
    """One play."""

    def __init__(self, conditions: Conditions, clock: VirtualClock) -> None:
        self._conditions = conditions
        self._clock = clock
        self._start_s = clock.time()

    async def run(self, happenings: Sequence[Happening]) -> Played:
        """Play it."""
        conditions = self._conditions
        cluster = Cluster(RequestRules.of(conditions.gates))
        filled = fill(cluster, conditions.snapshot)
        pending = self._to_be_placed(cluster, filled)
        observations = Observations(self._clock)
        stage = Stage(
            cluster,
            filled,
            clock=self._clock,
            delays=conditions.delays,
            observations=observations,
            in_line=conditions.in_line,
        )
        audience = Audience(stage, observations)
        engine = self._engine(cluster, stage, audience)
        stage.attach(engine)
        engine.failures.begin()
        # Should the scheduler fail, so does the play.
        async with asyncio.TaskGroup() as background:
            work = [
                background.create_task(engine.scheduler.run()),
                background.create_task(_flush(engine.queue, self._clock, audience.stirred)),
                background.create_task(self._read(cluster, observations)),
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
        """Return the pods that want a node, and take those off theirs that are placed anew."""
        pods = list(filled.pending.values())
        if self._conditions.everything:
            for key, pod in list(filled.placed.items()):
                if not is_bound_to_its_node(pod):
                    cluster.remove_pod(pod.metadata.uid)
                    del filled.placed[key]
                    pods.append(unplaced(pod))
        return in_order(pods)

    def _engine(self, cluster: Cluster, stage: Stage, audience: Audience) -> Engine:
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
            # Its budget is of real time, and would make plays differ.
            options=EngineOptions(seed=conditions.seed, queue_check_share=0.0),
        )
        volumes.attach(engine.queue)
        claims.attach(engine.queue)
        return engine

    async def _all(self, happenings: Sequence[Happening], stage: Stage, engine: Engine) -> None:
        """Let everything happen that is to happen in time, and what it leads to."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._conditions.until_s):
                for happening in sorted(happenings, key=lambda each: each.at_s):
                    await asyncio.sleep(max(happening.at_s - self._now_s(), 0.0))
                    happening.happen(stage)
                await _rest(stage, engine)

    async def _read(self, cluster: Cluster, observations: Observations) -> None:
        period_s = self._conditions.reading_period_s
        # A little late: whatever happens at the same moment, and what it leads to, comes first.
        await asyncio.sleep(READING_DELAY_S)
        while period_s:
            too_many = observations.read(self._reading(cluster, observations))
            # This one was dropped, too: the next is due when it would have been anyhow.
            await asyncio.sleep(period_s)
            if too_many:
                period_s *= 2

    def _reading(self, cluster: Cluster, observations: Observations) -> Reading:
        used = Utilisation.of(cluster.table)
        return Reading(
            at_s=round(self._now_s(), 2),
            nodes=len(cluster.table),
            pods=cluster.pod_count,
            waiting=observations.waiting_count,
            cpu=used.cpu,
            memory=used.memory,
        )

    def _notes(self, filled: Filled, stage: Stage) -> Iterator[str]:
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
    """Let pods go whose time has come, at full seconds as the scheduler does.

    Seconds in which there is nobody to let go are left out: most of a day's are like that.
    """
    while True:
        stirred.clear()
        period_s = 1.0 if queue.backoff_count else PARKED_FLUSH_PERIOD_S
        with suppress(TimeoutError):
            somebody_waits = len(queue) > queue.active_count
            wait_s = period_s - clock.time() % period_s if somebody_waits else None
            async with asyncio.timeout(wait_s):
                await stirred.wait()
                continue
        queue.flush_backoff()
        if period_s == PARKED_FLUSH_PERIOD_S or clock.time() % PARKED_FLUSH_PERIOD_S == 0.0:
            queue.flush_parked()


async def _rest(stage: Stage, engine: Engine) -> None:
    """Wait until nothing is to happen any more."""
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
