"""Single series: a counter, a gauge, a histogram. Recorders keep them and add to them.

There are no locks: one thread owns all state, and an addition is all that a record may cost.
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
        #: values of zero that are not counted in yet; ``histogram.zeros += 1`` records one
        self.zeros = 0
        self._bounds = bounds
        #: the same as an array, once it is needed
        self._edges: FloatArray | None = None
        #: values in each bucket alone; the last is for those above all bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum: float = 0
        self._noted: list[float] = []
        #: the cheapest way to record a value, for those who call `fold` before there are many
        self.note = self._noted.append
        #: where more is noted that belongs to it
        self._bundles: list[Bundle] = []
        #: not shown while it is empty: so are those with labels after a reset
        self.silent = False

    def observe(self, value: float) -> None:
        """Count a value in."""
        noted = self._noted
        noted.append(value)
        if len(noted) >= NOTED:
            self.fold()

    def join(self, bundle: Bundle) -> None:
        """Count in what a bundle notes for it."""
        self._bundles.append(bundle)

    def take(self, values: Sequence[float]) -> None:
        """Count values in."""
        for value in values:
            self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += sum(values)

    def take_many(self, values: FloatArray) -> None:
        """Count values in, where arrays are faster."""
        import numpy as np  # noqa: PLC0415 (not for those who only want to know the version)

        if self._edges is None:
            self._edges = np.array(self._bounds, dtype=np.float64)
        buckets = self._edges.searchsorted(values)
        added = np.bincount(buckets, minlength=len(self._counts)).tolist()
        self._counts = [old + new for old, new in zip(self._counts, added, strict=True)]
        self._sum += values.sum().item()

    def fold(self) -> None:
        """Count in what was noted."""
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
        """All values together."""
        self.fold()
        return self._sum

    @property
    def count(self) -> int:
        """How many values there were."""
        return self.cumulative()[-1]

    def cumulative(self) -> list[int]:
        """Give how many values each bound covers; the last is how many there were."""
        self.fold()
        return list(accumulate(self._counts))

    def reset(self) -> None:
        """Forget all values."""
        self.fold()
        self._counts = [0] * len(self._counts)
        self._sum = 0


class Bundle:
    """Histograms that always get a value each at the same time, which costs as much as one."""

    __slots__ = ("_histograms", "_noted", "note")

    def __init__(self, *histograms: Histogram) -> None:
        self._histograms = histograms
        self._noted: list[tuple[float, ...]] = []
        #: as a histogram's
        self.note = self._noted.append
        for each in histograms:
            each.join(self)

    def observe(self, values: tuple[float, ...]) -> None:
        """Count a value in for each histogram, in their order."""
        noted = self._noted
        noted.append(values)
        if len(noted) >= NOTED:
            self.fold()

    def fold(self) -> None:
        """Give histograms what was noted for them."""
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
    import numpy as np  # noqa: PLC0415 (as above)

    return np.fromiter(values, dtype=np.float64, count=count)
