"""Expands a profile to the plugins of each extension point, in running order, with weights.

The inputs are a completed profile and the points that each plugin implements. ``multiPoint``
enables a plugin at every point that it implements, unless the point's own set overrides it:

1. a point that disables ``*`` takes nothing from ``multiPoint``, one that disables a plugin does
   not take that plugin;
2. a plugin that the point enables as well is there because of the point, with its weight, and
   runs before the others;
3. then come the plugins of ``multiPoint``, then the other plugins of the point.

In-tree plugins of kube-scheduler that do not exist here are rejected like unknown ones, or skipped,
as the caller requests.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kubesched.config.defaults import IN_TREE_PLUGINS
from kubesched.config.profiles import ALL_PLUGINS, EXTENSION_POINTS, PluginRef, Profile
from kubesched.errors import ConfigError

#: Returns the extension points that a plugin implements, None if there is no such plugin.
PointsOf = Callable[[str], Collection[str] | None]

#: Points in the order of expansion, which determines the first error that is reported.
_FILL_ORDER: Final = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)
_WEIGHTED_POINTS: Final = {"score": "score plugins", "placementScore": "placement score plugins"}
_MAX_SCORE: Final = 100
_MAX_TOTAL_SCORE: Final = (1 << 63) - 1


class Unbuilt(enum.Enum):
    """What to do about in-tree plugins of kube-scheduler that do not exist here."""

    REFUSE = enum.auto()
    LEAVE_OUT = enum.auto()


class Expansion(msgspec.Struct, frozen=True):
    """The plugins of a profile, point by point."""

    #: point to plugins in running order; weights are 0 where nothing is scored
    points: Mapping[str, tuple[PluginRef, ...]]
    #: in-tree plugins that the profile enables and that do not exist here
    left_out: tuple[str, ...] = ()

    def names(self, point: str) -> list[str]:
        """List the plugins of a point in running order."""
        return [ref.name for ref in self.points[point]]


def expand(
    profile: Profile,
    points_of: PointsOf | Mapping[str, Collection[str]],
    *,
    unbuilt: Unbuilt = Unbuilt.REFUSE,
) -> Expansion:
    """Expand a profile; raises ConfigError if it cannot be."""
    expander = _Expander(profile, points_of if callable(points_of) else points_of.get, unbuilt)
    return expander.run()


def expand_all(
    profiles: Sequence[Profile],
    points_of: PointsOf | Mapping[str, Collection[str]],
    *,
    unbuilt: Unbuilt = Unbuilt.REFUSE,
) -> dict[str, Expansion]:
    """Expand all profiles by scheduler name; they must have the same QueueSort plugin."""
    expansions: dict[str, Expansion] = {}
    for profile in profiles:
        name = profile.scheduler_name
        prefix = "initializing profiles: "
        try:
            expansions[name] = expand(profile, points_of, unbuilt=unbuilt)
        except ConfigError as error:
            raise ConfigError(
                f"{prefix}creating profile for scheduler name {name}: {error}"
            ) from error
        sorts = expansions[name].names("queueSort")[0]
        first = expansions[profiles[0].scheduler_name].names("queueSort")[0]
        if sorts != first:
            raise ConfigError(
                f'{prefix}different queue sort plugins for profile "{name}": "{sorts}", '
                f'first: "{first}"'
            )
        if _args_of(profile, sorts) != _args_of(profiles[0], first):
            raise ConfigError(f'{prefix}different queue sort plugin args for profile "{name}"')
    return expansions


class _Expander:
    def __init__(self, profile: Profile, points_of: PointsOf, unbuilt: Unbuilt) -> None:
        self._profile = profile
        needed = dict.fromkeys(
            ref.name for _, plugin_set in profile.plugins.items() for ref in plugin_set.enabled
        )
        offered = {name: points_of(name) for name in needed}
        self._points = {name: points for name, points in offered.items() if points is not None}
        self._left_out = [
            name
            for name in needed
            if name not in self._points and name in IN_TREE_PLUGINS and unbuilt is Unbuilt.LEAVE_OUT
        ]

    def run(self) -> Expansion:
        explicit = {point: self._explicit(point) for point in _FILL_ORDER}
        names = {point: self._with_multi_point(point, explicit[point]) for point in _FILL_ORDER}
        self._check_counts(names)
        points = {
            point: tuple(
                PluginRef(name=name, weight=weight)
                for name, weight in self._weighted(point, names[point])
            )
            for point in EXTENSION_POINTS
        }
        return Expansion(points=points, left_out=tuple(self._left_out))

    def _enabled(self, point: str) -> Iterable[PluginRef]:
        refs = self._profile.plugins.at(point).enabled
        return (ref for ref in refs if ref.name not in self._left_out)

    def _points_at(self, name: str, point: str) -> Collection[str]:
        if name not in self._points:
            raise ConfigError(f'{_go_type(point)} "{name}" does not exist')
        return self._points[name]

    def _explicit(self, point: str) -> list[str]:
        names: list[str] = []
        for ref in self._enabled(point):
            if point not in self._points_at(ref.name, point):
                raise ConfigError(f'plugin "{ref.name}" does not extend {_go_type(point)} plugin')
            if ref.name in names:
                raise ConfigError(f'plugin "{ref.name}" already registered as "{_go_type(point)}"')
            names.append(ref.name)
        return names

    def _with_multi_point(self, point: str, explicit: list[str]) -> list[str]:
        disabled = {ref.name for ref in self._profile.plugins.at(point).disabled}
        if ALL_PLUGINS in disabled:
            return explicit
        overrides: set[str] = set()
        expanded: list[str] = []
        for ref in self._enabled("multiPoint"):
            if point not in self._points_at(ref.name, point) or ref.name in disabled:
                continue
            if ref.name in explicit:
                overrides.add(ref.name)
            elif ref.name in expanded:
                raise ConfigError(f'plugin "{ref.name}" already registered as "{_go_type(point)}"')
            else:
                expanded.append(ref.name)
        first = [name for name in explicit if name in overrides]
        return first + expanded + [name for name in explicit if name not in overrides]

    def _check_counts(self, names: Mapping[str, list[str]]) -> None:
        whose = f'for profile with scheduler name "{self._profile.scheduler_name}"'
        if len(names["queueSort"]) != 1:
            count = len(names["queueSort"])
            raise ConfigError(f"only one queue sort plugin required {whose}, but got {count}")
        if not names["bind"]:
            raise ConfigError(f"at least one bind plugin is needed {whose}")
        if len(names["placementGenerate"]) > 1:
            raise ConfigError(f"at most one placement generate plugin is allowed {whose}")

    def _weighted(self, point: str, names: list[str]) -> list[tuple[str, int]]:
        if point not in _WEIGHTED_POINTS:
            return [(name, 0) for name in names]
        weights: dict[str, int] = {}
        for ref in (*self._enabled(point), *self._enabled("multiPoint")):
            if point in self._points[ref.name]:
                weights.setdefault(ref.name, ref.weight or 1)
        total = 0
        for weight in weights.values():
            # A negative sum counts as an overflow when a weight is added to it.
            if total < 0 or weight * _MAX_SCORE > _MAX_TOTAL_SCORE - total:
                what = _WEIGHTED_POINTS[point]
                raise ConfigError(f"{what}: total score of Score plugins could overflow")
            total += weight * _MAX_SCORE
        return [(name, weights[name]) for name in names]


def _args_of(profile: Profile, plugin: str) -> object:
    return next((config.args for config in profile.plugin_config if config.name == plugin), None)


def _go_type(point: str) -> str:
    return f"{point[0].upper()}{point[1:]}Plugin"
