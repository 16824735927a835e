"""Single series: a counter, a gauge, a histogram. Recorders keep them and add to them.

There are no locks: one thread owns all state, and an addition is all that a record may cost.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate

#: From so many values on, arrays count faster than we do.
_MANY = 32
#: So many values are noted before they are counted in.
NOTED = 4096
#: What is read when somebody looks, instead of being recorded.
Read = Callable[[], float]


class Counter:
    """Something that only grows, until it is reset."""

    __slots__ = ("_before", "_others", "silent", "value")

    def __init__(self) -> None:
        #: what was recorded; ``counter.value += 1`` is the cheapest way to record
        self.value: float = 0
        #: not shown while it is zero: so are those with labels after a reset
        self.silent = False
        #: what others count that belongs to it, and how much of that came too early
        self._others: list[Read] = []
        self._before: float = 0

    def inc(self, amount: float = 1) -> None:
        """Add to it."""
        self.value += amount

    def set_function(self, read: Read) -> None:
        """Show what somebody else counts, from now on."""
        self._others = [read]

    def include(self, shared: Counter) -> None:
        """Count what is added to another one, from now on."""
        self._before += shared.value
        self._others.append(shared.read)

    def read(self) -> float:
        """Give what it stands at."""
        if not self._others:
            return self.value
        return self.value + sum(read() for read in self._others) - self._before

    def reset(self) -> None:
        """Start from zero again."""
        self.value = 0
        self._before = sum(read() for read in self._others)


class Gauge:
    """Something that goes up and down."""

    __slots__ = ("_read", "value")

    def __init__(self) -> None:
        self.value: float = 0
        self._read: Read | None = None

    def set(self, value: float) -> None:
        """Say what it is."""
        self.value = value

    def inc(self, amount: float = 1) -> None:
        """Say that it rose."""
        self.value += amount

    def dec(self, amount: float = 1) -> None:
        """Say that it fell."""
        self.value -= amount

    def set_function(self, read: Read) -> None:
        """Show what a function returns, from now on; it is called once a scrape."""
        self._read = read

    def read(self) -> float:
        """Give what it stands at."""
        return self.value if self._read is None else self._read()


class Histogram:
    """A distribution: how many values were at most as large as each bound, and their sum.

    Values are noted, and counted in when there are many of them or somebody looks: that is a
    fraction of the cost of counting each one in.
    """

    __slots__ = ("_bounds", "_bundles", "_counts", "_noted", "_sum", "silent")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        #: values in each bucket alone; the last is for those above all bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum: float = 0
        self._noted = array("d")
        #: where more is noted that belongs to it
        self._bundles: list[Bundle] = []
        #: not shown while it is empty: so are those with labels after a reset
        self.silent = False

    def observe(self, value: float) -> None:
        """Count a value in."""
        noted = self._noted
        noted.append(value)
        if len(noted) >= NOTED:
            self._fold()

    def join(self, bundle: Bundle) -> None:
        """Count in what a bundle notes for it."""
        self._bundles.append(bundle)

    def take(self, values: array[float]) -> None:
        """Count many values in."""
        if len(values) < _MANY:
            for value in values:
                self._counts[bisect_left(self._bounds, value)] += 1
            self._sum += sum(values)
            return
        # Not for those who only want to know the version.
        import numpy as np  # noqa: PLC0415

        together = np.array(values)
        buckets = np.searchsorted(self._bounds, together)
        added = np.bincount(buckets, minlength=len(self._counts)).tolist()
        self._counts = [old + new for old, new in zip(self._counts, added, strict=True)]
        self._sum += together.sum().item()

    def _fold(self) -> None:
        """Count in what was noted."""
        for bundle in self._bundles:
            bundle.fold()
        if self._noted:
            self.take(self._noted)
            del self._noted[:]

    @property
    def sum(self) -> float:
        """All values together."""
        self._fold()
        return self._sum

    @property
    def count(self) -> int:
        """How many values there were."""
        return self.cumulative()[-1]

    def cumulative(self) -> list[int]:
        """Give how many values each bound covers; the last is how many there were."""
        self._fold()
        return list(accumulate(self._counts))

    def reset(self) -> None:
        """Forget all values."""
        self._fold()
        self._counts = [0] * len(self._counts)
        self._sum = 0


class Bundle:
    """Histograms that always get a value each at the same time, which costs as much as one."""

    __slots__ = ("_histograms", "_noted")

    def __init__(self, *histograms: Histogram) -> None:
        self._histograms = histograms
        #: a value for each histogram, and again
        self._noted = array("d")
        for each in histograms:
            each.join(self)

    def observe(self, values: tuple[float, ...]) -> None:
        """Count a value in for each histogram, in their order."""
        noted = self._noted
        noted.extend(values)
        if len(noted) >= NOTED:
            self.fold()

    def fold(self) -> None:
        """Give histograms what was noted for them."""
        noted, self._noted = self._noted, array("d")
        if noted:
            width = len(self._histograms)
            for number, histogram in enumerate(self._histograms):
                histogram.take(noted[number::width])
