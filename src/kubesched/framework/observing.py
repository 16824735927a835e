"""Metrics of a profile's framework: durations of extension points, and calls of plugins.

Extension points are timed in every attempt, single plugins in one attempt out of ten: enough to
find a slow one, at a tenth of the cost. Cached answers count as calls; only the work done is timed.

Attempts overlap: while a pod is bound, others are scheduled. So whether an attempt's plugins are
timed is in its state.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Protocol

from kubesched.framework.plugin import Plugin
from kubesched.framework.status import Code
from kubesched.metrics.recorder import Metrics
from kubesched.metrics.series import NOTED, Counter, Histogram

#: The share of attempts whose plugins are timed.
SHARE = 0.1
#: Records how an extension point ended, given its start time; returns the time.
Stopwatch = Callable[[Code, float], float]
#: The same for one plugin, in attempts whose plugins are timed.
Lap = Callable[[str, Code, float], float]


class WorkTracer(Protocol):
    """Receives the work of extension points and plugins in attempts that are traced."""

    #: whether the last attempt that began is traced
    is_sampled: bool

    @property
    def current(self) -> Callable[[], object | None]:
        """Return the attempt in progress if it is traced; called for every extension point."""

    def called(self, plugin: str, code: Code, started_s: float, ended_s: float) -> None:
        """Record a plugin's work."""

    def passed(self, point: str, code: Code, started_s: float, ended_s: float) -> None:
        """Record the end of an extension point."""


class NullObserver:
    """Records nothing."""

    #: whether this attempt's plugins are timed
    sampled = False

    def __init__(self, timer: Callable[[], float] = lambda: 0.0) -> None:
        #: returns the time in seconds, from an arbitrary start
        self.now = timer

    def expect(self, point: str, plugins: Sequence[Plugin]) -> None:
        """Declare which plugins may run at a point."""

    def begin(self) -> float:
        """Record the start of an attempt; return the time."""
        return 0.0

    def stopwatch(self, point: str) -> Stopwatch:  # noqa: ARG002 (ignored)
        """Return a function that records the end of an extension point."""
        return lambda _code, _started: 0.0

    def blank(self, point: str, code: Code = Code.SUCCESS) -> Histogram:  # noqa: ARG002 (ignored)
        """Return the histogram whose `zeros` count attempts with nothing to do at a point."""
        return Histogram(())

    def lap(self, point: str) -> Lap:  # noqa: ARG002 (ignored)
        """Return a function that records the end of a plugin's call at a point."""
        return lambda _plugin, _code, _started: 0.0

    def samples_gate(self) -> bool:
        """Return whether to time the plugins that run now, before a pod's attempt begins."""
        return False

    def asked(self, point: str, skipped: frozenset[str], times: int = 1) -> None:
        """Record one call of each plugin of a point, except the `skipped`."""


class Sample:
    """Selects one event out of N at random intervals.

    A fixed interval would alias with callers that ask twice per attempt.
    """

    __slots__ = ("_log_of_others", "_random", "left")

    def __init__(self, share: float, *, seed: int) -> None:
        self._random = random.Random(seed).random  # noqa: S311 (a sample, not a secret)
        self._log_of_others = math.log(1 - share) if share < 1 else -math.inf
        #: decremented by the caller; at 0 the event is selected
        self.left = 0
        self.draw()

    def draw(self) -> int:
        """Draw a new interval, store it in `left` and return it."""
        self.left = int(math.log(1 - self._random()) / self._log_of_others) + 1
        return self.left


