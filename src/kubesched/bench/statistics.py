"""Statistics: pods per second as scheduler_perf samples them, percentiles, histograms.

Pure functions of observations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

SAMPLE_INTERVAL_S = 1.0

_SERIES = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The smallest value that `percent` of all do not exceed; None if empty."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def median(values: Iterable[float | None]) -> float | None:
    """The median of the values that are not None; None if empty."""
    ordered = sorted(value for value in values if value is not None)
    if not ordered:
        return None
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def throughput_samples(
    bound_at_s: Sequence[float], *, start_s: float, interval_s: float = SAMPLE_INTERVAL_S
) -> list[float]:
    """Pods per second, interval by interval, as scheduler_perf samples them.

    The first interval with a bound pod is left out: creation begins within it. Intervals without a
    pod are merged into the next one with pods. The rest after the last whole interval is left out.
    """
    samples: list[float] = []
    ordered = sorted(bound_at_s)
    if not ordered:
        return samples
    seen = counted = skipped = 0
    for tick in range(1, math.floor((ordered[-1] - start_s) / interval_s) + 1):
        moment = start_s + tick * interval_s
        while seen < len(ordered) and ordered[seen] <= moment:
            seen += 1
        if not seen:
            continue
        if not counted:
            counted = seen
        elif seen == counted:
            skipped += 1
        else:
            rate = (seen - counted) / ((skipped + 1) * interval_s)
            samples += [rate] * (skipped + 1)
            counted, skipped = seen, 0
    return samples


Buckets = Mapping[float, float]


def histogram(text: str, name: str, labels: Mapping[str, str]) -> dict[float, float]:
    """The cumulative buckets of a histogram in Prometheus' text format, summed over its series."""
    buckets: dict[float, float] = {}
    for line in text.splitlines():
        if not line.startswith(f"{name}_bucket"):
            continue
        found = _SERIES.match(line)
        if not found or found[1] != f"{name}_bucket":
            continue
        have = dict(_LABEL.findall(found[2] or ""))
        if all(have.get(key) == value for key, value in labels.items()):
            bound = float(have["le"].replace("+Inf", "inf"))
            buckets[bound] = buckets.get(bound, 0.0) + float(found[3])
    return buckets


def difference(after: Buckets, before: Buckets) -> dict[float, float]:
    """The difference of two snapshots."""
    return {bound: count - before.get(bound, 0.0) for bound, count in after.items()}


def quantile(buckets: Buckets, fraction: float) -> float | None:
    """A quantile of a histogram, as histogram_quantile: linear within a bucket; None if empty."""
    bounds = sorted(buckets)
    total = buckets[bounds[-1]] if bounds else 0.0
    if total <= 0:
        return None
    rank, below, floor = fraction * total, 0.0, 0.0
    for bound in bounds:
        if buckets[bound] >= rank:
            if math.isinf(bound):
                return floor
            inside = buckets[bound] - below
            return floor + (bound - floor) * ((rank - below) / inside if inside else 1.0)
        below, floor = buckets[bound], bound
    return floor
