"""Whether memory grows: a line through the second half of a run, and how sure its slope is.

    samples of the second half ──> means of twelve stretches ──> line ──> slope ± t · its error

Memory goes up and down with the garbage collector and with what is under way, for minutes at a
time, so neighbouring samples say nearly the same, and an interval that took them for independent
would be far too narrow. Means of stretches are nearly independent; what correlation is left between
their deviations reduces how many of them count (Santer et al. 2000, J. Geophys. Res. 105, 7337).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

import msgspec
import numpy as np

#: Stretches of the second half.
STRETCHES = 12
CONFIDENCE = 0.95
#: A run whose interval reaches beyond this has seen too little: 50 bytes for each change.
TELLING_MIB = 50.0

#: (millions of changes, MiB), ascending
Points = Sequence[tuple[float, float]]


class Verdict(enum.Enum):
    """What a run says about growth."""

    PASS = "pass"
    FAIL = "fail"
    TOO_SHORT = "too short to tell"


class Growth(msgspec.Struct, frozen=True):
    """MiB per million changes, and the interval in which that is with a confidence of 95 %."""

    slope: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """Fail if memory grows for sure; pass if growth that matters can be ruled out."""
        if self.low > 0:
            return Verdict.FAIL
        return Verdict.PASS if self.high <= TELLING_MIB else Verdict.TOO_SHORT

    def __str__(self) -> str:
        return (
            f"{self.slope:+.1f} MiB per million changes "
            f"({self.low:+.1f} to {self.high:+.1f}): {self.verdict.value}"
        )


def growth(points: Points) -> Growth | None:
    """Fit the second half of a run; None if it has too few samples."""
    if len(points) < 2:
        return None
    middle = (points[0][0] + points[-1][0]) / 2
    means = stretches([each for each in points if each[0] >= middle])
    if len(means) < STRETCHES:
        return None
    slope, error, freedom = line(means)
    around = student(freedom) * error
    return Growth(slope, slope - around, slope + around)


def stretches(points: Points) -> list[tuple[float, float]]:
    """The means of equally long stretches; a stretch without a sample is left out."""
    first, last = points[0][0], points[-1][0]
    width = (last - first) / STRETCHES or 1.0
    found: dict[int, list[tuple[float, float]]] = {}
    for x, y in points:
        found.setdefault(min(int((x - first) / width), STRETCHES - 1), []).append((x, y))
    return [(fmean(x for x, _ in each), fmean(y for _, y in each)) for each in found.values()]


def line(points: Points) -> tuple[float, float, float]:
    """The slope of the line of least squares, its standard error, and its degrees of freedom."""
    mean_x, mean_y = fmean(x for x, _ in points), fmean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    off = [y - mean_y - slope * (x - mean_x) for x, y in points]
    squares = sum(each**2 for each in off)
    if not squares:
        return slope, 0.0, len(points) - 2.0
    alike = max(0.0, sum(a * b for a, b in pairwise(off)) / squares)
    counted = len(points) * (1 - alike) / (1 + alike)
    freedom = max(counted - 2.0, 1.0)
    return slope, math.sqrt(squares / freedom / spread), freedom


def student(freedom: float) -> float:
    """The two-sided quantile of Student's t distribution, for one degree of freedom and more.

    With t = sqrt(freedom) * tan(angle), its density is cos(angle) ** (freedom - 1).
    """
    angles = np.linspace(0, np.pi / 2, 20_001)
    density = np.cos(angles) ** (freedom - 1)
    covered = np.cumsum((density[1:] + density[:-1]) / 2)
    angle = np.interp(CONFIDENCE, covered / covered[-1], angles[1:])
    return float(np.sqrt(freedom) * np.tan(angle))
