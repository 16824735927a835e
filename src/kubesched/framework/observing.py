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
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Plugin
from kubesched.framework.status import Code
from kubesched.metrics.recorder import Metrics
from kubesched.metrics.series import Counter

#: The share of attempts whose plugins are timed.
SHARE = 0.1
#: What stands in an attempt's state if its plugins are timed.
_TIMED = object()
#: Two points of which one follows the other.
Points = tuple[str, str]
FILTERING: Final[Points] = ("PreFilter", "Filter")
SCORING: Final[Points] = ("PreScore", "Score")
#: When the first of them began, when the second, and when that was through.
Times = tuple[float, float, float]


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

    def asked(self, point: str, skipped: AbstractSet[str], times: int = 1) -> None:
        """Note that a point's plugins gave their answers, those `skipped` excepted."""

    def passed(self, points: Points, skipped: AbstractSet[str], nodes: int, times: Times) -> None:
        """Note that a point and the one after it went well, with so many nodes at the second."""


class _Passed(Struct, frozen=True):
    """Where two points are noted, for pods that some plugins have nothing to do with."""

    skipped: frozenset[str]
    first: Callable[[float], None]
    second: Callable[[float], None]
    asked: Counter
    asked_about_nodes: Counter


class Observer(Unobserved):
    """Records what happens in one profile."""

    def __init__(self, metrics: Metrics, profile: str, *, timer: Callable[[], float]) -> None:
        self._metrics = metrics
        self._profile = profile
        self._timer = timer
        # Drawn, as counting would fall into step with those who ask twice for an attempt.
        self._draw = random.Random(1).random  # noqa: S311 (a sample, not a secret)
        self._plugins: dict[tuple[str, str, Code], Callable[[float], None]] = {}
        self._points: dict[tuple[str, Code], Callable[[float], None]] = {}
        #: the same, of points that went well, as nearly all do
        self._successes: dict[str, Callable[[float], None]] = {}
        #: point → plugins that may be asked there
        self._plugins_at: dict[str, Sequence[Plugin]] = {}
        #: what counts for all plugins that are asked at a point, by those that are not
        self._tallies: dict[tuple[str, frozenset[str]], Counter] = {}
        #: where points that follow each other are noted: pods of one kind come together
        self._last: dict[Points, _Passed] = {}

    def expect(self, point: str, plugins: Sequence[Plugin]) -> None:
        """Show plugins before they are first asked: nobody alerts on a series that is not there."""
        self._plugins_at[point] = plugins
        for plugin in plugins:
            self._metrics.plugin_evaluation.labels(plugin.name, point, self._profile)

    def begin(self) -> float:
        """Note that an attempt begins; return the time."""
        self.sampled = self._draw() < SHARE
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
            note = durations.labels(point, code.label, self._profile).observe
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
            note = durations.labels(plugin, point, code.label).observe
            self._plugins[point, plugin, code] = note
        note(now - started)
        return now

    def gate_laps(self, point: str) -> Laps | None:
        """Return what times plugins that are asked before a pod's attempt begins, or None."""
        return Laps(self, point) if self._draw() < SHARE else None

    def asked(self, point: str, skipped: AbstractSet[str], times: int = 1) -> None:
        """Note that a point's plugins gave their answers, those `skipped` excepted."""
        self._tally(point, frozenset(skipped)).value += times

    def passed(self, points: Points, skipped: AbstractSet[str], nodes: int, times: Times) -> None:
        """Note that a point and the one after it went well, with so many nodes at the second."""
        last = self._last.get(points)
        if last is None or last.skipped != skipped:
            last = self._last[points] = self._passed(points, frozenset(skipped))
        started, between, ended = times
        last.first(between - started)
        last.second(ended - between)
        last.asked.value += 1
        last.asked_about_nodes.value += nodes

    def _passed(self, points: Points, skipped: frozenset[str]) -> _Passed:
        first, second = points
        return _Passed(
            skipped,
            self._point(first, Code.SUCCESS),
            self._point(second, Code.SUCCESS),
            self._tally(first, skipped),
            self._tally(second, skipped),
        )

    def _tally(self, point: str, skipped: frozenset[str]) -> Counter:
        """Return what counts for all plugins at a point but some."""
        tally = self._tallies.get((point, skipped))
        if tally is None:
            tally = self._tallies[point, skipped] = self._metrics.plugin_evaluation.shared(
                (plugin.name, point, self._profile)
                for plugin in self._plugins_at.get(point, ())
                if plugin.name not in skipped
            )
        return tally
