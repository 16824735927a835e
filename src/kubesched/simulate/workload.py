"""Generated workloads: arrivals and lifetimes of pods, and node changes.

    kind: Workload
    duration: 24h
    templates:
    - name: web
      arrivals: {perHour: 600, pattern: diurnal, peakAt: 14h, swing: 0.8}
      lifetime: {exponential: 30m}
      pod: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}
    nodes:
    - {at: 6h, add: 10, like: node-1}
    - {every: 8h, lose: any, for: 30m}

Each template has its own random sequence, seeded with the seed and its name: another template, or
another rate of one, does not change the arrivals of the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.errors import ObjectError
from kubesched.simulate.casting import Casting, gang_arrival, named
from kubesched.simulate.forms import (
    Gang,
    InputSchema,
    JsonObject,
    NodeChange,
    Time,
    decoded,
    seconds,
)
from kubesched.simulate.timed_events import Arrival, TimedEvent

KIND = "Workload"
API_VERSION = "kubesched/v1"
HOUR_S = 3600.0
DAY_S = 86_400.0
PATTERNS = ("poisson", "even", "diurnal")


class Lognormal(InputSchema, frozen=True):
    """Durations whose logarithm is normally distributed."""

    median: Time
    sigma: float = 1.0


class Lifetime(InputSchema, frozen=True):
    """Lifetime of pods; one of these."""

    fixed: Time | None = None
    #: the mean
    exponential: Time | None = None
    lognormal: Lognormal | None = None


class Arrivals(InputSchema, frozen=True):
    """When pods arrive."""

    per_hour: float
    pattern: str = "poisson"
    #: number of pods that arrive together
    count: int = 1
    #: of the diurnal pattern: time of the peak, and amplitude as a share of the mean
    peak_at: Time = "12h"
    swing: float = 0.5


class Template(InputSchema, frozen=True):
    """Pods of one kind."""

    name: str
    arrivals: Arrivals
    #: a manifest, inline or in a file
    pod: JsonObject | None = None
    file: str = ""
    #: without it they never end
    lifetime: Lifetime | None = None
    #: whether pods that arrive together are a gang
    gang: Gang | None = None


class NodeEvent(NodeChange, frozen=True, kw_only=True):
    """Node changes, once or repeatedly."""

    at: Time | None = None
    #: mean time between two random changes
    every: Time | None = None


class _File(InputSchema, frozen=True, kw_only=True):
    api_version: str = API_VERSION
    kind: str
    duration: Time
    templates: tuple[Template, ...] = ()
    nodes: tuple[NodeEvent, ...] = ()


class _Cast(Struct, frozen=True):
    """A template, ready for use."""

    name: str
    pod: Pod
    arrivals: Arrivals
    peak_at_s: float
    lifetime: Lifetime | None
    gang: Gang | None = None


class GeneratedWorkload(Struct, frozen=True):
    """Generates events."""

    duration_s: float
    casts: tuple[_Cast, ...]
    nodes: tuple[NodeEvent, ...]
    casting: Casting
    source: str

    @property
    def until_s(self) -> float | None:
        """When a simulation of it ends."""
        return self.duration_s

    def happenings(self, seed: int) -> list[TimedEvent]:
        """Return all events; deterministic by seed."""
        found: list[TimedEvent] = []
        for cast in self.casts:
            found += self._arrivals(cast, _random(seed, f"template {cast.name}"))
        for number, event in enumerate(self.nodes, start=1):
            found += self._node_changes(event, number, _random(seed, f"nodes {number}"))
        return sorted(found, key=lambda each: each.at_s)

    def _arrivals(self, cast: _Cast, random: Random) -> Iterator[TimedEvent]:
        number = 0
        for at_s in _times(cast, self.duration_s, random):
            together = []
            for _ in range(cast.arrivals.count):
                number += 1
                pod = named(cast.pod, f"{cast.name}-{number}", f"{cast.name}/{number}")
                together.append((pod, _lifetime_s(cast.lifetime, random)))
            if cast.gang is None:
                yield from (Arrival(at_s, pod, lifetime_s) for pod, lifetime_s in together)
            else:
                name = together[0][0].metadata.name
                yield gang_arrival(cast.gang, at_s, name, together, f"template {cast.name}: gang")

    def _node_changes(self, event: NodeEvent, number: int, random: Random) -> Iterator[TimedEvent]:
        where = f"{self.source}: nodes[{number - 1}]"
        times = [seconds(event.at, where)] if event.at is not None else []
        if event.every is not None:
            rate = 1.0 / seconds(event.every, where)
            times += _poisson(rate, self.duration_s, random)
        for count, at_s in enumerate(times):
            yield from self.casting.changes(
                event, at_s, where, random=random, number=number + count * len(self.nodes)
            )


def _random(seed: int, stream: str) -> Random:
    return Random(f"{seed}/{stream}")  # noqa: S311 (generates workloads, not a secret)


# --- reading ----------------------------------------------------------------------------------


def read_workload(tree: object, path: Path, casting: Casting) -> GeneratedWorkload:
    """Decode a workload of a file; raises ObjectError if it cannot be used."""
    source = str(path)
    file = decoded(tree, _File, source)
    if file.kind != KIND or file.api_version != API_VERSION:
        raise ObjectError(f"{source}: expected {API_VERSION}, kind {KIND}")
    duration_s = seconds(file.duration, f"{source}: duration")
    names = [each.name for each in file.templates]
    if len(set(names)) < len(names):
        raise ObjectError(f"{source}: two templates have the same name")
    casts = tuple(
        _cast(each, f"{source}: templates[{number}]", path.parent, casting)
        for number, each in enumerate(file.templates)
    )
    for number, event in enumerate(file.nodes):
        _check_event(event, f"{source}: nodes[{number}]", casting)
    return GeneratedWorkload(duration_s, casts, file.nodes, casting, source)


def _cast(template: Template, where: str, folder: Path, casting: Casting) -> _Cast:
    arrivals = template.arrivals
    if arrivals.pattern not in PATTERNS:
        raise ObjectError(
            f"{where}.arrivals.pattern: {arrivals.pattern} is none of {', '.join(PATTERNS)}"
        )
    if not 0 < arrivals.per_hour < math.inf or arrivals.count < 1:
        raise ObjectError(f"{where}.arrivals: perHour must be more than 0, count at least 1")
    if not 0 <= arrivals.swing <= 1:
        raise ObjectError(f"{where}.arrivals.swing: must be between 0 and 1")
    _check_lifetime(template.lifetime, f"{where}.lifetime")
    return _Cast(
        name=template.name,
        pod=_pod(template, where, folder, casting),
        arrivals=arrivals,
        peak_at_s=seconds(arrivals.peak_at, f"{where}.arrivals.peakAt"),
        lifetime=template.lifetime,
        gang=template.gang,
    )


def _pod(template: Template, where: str, folder: Path, casting: Casting) -> Pod:
    if template.pod and template.file:
        raise ObjectError(f"{where}: pod and file exclude each other")
    if template.pod:
        return casting.pod(template.pod, f"{where}.pod", name=template.name)
    if template.file:
        return casting.read_template(folder / template.file)
    return casting.template(template.name, where)


def _check_lifetime(lifetime: Lifetime | None, where: str) -> None:
    if lifetime is None:
        return
    given = [each for each in (lifetime.fixed, lifetime.exponential, lifetime.lognormal) if each]
    if len(given) != 1:
        raise ObjectError(f"{where}: say one of fixed, exponential, lognormal")
    lognormal = lifetime.lognormal
    value = lognormal.median if lognormal else lifetime.fixed or lifetime.exponential
    if value is not None and not seconds(value, where):
        raise ObjectError(f"{where}: must be more than 0")
    if lognormal and not 0 < lognormal.sigma < 10:
        raise ObjectError(f"{where}.lognormal.sigma: must be more than 0, and less than 10")


def _check_event(event: NodeEvent, where: str, casting: Casting) -> None:
    casting.check(event, where)
    if (event.at is None) == (event.every is None):
        raise ObjectError(f"{where}: say when: at or every")
    if event.at is not None:
        seconds(event.at, f"{where}.at")
    if event.every is not None and not seconds(event.every, f"{where}.every"):
        raise ObjectError(f"{where}.every: must be more than 0")
    if event.for_ is not None:
        seconds(event.for_, f"{where}.for")


# --- random ----------------------------------------------------------------------------------


def _times(cast: _Cast, duration_s: float, random: Random) -> Sequence[float]:
    arrivals = cast.arrivals
    rate = arrivals.per_hour / HOUR_S
    if arrivals.pattern == "even":
        return [number / rate for number in range(math.ceil(duration_s * rate))]
    if arrivals.pattern == "poisson":
        return _poisson(rate, duration_s, random)
    # Thinning: generate at the highest rate, and drop some by the time of day.
    highest = 1.0 + arrivals.swing

    def share(at_s: float) -> float:
        angle = 2 * math.pi * (at_s - cast.peak_at_s) / DAY_S
        return (1.0 + arrivals.swing * math.cos(angle)) / highest

    some = _poisson(rate * highest, duration_s, random)
    return [at_s for at_s in some if random.random() < share(at_s)]


def _poisson(rate: float, duration_s: float, random: Random) -> list[float]:
    times = []
    at_s = random.expovariate(rate)
    while at_s < duration_s:
        times.append(at_s)
        at_s += random.expovariate(rate)
    return times


def _lifetime_s(lifetime: Lifetime | None, random: Random) -> float | None:
    if lifetime is None:
        return None
    if lifetime.fixed is not None:
        return seconds(lifetime.fixed, "fixed")
    if lifetime.exponential is not None:
        return random.expovariate(1.0 / seconds(lifetime.exponential, "exponential"))
    if lifetime.lognormal is None:
        return None
    median_s = seconds(lifetime.lognormal.median, "median")
    return random.lognormvariate(math.log(median_s), lifetime.lognormal.sigma)
