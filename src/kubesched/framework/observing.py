"""What a profile's framework tells of its work: how long points take, how often plugins are asked.

Extension points are timed in every attempt, single plugins in one attempt out of ten: that is
enough to find a slow one, and costs a tenth. Answers that come from a cache count as asked; what is
timed is what was really done.

    begin ──> laps of plugins at each point ──> keep(state) ──> laps_of(state) while it is bound

An attempt outlives its turn: while its pod is bound, others have theirs. So whether its plugins are
timed is noted in its state before that.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence

from kubesched.cluster.recent import Recent
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Plugin
from kubesched.framework.status import Code
from kubesched.metrics.recorder import Metrics
from kubesched.metrics.series import Counter, Histogram

#: The share of attempts whose plugins are timed.
SHARE = 0.1
#: After so many attempts, what was noted is counted in.
FOLDING = 1024
_NOBODY: tuple[None, list[Counter]] = (None, [])
#: What stands in an attempt's state if its plugins are timed.
_TIMED = object()


class Laps:
    """Times plugins that are asked one after the other at one point."""

    __slots__ = ("_observer", "_point", "_started")

    def __init__(self, observer: Unobserved, point: str) -> None:
        self._observer = observer
        self._point = point
        self._started = observer.now()

    def __call__(self, plugin: str, code: Code) -> None:
        """Note that a plugin is through; the next one's time begins."""
        self._started = self._observer.plugin(self._point, plugin, code, self._started)


class Unobserved:
    """Nobody wants to know."""

    #: whether this attempt's plugins are timed
    sampled = False

    def begin(self) -> float:
        """Note that an attempt begins; return the time."""
        return 0.0

    def now(self) -> float:
        """Return the time, in seconds since some moment."""
        return 0.0

    def point(self, point: str, code: Code, started: float) -> float:  # noqa: ARG002 (nobody cares)
        """Note that an extension point is through; return the time."""
        return 0.0

    def span(self, point: str, code: Code, seconds: float) -> None:
        """Note that an extension point took so long."""

    def plugin(self, point: str, plugin: str, code: Code, started: float) -> float:  # noqa: ARG002 (as above)
        """Note that a plugin is through, if its attempt is timed; return the time."""
        return 0.0

    def keep(self, state: CycleState) -> None:
        """Let an attempt know for the time after its turn whether its plugins are timed."""
        if self.sampled:
            state.write(_TIMED, True)

    def laps(self, point: str) -> Laps | None:
        """Return what times plugins in the attempt whose turn it is, None if they are not timed."""
        return Laps(self, point) if self.sampled else None

    def laps_of(self, state: CycleState, point: str) -> Laps | None:
        """Return what times plugins in an attempt of which that was kept, None if nothing does."""
        return None if state.get(_TIMED) is None else Laps(self, point)

    def gate_laps(self, point: str) -> Laps | None:  # noqa: ARG002 (nobody cares)
        """Return what times plugins that are asked before a pod's attempt begins, or None."""
        return None

    def asked(
        self, point: str, plugins: Sequence[Plugin], skipped: Collection[str], times: int = 1
    ) -> None:
        """Note that plugins gave their answers, those `skipped` excepted."""


class Observer(Unobserved):
    """Records what happens in one profile."""

    def __init__(self, metrics: Metrics, profile: str, *, timer: Callable[[], float]) -> None:
        self._metrics = metrics
        self._profile = profile
        self._timer = timer
        # Drawn, as counting would fall into step with those who ask twice for an attempt.
        self._draw = random.Random(1).random  # noqa: S311 (a sample, not a secret)
        self._attempts = 0
        self._gatings = 0
        self._plugins: dict[tuple[str, str, Code], Callable[[float], None]] = {}
        self._points: dict[tuple[str, Code], Callable[[float], None]] = {}
        #: the same, of points that went well, as nearly all do
        self._successes: dict[str, Callable[[float], None]] = {}
        #: all that is noted in
        self._durations: list[Histogram] = []
        self._counters: dict[tuple[str, str], Counter] = {}
        #: counters of the plugins that are asked at a point, by those that are not: these are few
        self._asked: Recent[tuple[str, frozenset[str]], list[Counter]] = Recent(limit=1024)
        #: the last of them at each point
        self._asked_last: dict[str, tuple[frozenset[str] | None, list[Counter]]] = {}

    def expect(self, point: str, plugins: Iterable[Plugin]) -> None:
        """Show plugins before they are first asked: nobody alerts on a series that is not there."""
        for plugin in plugins:
            self._counter(point, plugin.name)

    def begin(self) -> float:
        """Note that an attempt begins; return the time."""
        self._attempts += 1
        self.sampled = self._draw() < SHARE
        if self._attempts % FOLDING == 0:
            self._fold()
        return self._timer()

    def now(self) -> float:
        """Return the time, in seconds since some moment."""
        return self._timer()

    def point(self, point: str, code: Code, started: float) -> float:
        """Note that an extension point is through; return the time."""
        now = self._timer()
        note = self._successes.get(point) if code is Code.SUCCESS else None
        (note or self._point(point, code))(now - started)
        return now

    def span(self, point: str, code: Code, seconds: float) -> None:
        """Note that an extension point took so long."""
        note = self._successes.get(point) if code is Code.SUCCESS else None
        (note or self._point(point, code))(seconds)

    def _point(self, point: str, code: Code) -> Callable[[float], None]:
        note = self._points.get((point, code))
        if note is None:
            durations = self._metrics.framework_extension_point_duration
            note = self._noting(durations.labels(point, code.label, self._profile))
            self._points[point, code] = note
            if code is Code.SUCCESS:
                self._successes[point] = note
        return note

    def plugin(self, point: str, plugin: str, code: Code, started: float) -> float:
        """Note that a plugin is through, if its attempt is timed; return the time."""
        now = self._timer()
        note = self._plugins.get((point, plugin, code))
        if note is None:
            durations = self._metrics.plugin_execution_duration
            note = self._noting(durations.labels(plugin, point, code.label))
            self._plugins[point, plugin, code] = note
        note(now - started)
        return now

    def gate_laps(self, point: str) -> Laps | None:
        """Return what times plugins that are asked before a pod's attempt begins, or None."""
        self._gatings += 1
        if self._gatings % FOLDING == 0:
            self._fold()
        return Laps(self, point) if self._draw() < SHARE else None

    def asked(
        self, point: str, plugins: Sequence[Plugin], skipped: Collection[str], times: int = 1
    ) -> None:
        """Note that plugins gave their answers, those `skipped` excepted."""
        same, counters = self._asked_last.get(point, _NOBODY)
        if same != skipped:
            counters = self._asked_counters(point, plugins, frozenset(skipped))
        for counter in counters:
            counter.value += times

    def _asked_counters(
        self, point: str, plugins: Sequence[Plugin], skipped: frozenset[str]
    ) -> list[Counter]:
        key = point, skipped
        counters = self._asked.get(key)
        if counters is None:
            counters = self._asked[key] = [
                self._counters.get((point, each.name)) or self._counter(point, each.name)
                for each in plugins
                if each.name not in skipped
            ]
        # Pods of one kind come together, and the next one is likely to be asked the same.
        self._asked_last[point] = skipped, counters
        return counters

    def _noting(self, durations: Histogram) -> Callable[[float], None]:
        self._durations.append(durations)
        return durations.note

    def _fold(self) -> None:
        for each in self._durations:
            each.fold()

    def _counter(self, point: str, plugin: str) -> Counter:
        counter = self._metrics.plugin_evaluation.labels(plugin, point, self._profile)
        self._counters[point, plugin] = counter
        return counter
