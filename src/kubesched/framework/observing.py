"""What a profile's framework tells of its work: how long points take, how often plugins are asked.

Extension points are timed in every attempt, single plugins in one attempt out of ten: that is
enough to find a slow one, and costs a tenth. Answers that come from a cache count as asked; what is
timed is what was really done.

An attempt outlives its turn: while its pod is bound, others have theirs. So whether its plugins are
timed stands in its state.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from kubesched.framework.plugin import Plugin
from kubesched.framework.status import Code
from kubesched.metrics.recorder import Metrics
from kubesched.metrics.series import NOTED, Counter, Histogram

#: The share of attempts whose plugins are timed.
SHARE = 0.1
#: Notes how an extension point ended that began at some time; returns the time.
Stopwatch = Callable[[Code, float], float]
#: The same for one of the plugins that are asked there, in attempts whose plugins are timed.
Lap = Callable[[str, Code, float], float]


class Unobserved:
    """Nobody wants to know."""

    #: whether this attempt's plugins are timed
    sampled = False

    def __init__(self, timer: Callable[[], float] = lambda: 0.0) -> None:
        #: returns the time, in seconds since some moment
        self.now = timer

    def expect(self, point: str, plugins: Sequence[Plugin]) -> None:
        """Hear which plugins may be asked at a point."""

    def begin(self) -> float:
        """Note that an attempt begins; return the time."""
        return 0.0

    def stopwatch(self, point: str) -> Stopwatch:  # noqa: ARG002 (nobody cares)
        """Return what notes that an extension point is through."""
        return lambda _code, _started: 0.0

    def blank(self, point: str, code: Code = Code.SUCCESS) -> Histogram:  # noqa: ARG002 (as above)
        """Return where it is noted that there was nothing to do at a point: in its `zeros`."""
        return Histogram(())

    def lap(self, point: str) -> Lap:  # noqa: ARG002 (as above)
        """Return what notes that a plugin is through at a point."""
        return lambda _plugin, _code, _started: 0.0

    def samples_gate(self) -> bool:
        """Tell whether plugins are timed that are asked now, before a pod's attempt begins."""
        return False

    def asked(self, point: str, skipped: frozenset[str], times: int = 1) -> None:
        """Note that a point's plugins gave their answers, those `skipped` excepted."""


class Sample:
    """Which ones of many are looked at: how many are left until the next, drawn each time.

    Counting to ten would fall into step with those who ask twice for an attempt.
    """

    __slots__ = ("_log_of_others", "_random", "left")

    def __init__(self, share: float, *, seed: int) -> None:
        self._random = random.Random(seed).random  # noqa: S311 (a sample, not a secret)
        self._log_of_others = math.log(1 - share) if share < 1 else -math.inf
        #: count it down; at 0 it is one of them
        self.left = 0
        self.draw()

    def draw(self) -> int:
        """Set and return how many are left until the next."""
        self.left = int(math.log(1 - self._random()) / self._log_of_others) + 1
        return self.left


class Observer(Unobserved):
    """Records what happens in one profile."""

    def __init__(self, metrics: Metrics, profile: str, *, timer: Callable[[], float]) -> None:
        super().__init__(timer)
        self._metrics = metrics
        self._profile = profile
        #: of attempts, and of what is asked before there is one
        self._attempts, self._gates = Sample(SHARE, seed=1), Sample(SHARE, seed=2)
        #: point → what notes that a plugin is through
        self._laps: dict[str, Lap] = {}
        #: point → plugins that may be asked there
        self._plugins_at: dict[str, Sequence[Plugin]] = {}
        #: what counts for all plugins that are asked at a point, by those that are not
        self._tallies: dict[tuple[str, frozenset[str]], Counter] = {}
        #: what is noted straight into, and for how many more attempts and gates it has room
        self._noted: list[Histogram] = []
        self._room = NOTED - self._attempts.left - self._gates.left

    def expect(self, point: str, plugins: Sequence[Plugin]) -> None:
        """Show plugins before they are first asked: nobody alerts on a series that is not there."""
        self._plugins_at[point] = plugins
        for plugin in plugins:
            self._metrics.plugin_evaluation.labels(plugin.name, point, self._profile)

    def begin(self) -> float:
        """Note that an attempt begins; return the time."""
        sample = self._attempts
        sample.left -= 1
        if sample.left:
            self.sampled = False
        else:
            self.sampled = True
            self._count_in(sample.draw())
        return self.now()

    def _count_in(self, coming: int) -> None:
        """See to it that what is noted has room for so many more attempts or gates."""
        self._room -= coming
        if self._room < 0:
            self._room = NOTED - self._attempts.left - self._gates.left
            for each in self._noted:
                each.fold()

    def _into(self, histogram: Histogram) -> Callable[[float], None]:
        """Return what notes a value: few of them for each attempt or gate."""
        self._noted.append(histogram)
        return histogram.note

    def stopwatch(self, point: str) -> Stopwatch:
        """Return what notes that an extension point is through.

        It is made once and used for every pod, so what it needs is at hand.
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
        """Return where it is noted that there was nothing to do at a point: in its `zeros`."""
        series = self._duration(point, code)
        # Nobody is shown a point that there was never anything at.
        series.silent = True
        return series

    def _duration(self, point: str, code: Code) -> Histogram:
        durations = self._metrics.framework_extension_point_duration
        return durations.labels(point, code.label, self._profile)

    def lap(self, point: str) -> Lap:
        """Return what notes that a plugin is through at a point; made once, as a stopwatch is."""
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
        """Tell whether plugins are timed that are asked now, before a pod's attempt begins."""
        sample = self._gates
        sample.left -= 1
        if sample.left:
            return False
        self._count_in(sample.draw())
        return True

    def asked(self, point: str, skipped: frozenset[str], times: int = 1) -> None:
        """Note that a point's plugins gave their answers, those `skipped` excepted."""
        key = point, skipped
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = self._metrics.plugin_evaluation.shared(
                (plugin.name, point, self._profile)
                for plugin in self._plugins_at.get(point, ())
                if plugin.name not in skipped
            )
        tally.value += times
