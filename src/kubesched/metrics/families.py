"""Metric families: the series of one name, distinguished by label values.

    labels("scheduled", "default-scheduler") ──▶ the series with these values, created on first
                                                 use; the recorder keeps it
    text() ──▶ help, type and a line per number; empty while there is no series

A family without labels has one series from the start. Values that exist anyway, by label values,
need not be recorded: ``set_function`` reads them at a scrape.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, Protocol, TypeVar

from kubesched.metrics.exposition import bound_text, header, label_text, number_text
from kubesched.metrics.series import Counter, Gauge, Histogram
from kubesched.metrics.spec import FamilySpec

#: Values of labels, in the order of the table.
LabelValues = tuple[str, ...]

#: Replaces label values that an allow-list does not contain.
UNEXPECTED: Final = "unexpected"


class Numbers(Protocol):
    """Numbers by label values, such as a ``dict`` or a ``collections.Counter`` of tuples."""

    def items(self) -> Iterable[tuple[LabelValues, float]]:
        """Yield label values with their number."""


ReadAll = Callable[[], Numbers]

SeriesT = TypeVar("SeriesT", Counter, Gauge, Histogram)
NumberT = TypeVar("NumberT", Counter, Gauge)


class Family(ABC, Generic[SeriesT]):
    """The series of one name."""

    def __init__(self, spec: FamilySpec) -> None:
        self.spec = spec
        self._series: dict[LabelValues, SeriesT] = {}
        #: label → its allowed values; a missing label may have any
        self._allowed: Mapping[str, frozenset[str]] = {}
        self._unexpected = Counter()
        if not spec.labels:
            self.labels()

    def labels(self, *values: str) -> SeriesT:
        """Return the series with these label values, in the table's order; the caller keeps it."""
        series = self._series.get(values)
        return self._constrained(values) if series is None else series

    def restrict(self, allowed: Mapping[str, frozenset[str]], unexpected: Counter) -> None:
        """Restrict labels to these values; others are replaced, and counted."""
        self._allowed, self._unexpected = allowed, unexpected

    def text(self) -> str:
        """Format the family; empty if there is nothing to export."""
        body = "".join(self._lines())
        return header(self.spec) + body if body else ""

    @abstractmethod
    def reset(self) -> None:
        """Reset; series that recorders keep stay valid."""

    @abstractmethod
    def _make(self) -> SeriesT: ...

    @abstractmethod
    def _lines(self) -> list[str]: ...

    def _constrained(self, values: LabelValues) -> SeriesT:
        names = self.spec.labels
        if len(values) != len(names):
            wanted = ", ".join(names) or "no labels"
            raise ValueError(f"{self.spec.name} has {wanted}; got {len(values)} values: {values}")
        permitted = []
        for name, value in zip(names, values, strict=True):
            if value in self._allowed.get(name, (value,)):
                permitted.append(value)
            else:
                permitted.append(UNEXPECTED)
                self._unexpected.inc()
        return self._series.setdefault(tuple(permitted), self._make())

    def _label_text(self, values: LabelValues) -> str:
        return label_text(sorted(zip(self.spec.labels, values, strict=True)))


class _NumberFamily(Family[NumberT]):
    """A family with one line per series."""

    def __init__(self, spec: FamilySpec) -> None:
        self._read_all: ReadAll | None = None
        #: values of the function at the last reset
        self._before: Mapping[LabelValues, float] = {}
        #: label values → the line without its number
        self._starts: dict[LabelValues, str] = {}
        super().__init__(spec)

    def set_function(self, read_all: ReadAll) -> None:
        """Export the values of a function instead of recorded ones."""
        self._read_all = read_all

    def _refresh(self) -> None:
        if self._read_all is None:
            return
        for series in self._series.values():
            series.value = 0
        for values, number in self._read_all().items():
            self.labels(*values).value += number - self._before.get(values, 0)

    def _lines(self) -> list[str]:
        self._refresh()
        lines = []
        for values, series in self._series.items():
            number = series.read()
            if number or not self._is_silent(series):
                lines.append(f"{self._start(values)}{number_text(number)}\n")
        lines.sort()
        return lines

    def _start(self, values: LabelValues) -> str:
        start = self._starts.get(values)
        if start is None:
            text = self._label_text(values)
            start = f"{self.spec.name}{{{text}}} " if text else f"{self.spec.name} "
            self._starts[values] = start
        return start

    @abstractmethod
    def _is_silent(self, series: NumberT) -> bool: ...


class CounterFamily(_NumberFamily[Counter]):
    """Counters of one name."""

    def __init__(self, spec: FamilySpec) -> None:
        self._shared: dict[tuple[LabelValues, ...], Counter] = {}
        super().__init__(spec)

    def shared(self, all_values: Iterable[LabelValues]) -> Counter:
        """Return a counter that counts for several series at once; the caller keeps it."""
        key = tuple(all_values)
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = Counter()
            for values in key:
                self.labels(*values).include(shared)
        return shared

    def reset(self) -> None:
        """Start from zero; with labels, a series is exported again once it is recorded."""
        if self._read_all is not None:
            self._before = dict(self._read_all().items())
        for series in self._series.values():
            series.reset()
            series.silent = bool(self.spec.labels)

    def _make(self) -> Counter:
        return Counter()

    def _is_silent(self, series: Counter) -> bool:
        return series.silent


class GaugeFamily(_NumberFamily[Gauge]):
    """Gauges of one name."""

    def reset(self) -> None:
        """Do nothing: a gauge is a current value."""

    def _make(self) -> Gauge:
        return Gauge()

    def _is_silent(self, series: Gauge) -> bool:  # noqa: ARG002 (counters can be)
        return False


class HistogramFamily(Family[Histogram]):
    """Histograms of one name."""

    def __init__(self, spec: FamilySpec) -> None:
        self._bounds = [bound_text(bound) for bound in (*spec.buckets, float("inf"))]
        #: label values → prefixes of the lines of buckets, sum and count
        self._starts: dict[LabelValues, list[str]] = {}
        super().__init__(spec)

    def reset(self) -> None:
        """Drop all values; with labels, a series is exported again once it is recorded."""
        for series in self._series.values():
            series.reset()
            series.silent = bool(self.spec.labels)

    def _make(self) -> Histogram:
        return Histogram(self.spec.buckets)

    def _lines(self) -> list[str]:
        lines = []
        for values in sorted(self._series, key=self._start):
            series = self._series[values]
            counts = series.cumulative()
            if counts[-1] or not series.silent:
                *buckets, total, count = self._start(values)
                lines += [
                    f"{start}{number}\n" for start, number in zip(buckets, counts, strict=True)
                ]
                lines.append(f"{total}{number_text(series.sum)}\n{count}{counts[-1]}\n")
        return lines

    def _start(self, values: LabelValues) -> list[str]:
        starts = self._starts.get(values)
        if starts is None:
            name, text = self.spec.name, self._label_text(values)
            comma = "," if text else ""
            starts = [f'{name}_bucket{{{text}{comma}le="{bound}"}} ' for bound in self._bounds]
            braces = f"{{{text}}}" if text else ""
            starts += [f"{name}_sum{braces} ", f"{name}_count{braces} "]
            self._starts[values] = starts
        return starts
