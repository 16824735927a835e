"""The definition of a metric family: name, type, labels, buckets, stability, help text."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Stability(enum.Enum):
    """How much a family may change between releases; shown before its help."""

    STABLE = "STABLE"
    BETA = "BETA"
    ALPHA = "ALPHA"
    #: not promised by Kubernetes, but common to all process exporters
    UNMARKED = ""


class MetricKind(enum.Enum):
    """The type of a family, as in the exposition format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class FamilySpec(NamedTuple):
    """The definition of a family."""

    kind: MetricKind
    stability: Stability
    name: str
    summary: str
    #: in the order in which recorders pass their values
    labels: tuple[str, ...] = ()
    #: upper bounds, without infinity
    buckets: tuple[float, ...] = ()
    #: exported only if this feature gate is enabled; "" is always
    gate: str = ""
    #: the release that deprecates it; an ALPHA family is hidden from then on
    deprecated_since: str = ""

    @property
    def help(self) -> str:
        """The help text as it is exposed."""
        deprecated = self.deprecated_since and f"(Deprecated since {self.deprecated_since}) "
        stability = self.stability.value and f"[{self.stability.value}] "
        return f"{stability}{deprecated}{self.summary}"


def counter(
    stability: Stability, name: str, summary: str, *, labels: str = "", gate: str = ""
) -> FamilySpec:
    """Define a counter; labels are separated by spaces."""
    return FamilySpec(
        MetricKind.COUNTER, stability, name, summary, tuple(labels.split()), gate=gate
    )


def gauge(
    stability: Stability, name: str, summary: str, *, labels: str = "", gate: str = ""
) -> FamilySpec:
    """Define a gauge; labels are separated by spaces."""
    return FamilySpec(MetricKind.GAUGE, stability, name, summary, tuple(labels.split()), gate=gate)


def histogram(
    stability: Stability,
    name: str,
    summary: str,
    *,
    buckets: tuple[float, ...],
    labels: str = "",
    gate: str = "",
    deprecated_since: str = "",
) -> FamilySpec:
    """Define a histogram; labels are separated by spaces."""
    words = tuple(labels.split())
    return FamilySpec(
        MetricKind.HISTOGRAM, stability, name, summary, words, buckets, gate, deprecated_since
    )


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return bounds that grow by a factor, each the rounded product of the previous one."""
    bounds = [start]
    for _ in range(count - 1):
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)
