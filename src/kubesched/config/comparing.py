"""Compares two completed configurations by their effect.

Profiles are matched by scheduler name, and plugins by extension point, with their weights, in
running order. A plugin that is not installed counts at the points where its profile names it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kubesched.config import encoding
from kubesched.config.extenders import with_extender_effects
from kubesched.config.plugins import PointsOf, Unbuilt, expand
from kubesched.config.profiles import EXTENSION_POINTS, MULTI_POINT, PluginRef, Profile
from kubesched.config.types import SchedulerConfiguration

Json = Any

#: The weight of a plugin at a point without weights.
ENABLED: Final = "enabled"
#: Points at which the order of plugins makes no difference.
_UNORDERED: Final = frozenset(("preFilter", "preScore", "score", "placementScore"))
_APART: Final = frozenset(("apiVersion", "kind", "profiles", "extenders"))


class ConfigDifference(msgspec.Struct, frozen=True):
    """One difference; None means an absent value."""

    #: the part of the configuration: "" of top-level fields
    part: str
    name: str
    a: Json
    b: Json


class Comparison(msgspec.Struct, frozen=True):
    """All differences."""

    equal: bool
    differences: tuple[ConfigDifference, ...]


def compare(
    a: SchedulerConfiguration,
    b: SchedulerConfiguration,
    points_of: PointsOf | Mapping[str, Collection[str]],
) -> Comparison:
    """Compare two configurations; raises ConfigError if one of them cannot be built."""
    find = points_of if callable(points_of) else points_of.get
    first, second = (encoding.used_profiles(with_extender_effects(each)) for each in (a, b))
    differences = tuple(_differences(first, second, find))
    return Comparison(equal=not differences, differences=differences)


def _differences(
    a: SchedulerConfiguration, b: SchedulerConfiguration, points_of: PointsOf
) -> Iterator[ConfigDifference]:
    first, second = encoding.to_json_object(a), encoding.to_json_object(b)
    fields = [
        {name: value for name, value in each.items() if name not in _APART}
        for each in (first, second)
    ]
    yield from _fields("", _flat(fields[0]), _flat(fields[1]))
    yield from _extenders(first.get("extenders", []), second.get("extenders", []))
    yield from _profiles(a.profiles, b.profiles, points_of)


def _extenders(a: list[Json], b: list[Json]) -> Iterator[ConfigDifference]:
    for index in range(max(len(a), len(b))):
        first, second = (_flat(each[index]) if index < len(each) else {} for each in (a, b))
        yield from _fields(f"extenders[{index}]", first, second)


def _profiles(
    a: Iterable[Profile], b: Iterable[Profile], points_of: PointsOf
) -> Iterator[ConfigDifference]:
    first = {profile.scheduler_name: profile for profile in a}
    second = {profile.scheduler_name: profile for profile in b}
    for name in dict.fromkeys((*first, *second)):
        part = f"profiles[{name}]"
        if name not in first or name not in second:
            there = [ENABLED if name in each else None for each in (first, second)]
            yield ConfigDifference("profiles", name, there[0], there[1])
            continue
        yield from _profile(part, first[name], second[name], points_of)


def _profile(part: str, a: Profile, b: Profile, points_of: PointsOf) -> Iterator[ConfigDifference]:
    nodes = "percentageOfNodesToScore"
    yield from _fields(
        part,
        {nodes: a.percentage_of_nodes_to_score},
        {nodes: b.percentage_of_nodes_to_score},
    )
    first, second = (_running(profile, points_of) for profile in (a, b))
    for point in first:
        yield from _plugins(f"{part}.plugins.{point}", point, first[point], second[point])
    first_args, second_args = _args(a), _args(b)
    for plugin in sorted({*first_args, *second_args}):
        if plugin in first_args and plugin in second_args:
            yield from _fields(f"{part}.{plugin}", first_args[plugin], second_args[plugin])


def _running(profile: Profile, points_of: PointsOf) -> dict[str, tuple[PluginRef, ...]]:
    """Return the plugins of each point; unknown ones that only ``multiPoint`` names apart."""

    def known_or_named(name: str) -> Collection[str]:
        found = points_of(name)
        if found is not None:
            return found
        return [
            point
            for point in EXTENSION_POINTS
            if any(ref.name == name for ref in profile.plugins.at(point).enabled)
        ]

    points = dict(expand(profile, known_or_named, unbuilt=Unbuilt.LEAVE_OUT).points)
    points[MULTI_POINT] = tuple(
        ref for ref in profile.plugins.multi_point.enabled if not known_or_named(ref.name)
    )
    return points


def _plugins(
    part: str, point: str, a: tuple[PluginRef, ...], b: tuple[PluginRef, ...]
) -> Iterator[ConfigDifference]:
    first, second = ({ref.name: ref.weight or ENABLED for ref in refs} for refs in (a, b))
    yield from _fields(part, first, second)
    common = [
        [name for name in each if name in first and name in second] for each in (first, second)
    ]
    if point not in _UNORDERED and common[0] != common[1]:
        yield ConfigDifference(part, "order", common[0], common[1])


def _args(profile: Profile) -> dict[str, dict[str, Json]]:
    encoded = encoding.to_json_object(SchedulerConfiguration(profiles=(profile,)))
    configs = encoded["profiles"][0].get("pluginConfig", [])
    return {
        config["name"]: _flat(
            {name: value for name, value in config["args"].items() if name not in _APART}
            if isinstance(config["args"], dict)
            else {"args": config["args"]}
        )
        for config in configs
    }


def _fields(part: str, a: Mapping[str, Json], b: Mapping[str, Json]) -> Iterator[ConfigDifference]:
    for name in dict.fromkeys((*a, *b)):
        if a.get(name) != b.get(name):
            yield ConfigDifference(part, name, a.get(name), b.get(name))


def _flat(value: Mapping[str, Json], path: str = "") -> dict[str, Json]:
    """Return the leaves of an object by path; lists are leaves."""
    leaves: dict[str, Json] = {}
    for name, part in value.items():
        if isinstance(part, dict):
            leaves |= _flat(part, f"{path}{name}.")
        else:
            leaves[f"{path}{name}"] = part
    return leaves


def as_text(comparison: Comparison, name_a: str, name_b: str) -> str:
    """Format differences for users, like ``diff``."""
    if comparison.equal:
        return ""
    lines = [f"--- {name_a}", f"+++ {name_b}"]
    part = None
    for difference in comparison.differences:
        if difference.part != part and difference.part:
            lines.append(f"{difference.part}:")
        part = difference.part
        indent = "  " if part else ""
        lines += [
            f"{indent}{sign} {_shown(difference.name, value)}"
            for sign, value in (("-", difference.a), ("+", difference.b))
            if value is not None
        ]
    return "".join(f"{line}\n" for line in lines)


def _shown(name: str, value: Json) -> str:
    if value == ENABLED:
        return name
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"{name}: {text}"
