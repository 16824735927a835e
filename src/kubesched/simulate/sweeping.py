"""Many runs in parallel: every configuration with every seed, on all cores.

    Payload (once per worker) ─┐
    Task ── variant, seed ─────┴──> work() ──> Result ──> mean and deviation over seeds

Workers are processes of the standard executor, or of a Dask cluster (dask_sweep.py), with the same
tasks. A worker loads out-of-tree plugins itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from multiprocessing.connection import wait
from pathlib import Path

from msgspec import Struct, field

from kubesched import __version__
from kubesched.config import loading
from kubesched.config.features import FeatureGates
from kubesched.errors import KubeschedError, PluginError
from kubesched.framework.registry import Registry
from kubesched.plugin_loading import open_registry
from kubesched.plugins.in_tree import IN_TREE
from kubesched.simulate.playing import Conditions
from kubesched.simulate.report import RunReport, SimulationReport
from kubesched.simulate.running import run
from kubesched.simulate.simulated_cluster import Delays
from kubesched.simulate.trace import Script
from kubesched.simulate.variants import Variant
from kubesched.snapshot.contents import Snapshot


class PluginSource(Struct, frozen=True):
    """A plugin file with its contents: a worker may be on another machine."""

    #: FILE or FILE:CLASS
    reference: str
    path: str
    text: str


class Payload(Struct, frozen=True):
    """The common input of all tasks of a sweep."""

    snapshot: Snapshot
    #: None: only place the pending pods
    script: Script | None = None
    feature_gates: str = ""
    plugins: tuple[PluginSource, ...] = ()
    delays: Delays = Delays()
    everything: bool = False
    in_line: bool = False
    until_s: float | None = None
    version: str = __version__


class Task(Struct, frozen=True):
    """One run."""

    #: number of the variant
    number: int
    variant: Variant
    seed: int


class Result(Struct, frozen=True):
    """The result of a run."""

    task: Task
    run: RunReport


class Measure(SimulationReport, frozen=True):
    """A number over all seeds."""

    mean: float
    #: standard deviation; 0 for a single seed
    deviation: float = 0.0

    @classmethod
    def of(cls, values: Iterable[float]) -> Measure:
        """Compute mean and deviation."""
        found = list(values)
        deviation = statistics.stdev(found) if len(found) > 1 else 0.0
        return cls(round(statistics.fmean(found), 3), round(deviation, 3))


class VariantSummary(SimulationReport, frozen=True):
    """A configuration over all seeds."""

    name: str
    seeds: int
    placed: Measure
    pending: Measure
    displaced: Measure
    preempted: Measure
    mean_wait_s: Measure
    p99_wait_s: Measure
    cpu: Measure
    memory: Measure
    highest_zone_skew: Measure
    in_one_zone: Measure
    runs: tuple[RunReport, ...] = field(default_factory=tuple)


class Sweep(SimulationReport, frozen=True):
    """Configurations compared."""

    seeds: int
    variants: tuple[VariantSummary, ...]


# --- a worker ---------------------------------------------------------------------------------


def work(payload: Payload, task: Task) -> Result:
    """Run one task; raises KubeschedError if the worker cannot."""
    if payload.version != __version__:
        raise PluginError(
            f"this worker has kubesched {__version__}, the sweep is of {payload.version}: "
            "install the same version on all workers"
        )
    gates = FeatureGates.parse(payload.feature_gates)
    conditions = Conditions(
        snapshot=payload.snapshot,
        config=loading.decode(task.variant.text, task.variant.name, gates=gates),
        gates=gates,
        registry=_registry(payload.plugins),
        seed=task.seed,
        delays=payload.delays,
        everything=payload.everything,
        in_line=payload.in_line,
        until_s=payload.until_s,
    )
    said = run(conditions, payload.script)
    return Result(task, _brief(said))


def _brief(said: RunReport) -> RunReport:
    """Return a run without the parts that are not compared."""
    kept = {name: getattr(said, name) for name in said.__struct_fields__}
    return RunReport(**{**kept, "waiting": (), "reasons": said.reasons[:10]})


@cache
def _registry(plugins: tuple[PluginSource, ...]) -> Registry:
    with tempfile.TemporaryDirectory(prefix="kubesched-plugins-") as folder:
        references = []
        for number, plugin in enumerate(plugins):
            if Path(plugin.path).is_file():
                references.append(plugin.reference)
                continue
            # The worker is on another machine, or in another folder. Files are read here and now.
            copy = Path(folder) / str(number) / Path(plugin.path).name
            copy.parent.mkdir()
            copy.write_text(plugin.text, encoding="utf-8")
            references.append(plugin.reference.replace(plugin.path, str(copy), 1))
        return open_registry(IN_TREE, references)


def plugin_sources(references: Sequence[str]) -> tuple[PluginSource, ...]:
    """Return plugin files as sent to workers; they were loaded once already."""
    found = []
    for reference in references:
        path = reference if Path(reference).is_file() else reference.rpartition(":")[0]
        absolute = str(Path(path).absolute())
        text = Path(path).read_text(encoding="utf-8")
        found.append(PluginSource(reference.replace(path, absolute, 1), absolute, text))
    return tuple(found)


# --- processes --------------------------------------------------------------------------------

_held: list[Payload] = []


def _begin(payload: Payload) -> None:
    """Prepare a worker: it ends when its parent tells it to, or ends itself."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _held[:] = [payload]


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _work_held(task: Task) -> Result:
    return work(_held[0], task)


