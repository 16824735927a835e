"""Placements per second, and durations of attempts: the last minute, by sampling.

    the scheduler's counters and histograms ──once a second──> Rates

A sample is a few additions, so it is taken even if no page is open: a page shows the last minute
immediately.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final

from kubesched.clock import Clock
from kubesched.metrics.label_values import ERROR, SCHEDULED, UNSCHEDULABLE
from kubesched.metrics.recorder import Metrics
from kubesched.metrics.series import Counter, Histogram
from kubesched.web.report import Latency, Rate

HISTORY_S: Final = 60
#: The current rate is the mean over this many seconds.
RECENT_S: Final = 3


class RateSample:
    """Totals at one moment."""

    __slots__ = ("at", "durations", "placed")

    def __init__(self, at: float, placed: float, durations: Sequence[int] = ()) -> None:
        #: monotonic time in seconds
        self.at = at
        self.placed = placed
        #: attempts by bucket of their duration, cumulative
        self.durations = tuple(durations)


class Rates:
    """The last minute."""

    def __init__(
        self,
        clock: Clock,
        read: Callable[[float], RateSample],
        *,
        bounds_s: Sequence[float] = (),
    ) -> None:
        """`read` takes a sample; `bounds_s` are those of its buckets."""
        self._clock = clock
        self._read = read
        self._bounds_s = tuple(bounds_s)
        self._samples: deque[RateSample] = deque(maxlen=HISTORY_S + 1)

    async def run(self) -> None:
        """Take samples until cancelled."""
        while True:
            self.sample()
            await asyncio.sleep(1.0)

    def sample(self) -> None:
        """Take a sample."""
        self._samples.append(self._read(self._clock.monotonic()))

    def rate(self) -> Rate:
        """Return the placements in each of the last seconds."""
        samples = list(self._samples)
        history = [_per_second(before, after) for before, after in pairwise(samples)]
        padded = [0.0] * (HISTORY_S - len(history)) + history
        recent = samples[-RECENT_S - 1 :]
        now = _per_second(recent[0], recent[-1]) if len(recent) > 1 else 0.0
        return Rate(per_second=now, history=tuple(padded))

    def latency(self) -> Latency:
        """Return the median and 99th percentile of attempts."""
        if not self._samples or not self._bounds_s:
            return Latency()
        first, last = self._samples[0].durations, self._samples[-1].durations
        counts = [max(after - before, 0) for before, after in zip(first, last, strict=True)]
        if not counts or not counts[-1]:
            return Latency()
        return Latency(self._quantile_ms(counts, 0.5), self._quantile_ms(counts, 0.99))

    def _quantile_ms(self, counts: Sequence[int], share: float) -> float:
        """Estimate a quantile as Prometheus does: evenly spread within its bucket."""
        wanted = share * counts[-1]
        lower_s, below = 0.0, 0
        for bound_s, count in zip(self._bounds_s, counts, strict=False):
            if count >= wanted:
                inside = (wanted - below) / (count - below) if count > below else 1.0
                return round(1000 * (lower_s + (bound_s - lower_s) * inside), 3)
            lower_s, below = bound_s, count
        return round(1000 * lower_s, 3)  # beyond the last bucket


def _per_second(before: RateSample, after: RateSample) -> float:
    passed = after.at - before.at
    # Counters restart from zero when the metrics are reset.
    return round(max(after.placed - before.placed, 0) / passed, 1) if passed > 0 else 0.0


def of_metrics(metrics: Metrics, clock: Clock, profiles: Callable[[], Iterable[str]]) -> Rates:
    """Return the rates of a scheduler, from its metrics."""
    bounds_s = metrics.scheduling_attempt_duration.spec.buckets
    #: by profile; looked up only once each, since a lookup is counted where labels are restricted
    known: dict[str, tuple[Counter, tuple[Histogram, ...]]] = {}

    def read(at: float) -> RateSample:
        for profile in profiles():
            if profile not in known:
                known[profile] = _series(metrics, profile)
        # Where labels are restricted, profiles may share a series.
        counters = {id(counter): counter for counter, _ in known.values()}
        histograms = {id(each): each for _, of_profile in known.values() for each in of_profile}
        total = [0] * (len(bounds_s) + 1)
        for histogram in histograms.values():
            total = [sum(pair) for pair in zip(total, histogram.cumulative(), strict=True)]
        return RateSample(at, sum(counter.value for counter in counters.values()), total)

    return Rates(clock, read, bounds_s=bounds_s)


def _series(metrics: Metrics, profile: str) -> tuple[Counter, tuple[Histogram, ...]]:
    counter = metrics.schedule_attempts.labels(SCHEDULED, profile)
    # Looking at a series must not export it.
    counter.silent = counter.silent or not counter.value
    histograms = tuple(
        metrics.scheduling_attempt_duration.labels(result, profile)
        for result in (SCHEDULED, UNSCHEDULABLE, ERROR)
    )
    for histogram in histograms:
        histogram.silent = histogram.silent or not histogram.count
    return counter, histograms
