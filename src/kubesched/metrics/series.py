"""Single series: a counter, a gauge, a histogram. Recorders keep and update them.

There are no locks: one thread owns all state, and recording must cost no more than an addition.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]
    FloatTable = np.ndarray[tuple[int, int], np.dtype[np.float64]]

#: From this many values on, arrays are faster.
_MANY = 32
#: Size of a histogram's buffer.
NOTED = 4096
#: Read at a scrape, instead of recorded.
Read = Callable[[], float]


class Counter:
    """A number that only grows, until it is reset."""

    __slots__ = ("_before", "_others", "silent", "value")

    def __init__(self) -> None:
        #: the recorded value; ``counter.value += 1`` is the cheapest way to record
        self.value: float = 0
        #: not exported while zero: as those with labels after a reset
        self.silent = False
        #: shared counters that it includes, and their values when included
        self._others: list[Read] = []
        self._before: float = 0

    def inc(self, amount: float = 1) -> None:
        """Add to it."""
        self.value += amount

    def set_function(self, read: Read) -> None:
        """Export the value of a function from now on."""
        self._others = [read]

    def include(self, shared: Counter) -> None:
        """Include another counter, from now on."""
        self._before += shared.value
        self._others.append(shared.read)

    def read(self) -> float:
        """Return the current value."""
        if not self._others:
            return self.value
        return self.value + sum(read() for read in self._others) - self._before

    def reset(self) -> None:
        """Start from zero again."""
        self.value = 0
        self._before = sum(read() for read in self._others)


class Gauge:
    """A number that goes up and down."""

    __slots__ = ("_read", "value")

    def __init__(self) -> None:
        self.value: float = 0
        self._read: Read | None = None

    def set(self, value: float) -> None:
        """Set the value."""
        self.value = value

    def inc(self, amount: float = 1) -> None:
        """Increment."""
        self.value += amount

    def set_function(self, read: Read) -> None:
        """Export the value of a function; called once per scrape."""
        self._read = read

    def read(self) -> float:
        """Return the current value."""
        return self.value if self._read is None else self._read()


class Histogram:
    """A distribution: the number of values up to each bound, and their sum.

    Values are buffered, and counted when the buffer is full or at a scrape: that is a fraction of
    the cost of counting each one.
    """

    __slots__ = (
        "_bounds",
        "_bundles",
        "_counts",
        "_edges",
        "_noted",
        "_sum",
        "note",
        "silent",
        "zeros",
    )

    def __init__(self, bounds: Sequence[float]) -> None:
        #: values of zero that are not counted yet; ``histogram.zeros += 1`` records one
        self.zeros = 0
        self._bounds = bounds
        #: the same as an array; created on demand
        self._edges: FloatArray | None = None
        #: values in each bucket alone; the last is for those above all bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum: float = 0
        self._noted: list[float] = []
        #: the cheapest way to record a value, for callers that `fold` before the buffer is full
        self.note = self._noted.append
        #: bundles that buffer values for it
        self._bundles: list[Bundle] = []
        #: not exported while empty: as those with labels after a reset
        self.silent = False

    def observe(self, value: float) -> None:
        """Record a value."""
        noted = self._noted
        noted.append(value)
        if len(noted) >= NOTED:
            self.fold()

    def join(self, bundle: Bundle) -> None:
        """Add a bundle that buffers values for it."""
        self._bundles.append(bundle)

    def take(self, values: Sequence[float]) -> None:
        """Count values."""
        for value in values:
            self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += sum(values)

    def take_many(self, values: FloatArray) -> None:
        """Count values, where arrays are faster."""
        import numpy as np  # noqa: PLC0415 (not loaded for --version)

        if self._edges is None:
            self._edges = np.array(self._bounds, dtype=np.float64)
        buckets = self._edges.searchsorted(values)
        added = np.bincount(buckets, minlength=len(self._counts)).tolist()
        self._counts = [old + new for old, new in zip(self._counts, added, strict=True)]
        self._sum += values.sum().item()

    def fold(self) -> None:
        """Count the buffered values."""
        for bundle in self._bundles:
            bundle.fold()
        self._counts[bisect_left(self._bounds, 0)] += self.zeros
        self.zeros = 0
        noted = self._noted.copy()
        self._noted.clear()
        if len(noted) < _MANY:
            self.take(noted)
        else:
            self.take_many(_as_array(noted, len(noted)))

    @property
    def sum(self) -> float:
        """The sum of all values."""
        self.fold()
        return self._sum

    @property
    def count(self) -> int:
        """The number of values."""
        return self.cumulative()[-1]

    def cumulative(self) -> list[int]:
        """Return the cumulative count of each bound; the last is the total."""
        self.fold()
        return list(accumulate(self._counts))

    def reset(self) -> None:
        """Drop all values."""
        self.fold()
        self._counts = [0] * len(self._counts)
        self._sum = 0


class Bundle:
    """Histograms that always get a value each at the same time, at the cost of one."""

    __slots__ = ("_histograms", "_noted", "note")

    def __init__(self, *histograms: Histogram) -> None:
        self._histograms = histograms
        self._noted: list[tuple[float, ...]] = []
        #: the buffer, as a histogram's
        self.note = self._noted.append
        for each in histograms:
            each.join(self)

    def observe(self, values: tuple[float, ...]) -> None:
        """Record a value for each histogram, in order."""
        noted = self._noted
        noted.append(values)
        if len(noted) >= NOTED:
            self.fold()

    def fold(self) -> None:
        """Pass buffered values to the histograms."""
        noted = self._noted.copy()
        self._noted.clear()
        if len(noted) < _MANY:
            self._hand_over(noted)
            return
        together = _as_array(chain.from_iterable(noted), len(noted[0]) * len(noted))
        self._hand_over_many(together.reshape(len(noted), -1))

    def _hand_over(self, noted: list[tuple[float, ...]]) -> None:
        for histogram, values in zip(self._histograms, zip(*noted, strict=True), strict=False):
            histogram.take(values)

    def _hand_over_many(self, noted: FloatTable) -> None:
        for histogram, values in zip(self._histograms, noted.T, strict=True):
            histogram.take_many(values)


def _as_array(values: Iterable[float], count: int) -> FloatArray:
    import numpy as np  # noqa: PLC0415 (not loaded for --version)

    return np.fromiter(values, dtype=np.float64, count=count)