def carry_out(
    payload: Payload,
    tasks: Sequence[Task],
    *,
    jobs: int | None = None,
    progress: Callable[[], None] = lambda: None,
) -> list[Result]:
    """Run tasks in `jobs` processes; return the results in their order."""
    jobs = min(jobs or _cores(), len(tasks))
    if jobs == 1:
        results = []
        for task in tasks:
            results.append(work(payload, task))
            progress()
        return results
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(
        jobs,
        # Not forked: a process with threads, such as a progress bar's, must not be.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(payload,),
    )
    try:
        # Only this process handles Ctrl-C, and ends the others, which start with it blocked.
        with _without_interrupts():
            futures = [executor.submit(_work_held, task) for task in tasks]
        return _collected(futures, progress)
    except BrokenProcessPool:
        raise KubeschedError(
            "a worker process ended unexpectedly, perhaps for want of memory: try fewer --jobs"
        ) from None
    finally:
        # After Ctrl-C, or a failed task, do not wait for the others.
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        executor.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT in this thread and in processes that it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _collected(futures: Sequence[Future[Result]], progress: Callable[[], None]) -> list[Result]:
    """Wait for all results; return them in the order of the tasks."""
    for future in as_completed(futures):
        future.result()
        progress()
    return [future.result() for future in futures]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- aggregation ------------------------------------------------------------------------------


def summed(results: Sequence[Result]) -> tuple[VariantSummary, ...]:
    """Aggregate the runs of each variant."""
    by_variant: dict[int, list[Result]] = {}
    for result in results:
        by_variant.setdefault(result.task.number, []).append(result)
    return tuple(_summary(found) for _, found in sorted(by_variant.items()))


def _summary(results: Sequence[Result]) -> VariantSummary:
    runs = tuple(each.run for each in results)

    def measure(value: Callable[[RunReport], float]) -> Measure:
        return Measure.of(value(each) for each in runs)

    return VariantSummary(
        name=results[0].task.variant.name,
        seeds=len(runs),
        placed=measure(lambda each: each.placed),
        pending=measure(lambda each: each.pending),
        displaced=measure(lambda each: each.displaced),
        preempted=measure(lambda each: each.victims),
        mean_wait_s=measure(lambda each: each.waits.mean_s),
        p99_wait_s=measure(lambda each: each.waits.p99_s),
        cpu=measure(lambda each: each.mean_cpu),
        memory=measure(lambda each: each.mean_memory),
        highest_zone_skew=measure(lambda each: each.spread.highest_zone_skew),
        in_one_zone=measure(lambda each: each.spread.in_one_zone),
        runs=runs,
    )