class Observer(NullObserver):
    """Records the metrics of one profile."""

    def __init__(self, metrics: Metrics, profile: str, *, timer: Callable[[], float]) -> None:
        super().__init__(timer)
        self._metrics = metrics
        self._profile = profile
        #: for attempts, and for plugins that run before an attempt
        self._attempts, self._gates = Sample(SHARE, seed=1), Sample(SHARE, seed=2)
        #: point → function that records a plugin's call
        self._laps: dict[str, Lap] = {}
        #: point → plugins that may run there
        self._plugins_at: dict[str, Sequence[Plugin]] = {}
        #: (point, skipped plugins) → counter shared by the plugins that are not skipped
        self._tallies: dict[tuple[str, frozenset[str]], Counter] = {}
        #: histograms written to directly, and for how many attempts and gates their buffers have
        #: room
        self._noted: list[Histogram] = []
        self._room = NOTED - self._attempts.left - self._gates.left

    def expect(self, point: str, plugins: Sequence[Plugin]) -> None:
        """Create the series before the first call: an alert needs the series to exist."""
        self._plugins_at[point] = plugins
        for plugin in plugins:
            self._metrics.plugin_evaluation.labels(plugin.name, point, self._profile)

    def begin(self) -> float:
        """Record the start of an attempt; return the time."""
        sample = self._attempts
        sample.left -= 1
        if sample.left:
            self.sampled = False
        else:
            self.sampled = True
            self._count_in(sample.draw())
        return self.now()

    def _count_in(self, coming: int) -> None:
        """Make sure the buffers have space for `coming` more attempts or gates."""
        self._room -= coming
        if self._room < 0:
            self._room = NOTED - self._attempts.left - self._gates.left
            for each in self._noted:
                each.fold()

    def _into(self, histogram: Histogram) -> Callable[[float], None]:
        """Return a function that records a value: few calls per attempt or gate."""
        self._noted.append(histogram)
        return histogram.note

    def stopwatch(self, point: str) -> Stopwatch:
        """Return a function that records the end of an extension point.

        Created once and used for every pod, so it binds all it needs.
        """
        now = self.now
        notes: dict[Code, Callable[[float], None]] = {}

        def through(code: Code, started: float) -> float:
            ended = now()
            try:
                note = notes[code]
            except KeyError:
                note = notes[code] = self._into(self._duration(point, code))
            note(ended - started)
            return ended

        return through

    def blank(self, point: str, code: Code = Code.SUCCESS) -> Histogram:
        """Return the histogram whose `zeros` count attempts with nothing to do at a point."""
        series = self._duration(point, code)
        # A point that never had anything to do is not exported.
        series.silent = True
        return series

    def _duration(self, point: str, code: Code) -> Histogram:
        durations = self._metrics.framework_extension_point_duration
        return durations.labels(point, code.label, self._profile)

    def lap(self, point: str) -> Lap:
        """Return a function that records the end of a plugin's call; created once, as a stopwatch
        is.
        """
        known = self._laps.get(point)
        return known or self._laps.setdefault(point, self._new_lap(point))

    def _new_lap(self, point: str) -> Lap:
        now = self.now
        durations = self._metrics.plugin_execution_duration
        notes: dict[tuple[str, Code], Callable[[float], None]] = {}

        def through(plugin: str, code: Code, started: float) -> float:
            ended = now()
            try:
                note = notes[plugin, code]
            except KeyError:
                note = self._into(durations.labels(plugin, point, code.label))
                notes[plugin, code] = note
            note(ended - started)
            return ended

        return through

    def samples_gate(self) -> bool:
        """Return whether to time the plugins that run now, before a pod's attempt begins."""
        sample = self._gates
        sample.left -= 1
        if sample.left:
            return False
        self._count_in(sample.draw())
        return True

    def asked(self, point: str, skipped: frozenset[str], times: int = 1) -> None:
        """Record one call of each plugin of a point, except the `skipped`."""
        key = point, skipped
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = self._metrics.plugin_evaluation.shared(
                (plugin.name, point, self._profile)
                for plugin in self._plugins_at.get(point, ())
                if plugin.name not in skipped
            )
        tally.value += times


class TracedObserver(Observer):
    """Records the metrics of one profile, and traces attempts.

    A class of its own: without tracing, an attempt does not pay for it.
    """

    def __init__(
        self,
        metrics: Metrics,
        profile: str,
        *,
        timer: Callable[[], float],
        tracer: WorkTracer,
    ) -> None:
        super().__init__(metrics, profile, timer=timer)
        self._tracer = tracer

    def begin(self) -> float:
        """Record the start of an attempt, whose plugins are timed if it is traced."""
        started = super().begin()
        self.sampled = self.sampled or self._tracer.is_sampled
        return started

    def stopwatch(self, point: str) -> Stopwatch:
        """Return a function that records the end of an extension point."""
        through, tracer = super().stopwatch(point), self._tracer
        current, passed = tracer.current, tracer.passed

        def traced(code: Code, started: float) -> float:
            ended = through(code, started)
            if current() is not None:
                passed(point, code, started, ended)
            return ended

        return traced

    def _new_lap(self, point: str) -> Lap:
        through, called = super()._new_lap(point), self._tracer.called

        def traced(plugin: str, code: Code, started: float) -> float:
            ended = through(plugin, code, started)
            called(plugin, code, started, ended)
            return ended

        return traced
