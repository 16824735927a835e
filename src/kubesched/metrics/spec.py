"""What a family of series is: name, type, labels, buckets, maturity, help text."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Stability(enum.Enum):
    """How much a family may change between releases; the value is shown before its help."""

    STABLE = "STABLE"
    BETA = "BETA"
    ALPHA = "ALPHA"
    #: no promise of Kubernetes, but of everything that exports metrics about its process
    UNMARKED = ""


class Kind(enum.Enum):
    """The type of a family; the value is what the exposition calls it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class FamilySpec(NamedTuple):
    """What a family is."""

    kind: Kind
    stability: Stability
    name: str
    summary: str
    #: in the order in which recorders give their values
    labels: tuple[str, ...] = ()
    #: upper bounds, without infinity
    buckets: tuple[float, ...] = ()
    #: exported only if this feature gate is on; "" is always
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
    """Describe something that only grows; labels are given as words."""
    return FamilySpec(Kind.COUNTER, stability, name, summary, tuple(labels.split()), gate=gate)


def gauge(
    stability: Stability, name: str, summary: str, *, labels: str = "", gate: str = ""
) -> FamilySpec:
    """Describe something that goes up and down; labels are given as words."""
    return FamilySpec(Kind.GAUGE, stability, name, summary, tuple(labels.split()), gate=gate)


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
    """Describe a distribution; labels are given as words."""
    words = tuple(labels.split())
    return FamilySpec(
        Kind.HISTOGRAM, stability, name, summary, words, buckets, gate, deprecated_since
    )


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Give bounds that grow by a factor, each the rounded product of the one before."""
    bounds = [start]
    for _ in range(count - 1):
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)
