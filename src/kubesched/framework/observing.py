"""What a profile's framework tells of its work: how long points take, how often plugins are asked.

Extension points are timed in every attempt, single plugins in one attempt out of ten: that is
enough to find a slow one, and costs a tenth. Answers that come from a cache count as asked; what is
timed is what was really done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from kubesched.framework.plugin import Plugin
from kubesched.framework.status import Code
from kubesched.metrics.recorder import Metrics
from kubesched.metrics.series import Counter

#: One attempt in so many has its plugins timed.
SAMPLING = 10


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

    def plugin(self, point: str, plugin: str, code: Code, started: float) -> None:
        """Note that a plugin is through; only to be called if `sampled`."""

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
        self._attempts = 0
        self._points: dict[tuple[str, Code], Callable[[float], None]] = {}
        self._counters: dict[tuple[str, str], Counter] = {}

    def expect(self, point: str, plugins: Iterable[Plugin]) -> None:
        """Show plugins before they are first asked: nobody alerts on a series that is not there."""
        for plugin in plugins:
            self._counter(point, plugin.name)

    def begin(self) -> float:
        """Note that an attempt begins; return the time."""
        self._attempts += 1
        self.sampled = self._attempts % SAMPLING == 1
        return self._timer()

    def now(self) -> float:
        """Return the time, in seconds since some moment."""
        return self._timer()

    def point(self, point: str, code: Code, started: float) -> float:
        """Note that an extension point is through; return the time."""
        now = self._timer()
        observe = self._points.get((point, code))
        if observe is None:
            durations = self._metrics.framework_extension_point_duration
            observe = durations.labels(point, code.label, self._profile).observe
            self._points[point, code] = observe
        observe(now - started)
        return now

    def plugin(self, point: str, plugin: str, code: Code, started: float) -> None:
        """Note that a plugin is through; only to be called if `sampled`."""
        durations = self._metrics.plugin_execution_duration
        durations.labels(plugin, point, code.label).observe(self._timer() - started)

    def asked(
        self, point: str, plugins: Sequence[Plugin], skipped: Collection[str], times: int = 1
    ) -> None:
        """Note that plugins gave their answers, those `skipped` excepted."""
        for plugin in plugins:
            name = plugin.name
            if name not in skipped:
                counter = self._counters.get((point, name)) or self._counter(point, name)
                counter.value += times

    def _counter(self, point: str, plugin: str) -> Counter:
        counter = self._metrics.plugin_evaluation.labels(plugin, point, self._profile)
        self._counters[point, plugin] = counter
        return counter
