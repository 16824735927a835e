"""The results of a benchmark as data: measurements, runs, and the report.

    Measurement (one collection) ──> BenchRun (scheduler, round) ──> BenchReport ──> Row (summary)

The report is written as JSON; the table and the chart are built from its rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from kubesched.bench.statistics import median

#: The scheduler that the others are compared with.
BASELINE = "kube-scheduler"
#: The scheduler that decides nothing, and so shows the API server's limit.
LIMIT = "null-events"


class _Result(Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class Measurement(_Result, frozen=True, kw_only=True):
    """The measurements of one collection."""

    #: "" where a workload collects once
    name: str = ""
    pods: int
    #: from the start to the last pod bound
    seconds: float
    #: all pods over the whole time
    pods_per_second: float
    #: pods per second, second by second, as scheduler_perf samples them
    samples: tuple[float, ...] = ()
    #: from the request that creates a pod to its binding seen in a watch
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None
    #: from the start of the scheduler's process to the last pod bound, if all pods existed before
    done_after_s: float | None = None
    #: of scheduler_scheduling_attempt_duration_seconds, result scheduled
    attempt_p50_ms: float | None = None
    attempt_p99_ms: float | None = None
    #: of the whole collection
    scheduler_cpu_s: float | None = None
    scheduler_cpu_ms_per_pod: float | None = None
    apiserver_cpu_ms_per_pod: float | None = None
    storage_cpu_ms_per_pod: float | None = None
    scheduler_peak_mib: float | None = None
    apiserver_peak_mib: float | None = None

    @property
    def sampled_average(self) -> float | None:
        """The mean of the samples, which scheduler_perf compares with thresholds."""
        return math.fsum(self.samples) / len(self.samples) if self.samples else None


class BenchRun(_Result, frozen=True, kw_only=True):
    """One scheduler, once through a workload."""

    workload: str
    scheduler: str
    #: from 1 on
    round: int
    measurements: tuple[Measurement, ...] = ()
    #: why there is no result, "" if there is
    error: str = ""


class WorkloadFacts(_Result, frozen=True, kw_only=True):
    """The properties of a workload."""

    name: str
    nodes: int
    pods: int
    threshold: float = 0.0
    feature_gates: dict[str, bool] = {}


class Machine(_Result, frozen=True, kw_only=True):
    """The machine of a benchmark."""

    system: str
    processor: str
    cpus: int
    memory_mib: int
    python: str


class BenchReport(_Result, frozen=True, kw_only=True):
    """The report of one benchmark."""

    started: str
    machine: Machine
    kubernetes: str
    kubesched: str
    apiserver: str
    qps: float
    burst: int
    #: whether the pods were created before the scheduler started
    precreated: bool
    #: each scheduler's description, and how many nodes it scores
    schedulers: dict[str, str]
    workloads: tuple[WorkloadFacts, ...]
    runs: tuple[BenchRun, ...] = ()

    @property
    def failures(self) -> list[BenchRun]:
        """The runs without a result."""
        return [run for run in self.runs if run.error]

    def to_json(self) -> bytes:
        """The report and its summary, indented."""
        tree = {**msgspec.to_builtins(self), "summary": msgspec.to_builtins(rows(self))}
        return msgspec.json.format(msgspec.json.encode(tree), indent=2) + b"\n"


class Row(_Result, frozen=True, kw_only=True):
    """One scheduler on one workload: medians over the rounds."""

    workload: str
    scheduler: str
    rounds: int
    pods_per_second: float | None
    sampled_average: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    done_after_s: float | None
    attempt_p50_ms: float | None
    attempt_p99_ms: float | None
    scheduler_cpu_ms_per_pod: float | None
    apiserver_cpu_ms_per_pod: float | None
    scheduler_peak_mib: float | None
    #: pods per second over those of the baseline in the same round
    ratio: float | None
    #: pods per second over those of the limit in the same round
    share_of_limit: float | None
    threshold: float = 0.0


_MEDIANS = (
    "pods_per_second",
    "sampled_average",
    "latency_p50_ms",
    "latency_p99_ms",
    "done_after_s",
    "attempt_p50_ms",
    "attempt_p99_ms",
    "scheduler_cpu_ms_per_pod",
    "apiserver_cpu_ms_per_pod",
    "scheduler_peak_mib",
)


def rows(report: BenchReport) -> list[Row]:
    """The summary: by workload, then by scheduler, in the order of the report."""
    found = []
    for workload in report.workloads:
        runs = [run for run in report.runs if run.workload == workload.name]
        names = dict.fromkeys(each.name for run in runs for each in run.measurements)
        for name in names or {"": None}:
            found += [_row(workload, scheduler, name, runs) for scheduler in report.schedulers]
    return found


def _row(workload: WorkloadFacts, scheduler: str, name: str, runs: Sequence[BenchRun]) -> Row:
    own = _by_round(runs, scheduler, name)
    medians = {
        field: median(getattr(measurement, field) for measurement in own.values())
        for field in _MEDIANS
    }
    return Row(
        workload=f"{workload.name} {name}".strip(),
        scheduler=scheduler,
        rounds=len(own),
        ratio=_ratio(own, _by_round(runs, BASELINE, name)),
        share_of_limit=_ratio(own, _by_round(runs, LIMIT, name)),
        threshold=workload.threshold,
        **medians,
    )


def _ratio(own: dict[int, Measurement], other: dict[int, Measurement]) -> float | None:
    """The median of the ratios, each within one round."""
    return median(
        own[number].pods_per_second / other[number].pods_per_second
        for number in own
        if number in other and other[number].pods_per_second
    )


def _by_round(runs: Iterable[BenchRun], scheduler: str, name: str) -> dict[int, Measurement]:
    return {
        run.round: measurement
        for run in runs
        if run.scheduler == scheduler
        for measurement in run.measurements
        if measurement.name == name
    }
