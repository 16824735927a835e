"""Durations of decisions and of steps of the event loop, and where slow ones spend their time.

SchedulingCycle.schedule ──┐
asyncio.Handle._run ───────┼──> Durations: wall and CPU time each
collections of garbage ────┘
a timer of CPU time ──> StackSampler ──> the functions that slow ones were in
"""

from __future__ import annotations

import asyncio
import gc
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from kubesched.bench.statistics import percentile
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.runtime import Framework
from kubesched.scheduler.cycle import Decision, SchedulingCycle

#: How often the sampler looks, in CPU time; timers are not more precise.
SAMPLE_S = 0.004
#: Functions shown of a stack, innermost first.
DEPTH = 4
#: How many of the slowest are kept.
WORST = 10
_OURS = "kubesched"


class StackSampler:
    """Notes where the process is, every few milliseconds of its CPU time."""

    def __init__(self) -> None:
        #: our functions, innermost first
        self._stacks: list[tuple[str, ...]] = []

    @contextmanager
    def working(self) -> Iterator[None]:
        """Sample during the block."""
        before = signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    def mark(self) -> int:
        """Return the present position, for `since`."""
        return len(self._stacks)

    def since(self, mark: int) -> str:
        """Return the stack that was seen most since a position, and its share."""
        seen = self._stacks[mark:]
        if not seen:
            return ""
        stack, count = Counter(each[:DEPTH] for each in seen).most_common(1)[0]
        return f"{' < '.join(stack)} ({count}/{len(seen)})"

    def most(self, count: int) -> list[tuple[str, float]]:
        """Return the functions that were on the stack most, with their shares."""
        seen = Counter(name for stack in self._stacks for name in set(stack))
        return [(name, each / len(self._stacks)) for name, each in seen.most_common(count)]

    def _sample(self, _number: int, frame: FrameType | None) -> None:
        found: list[str] = []
        while frame is not None:
            if _OURS in frame.f_code.co_filename:
                module = Path(frame.f_code.co_filename).stem
                found.append(f"{module}.{frame.f_code.co_qualname}")
            frame = frame.f_back
        self._stacks.append(tuple(found))


class Durations:
    """Wall and CPU time of many of a kind, and details of the slowest."""

    def __init__(self, sampler: StackSampler) -> None:
        self._sampler = sampler
        self.wall_s: list[float] = []
        self.cpu_s: list[float] = []
        #: CPU time, wall time, name, where it went; slowest first
        self.worst: list[tuple[float, float, str, str]] = []

    @contextmanager
    def of(self, name: Callable[[], str]) -> Iterator[None]:
        """Time a block; `name` is only called for slow ones."""
        mark, wall, cpu = self._sampler.mark(), time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            self.add(time.perf_counter() - wall, time.thread_time() - cpu, name, mark)

    def add(self, wall_s: float, cpu_s: float, name: Callable[[], str], mark: int) -> None:
        """Add one."""
        self.wall_s.append(wall_s)
        self.cpu_s.append(cpu_s)
        if len(self.worst) < WORST or cpu_s > self.worst[-1][0]:
            self.worst.append((cpu_s, wall_s, name(), self._sampler.since(mark)))
            self.worst.sort(reverse=True)
            del self.worst[WORST:]

    def clear(self) -> None:
        """Forget all."""
        self.wall_s, self.cpu_s, self.worst = [], [], []


def summary(values_s: list[float]) -> str:
    """Return median, 99th percentile and maximum in milliseconds."""
    shown = (percentile(values_s, each) or 0.0 for each in (50, 99, 100))
    return " · ".join(f"{1000 * each:.3g}" for each in shown) + " ms"


class MeasuredCycle(SchedulingCycle):
    """A scheduling cycle whose decisions are timed."""

    def __init__(self, durations: Durations, cluster: Cluster, *, seed: int | None = None) -> None:
        super().__init__(cluster, seed=seed)
        self._durations = durations

    def schedule(self, framework: Framework, pod: PodInfo, *, may_pause: bool = False) -> Decision:
        """Time a decision."""
        with self._durations.of(lambda: pod.full_name):
            return super().schedule(framework, pod, may_pause=may_pause)


@contextmanager
def timed_steps(durations: Durations) -> Iterator[None]:
    """Time each step of asyncio's own event loop."""
    handle: Any = asyncio.Handle
    run = handle._run  # noqa: SLF001 (the only place where all steps of a loop pass)

    def timed(self: Any) -> None:  # noqa: ANN401 (an asyncio.Handle, and its private fields)
        with durations.of(lambda: _name_of(self._callback)):
            run(self)

    handle._run = timed  # noqa: SLF001
    try:
        yield
    finally:
        handle._run = run  # noqa: SLF001


def _name_of(callback: object) -> str:
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return getattr(task.get_coro(), "__qualname__", "a task")
    return getattr(callback, "__qualname__", repr(callback))


@contextmanager
def timed_collections(durations: Durations) -> Iterator[None]:
    """Time collections of garbage."""
    started = 0.0

    def note(phase: str, info: Mapping[str, int]) -> None:
        nonlocal started
        if phase == "start":
            started = time.thread_time()
            return
        took_s = time.thread_time() - started
        durations.add(took_s, took_s, lambda: f"generation {info['generation']}", 0)

    gc.callbacks.append(note)
    try:
        yield
    finally:
        gc.callbacks.remove(note)


def memory_mib(field: str = "VmRSS") -> float:
    """Return the resident memory of this process, or its peak with "VmHWM"."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no memory reading")
