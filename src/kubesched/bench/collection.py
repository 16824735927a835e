"""One collection: the pods bound between its start and its end, and their cost.

    begin ──> pods are bound, times recorded ──> end: wait for an idle scheduler ──> Measurement

A scheduler may record events after it has bound the last pod. CPU time per pod includes them, so it
is read when the scheduler is idle; pods per second end with the last binding.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import ExitStack
from dataclasses import dataclass

from kubesched.bench import statistics
from kubesched.bench.operations import Labels
from kubesched.bench.planes import Plane
from kubesched.bench.pod_tracker import PodTracker
from kubesched.bench.processes import Process
from kubesched.bench.results import Measurement
from kubesched.bench.schedulers import SchedulerProcess
from kubesched.client.rest import ApiClient
from kubesched.errors import KubeschedError

ATTEMPTS = "scheduler_scheduling_attempt_duration_seconds"

_MIB = 1 << 20
_REST_WINDOW_S = 0.25
#: A scheduler is idle when it uses less of a CPU than this.
_REST_SHARE = 0.1
_REST_AFTER_WINDOWS = 2
_REST_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Costs:
    """CPU seconds so far; None where unknown."""

    scheduler_s: float | None
    apiserver_s: float | None
    storage_s: float | None


class BindingCollection:
    """Records pods from ``begin`` to ``end``."""

    def __init__(
        self, name: str, *, plane: Plane, scheduler: SchedulerProcess, tracker: PodTracker
    ) -> None:
        self._name = name
        self._plane = plane
        self._scheduler = scheduler
        self._tracker = tracker
        self._from_first = False
        self._start_s = 0.0
        self._before = Costs(None, None, None)
        self._attempts_before: dict[float, float] = {}
        self._listening = ExitStack()

    async def begin(
        self, namespaces: frozenset[str], labels: Labels, *, from_first: bool = False
    ) -> None:
        """Start now; or, for pods created in advance, when the first one is bound."""
        self._from_first = from_first
        if self._scheduler.is_running:
            self._attempts_before = await self._attempts()
        self._watcher = self._listening.enter_context(
            self._tracker.watching(namespaces, labels, self._on_first)
        )
        self._read_clocks()

    def _on_first(self) -> None:
        if self._from_first:
            self._read_clocks()

    def _read_clocks(self) -> None:
        self._start_s = time.perf_counter()
        self._before = self._costs()

    async def end(self) -> Measurement:
        """End; return when the scheduler is idle."""
        self._listening.close()
        bound = self._watcher.bound
        await self._rest()
        after, attempts = self._costs(), await self._attempts()
        last_s = max((each.at_s for each in bound), default=self._start_s)
        seconds = last_s - self._start_s
        process = self._scheduler.process
        attempts = statistics.difference(attempts, self._attempts_before)
        latencies = [] if self._from_first else self._tracker.latencies(bound)
        return Measurement(
            name=self._name,
            pods=len(bound),
            seconds=seconds,
            pods_per_second=_rate(len(bound), seconds, from_first=self._from_first),
            samples=tuple(
                statistics.throughput_samples([each.at_s for each in bound], start_s=self._start_s)
            ),
            latency_p50_ms=_ms(statistics.percentile(latencies, 50)),
            latency_p99_ms=_ms(statistics.percentile(latencies, 99)),
            done_after_s=last_s - process.started_s if self._from_first and process else None,
            attempt_p50_ms=_ms(statistics.quantile(attempts, 0.5)),
            attempt_p99_ms=_ms(statistics.quantile(attempts, 0.99)),
            scheduler_cpu_s=_difference(self._before.scheduler_s, after.scheduler_s),
            scheduler_cpu_ms_per_pod=_each(self._before.scheduler_s, after.scheduler_s, len(bound)),
            apiserver_cpu_ms_per_pod=_each(self._before.apiserver_s, after.apiserver_s, len(bound)),
            storage_cpu_ms_per_pod=_each(self._before.storage_s, after.storage_s, len(bound)),
            scheduler_peak_mib=_peak_mib(process),
            apiserver_peak_mib=_peak_mib(self._plane.apiserver),
        )

    def abandon(self) -> None:
        """Stop recording."""
        self._listening.close()

    def _costs(self) -> Costs:
        scheduler, storage = self._scheduler.process, self._plane.storage
        return Costs(
            scheduler.cpu_seconds() if scheduler else None,
            self._plane.apiserver.cpu_seconds(),
            storage.cpu_seconds() if storage else None,
        )

    async def _attempts(self) -> dict[float, float]:
        """Return the durations of successful attempts so far, if the scheduler exports them."""
        access = self._scheduler.metrics_access
        if access is None:
            return {}
        async with ApiClient(access, timeout_s=5) as client:
            try:
                answer = await client.request("GET", "/metrics")
            except KubeschedError:
                return {}
        text = bytes(answer.body).decode(errors="replace")
        return statistics.histogram(text, ATTEMPTS, {"result": "scheduled"})

    async def _rest(self) -> None:
        """Return when the scheduler is idle for a moment, or on timeout."""
        resting, before = 0, self._costs().scheduler_s
        deadline = time.monotonic() + _REST_TIMEOUT_S
        while before is not None and resting < _REST_AFTER_WINDOWS:
            await asyncio.sleep(_REST_WINDOW_S)
            now = self._costs().scheduler_s
            if now is None or time.monotonic() > deadline:
                return
            resting = resting + 1 if now - before < _REST_SHARE * _REST_WINDOW_S else 0
            before = now


def _rate(pods: int, seconds: float, *, from_first: bool) -> float:
    """Return pods per second; if time starts with the first pod, that one does not count."""
    counted = pods - 1 if from_first else pods
    return counted / seconds if seconds > 0 else 0.0


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None or math.isnan(seconds) else seconds * 1000


def _difference(before_s: float | None, after_s: float | None) -> float | None:
    return None if before_s is None or after_s is None else after_s - before_s


def _each(before_s: float | None, after_s: float | None, pods: int) -> float | None:
    seconds = _difference(before_s, after_s)
    return None if seconds is None or not pods else seconds * 1000 / pods


def _peak_mib(process: Process | None) -> float | None:
    peak = process.peak_bytes() if process else None
    return None if peak is None else peak / _MIB
