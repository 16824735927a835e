"""Converts plugin sets: from an old profile to the plugins that ran, and from there to v1.

In v1, ``multiPoint`` runs each default plugin at all of its points. So plugins that did not run are
disabled, at a point or everywhere, and plugins that are not defaults, or have another weight, are
enabled. Plugins that were added after the old release stay enabled: they affect only pods that use
their features.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from kubesched.config.defaults import default_profile, merge_plugin_set
from kubesched.config.features import FeatureGates
from kubesched.config.legacy.releases import KNOWN_THEN, V1BETA1, OldProfile, Points
from kubesched.config.legacy.report import ConversionReport
from kubesched.config.legacy.successors import CLOUD_LIMITS, successor
from kubesched.config.plugins import PointsOf, Unbuilt, expand
from kubesched.config.profiles import (
    ALL_PLUGINS,
    EXTENSION_POINTS,
    MULTI_POINT,
    PluginRef,
    PluginSet,
)

JsonObject = dict[str, Any]

#: Points that prepare another one, and have the same plugins.
_PREPARES: Final = {"preFilter": "filter", "preScore": "score"}
#: Points at which the order of plugins does not affect placements.
_UNORDERED: Final = frozenset(("preFilter", "preScore", "score"))
#: A feature gate decides whether VolumeBinding scores, then as now.
_BY_GATE: Final = ("score", "VolumeBinding")


class Today(msgspec.Struct, frozen=True):
    """Today's default profile."""

    gates: FeatureGates
    #: the points that plugins implement
    points_of: PointsOf | Mapping[str, Collection[str]]

    def points(self) -> Mapping[str, tuple[PluginRef, ...]]:
        """Return the default plugins of each point, in running order."""
        profile = default_profile(self.gates)
        return expand(profile, self.points_of, unbuilt=Unbuilt.LEAVE_OUT).points


def resolve(default: Points, given: JsonObject, version: str) -> OldProfile:
    """Merge the plugin sets of a profile into the defaults of its version."""
    profile = OldProfile(scheduler_name=None, points={})
    for point in dict.fromkeys((*default, *given)):
        custom: PluginSet = msgspec.convert(given.get(point, {}), PluginSet)
        before = PluginSet(enabled=tuple(default.get(point, ())))
        if version <= V1BETA1:
            merged = _appended(before, custom)
        else:
            merged = merge_plugin_set(before, custom).enabled
        weight = 1 if point == "score" else 0
        profile.points[point] = [
            PluginRef(name=ref.name, weight=ref.weight or weight) for ref in merged
        ]
        disabled = {ref.name for ref in custom.disabled}
        if ALL_PLUGINS in disabled:
            profile.emptied.add(point)
        # A default that is enabled again stays at its position.
        kept = {ref.name for ref in before.enabled if not disabled & {ref.name, ALL_PLUGINS}}
        profile.chosen[point] = [ref.name for ref in custom.enabled if ref.name not in kept]
    return profile


def _appended(before: PluginSet, custom: PluginSet) -> tuple[PluginRef, ...]:
    """Merge as versions up to v1beta1 did: enabled plugins come last, and replace none."""
    disabled = {ref.name for ref in custom.disabled}
    kept = () if ALL_PLUGINS in disabled else before.enabled
    return (*(ref for ref in kept if ref.name not in disabled), *custom.enabled)


class PluginSetWriter:
    """Writes the plugins that ran as plugin sets of v1."""

    def __init__(self, profile: OldProfile, today: Today, report: ConversionReport) -> None:
        self._profile = profile
        self._report = report
        self._default = today.points()
        self._alive = {ref.name for refs in profile.points.values() for ref in refs}

    def plugins(self) -> JsonObject:
        """Return the field ``plugins`` of a profile; empty if it is the default."""
        gone = {point: self._gone(point) for point in EXTENSION_POINTS}
        everywhere = self._gone_everywhere(gone)
        sets = {}
        if everywhere:
            sets[MULTI_POINT] = _set(disabled=everywhere)
        for point in EXTENSION_POINTS:
            here = [name for name in gone[point] if name not in everywhere]
            written = self._written(point, here)
            if written:
                sets[point] = written
        self._report_disabled(sets)
        return sets

    def _report_disabled(self, sets: JsonObject) -> None:
        """Report the disabled defaults, except at the points that prepare others."""
        disabled = [
            f"{point}: {', '.join(ref['name'] for ref in sets[point]['disabled'])}"
            for point in sets
            if "disabled" in sets[point] and point not in _PREPARES
        ]
        if disabled:
            self._report.became(
                "default plugins that did not run", f"disabled, {'; '.join(disabled)}"
            )

    def _wanted(self, point: str) -> list[PluginRef]:
        return self._profile.points.get(point, [])

    def _gone(self, point: str) -> list[str]:
        """Return the default plugins that did not run at a point."""
        decisive = _PREPARES.get(point, point)
        names = (ref.name for ref in self._default[point])
        return [name for name in names if name in KNOWN_THEN and not self._ran(decisive, name)]

    def _ran(self, point: str, name: str) -> bool:
        if any(ref.name == name for ref in self._wanted(point)):
            return True
        if name not in self._alive:
            return False
        if (point, name) == _BY_GATE:
            return point not in self._profile.emptied
        # A point that the plugin, or the configuration, did not have then does not count.
        return point not in self._profile.points or not self._has(point, name)

    def _has(self, point: str, name: str) -> bool:
        return name in {ref.name for ref in self._default[point]}

    def _gone_everywhere(self, gone: Mapping[str, list[str]]) -> list[str]:
        """Return default plugins that ran at no point, unless a disabled "*" implies them."""
        found = []
        for name in dict.fromkeys(name for names in gone.values() for name in names):
            points = [point for point in EXTENSION_POINTS if self._has(point, name)]
            if all(name in gone[point] for point in points) and not self._said_anyway(points):
                found.append(name)
        return found

    def _said_anyway(self, points: list[str]) -> bool:
        return all(_PREPARES.get(point, point) == "score" for point in points) and (
            "score" in self._profile.emptied
        )

    def _written(self, point: str, gone: list[str]) -> JsonObject:
        wanted = self._wanted(point)
        default = {ref.name: ref.weight for ref in self._default[point]}
        if point == "score" and point in self._profile.emptied:
            return _set(enabled=wanted, disabled=[ALL_PLUGINS])
        chosen = [successor(name) for name in self._profile.chosen.get(point, ())]
        chosen = list(dict.fromkeys(name for name in chosen if name))
        if point not in _UNORDERED and chosen != self._order_by_default(chosen, default):
            moved = [name for name in chosen if name in default]
            enabled = [ref for name in chosen for ref in wanted if ref.name == name]
            return _set(enabled=enabled, disabled=[*gone, *moved])
        other_weight = [
            ref for ref in wanted if ref.name in default and ref.weight != default[ref.name]
        ]
        follows = KNOWN_THEN if point in _PREPARES else frozenset()
        added = [ref for ref in wanted if ref.name not in default and ref.name not in follows]
        if other_weight:
            self._report_weights(other_weight, default)
        return _set(enabled=[*other_weight, *added], disabled=gone)

    def _order_by_default(self, chosen: list[str], default: Mapping[str, int]) -> list[str]:
        return [name for name in default if name in chosen] + [
            name for name in chosen if name not in default
        ]

    def _report_weights(self, refs: list[PluginRef], default: Mapping[str, int]) -> None:
        weights = ", ".join(f"{ref.name} {ref.weight} (now {default[ref.name]})" for ref in refs)
        self._report.became("weights that differ from today's", f"score: {weights}")


def _set(*, enabled: Collection[PluginRef] = (), disabled: Collection[str] = ()) -> JsonObject:
    written: JsonObject = {}
    if enabled:
        written["enabled"] = [
            {"name": ref.name, "weight": ref.weight} if ref.weight else {"name": ref.name}
            for ref in enabled
        ]
    if disabled:
        written["disabled"] = [{"name": name} for name in disabled]
    return written


def renamed(plugins: JsonObject, report: ConversionReport) -> JsonObject:
    """Replace old plugins in sets that have ``multiPoint`` already, as v1beta3 had them."""
    sets = {}
    for point, given in plugins.items():
        enabled = _renamed_refs(given.get("enabled", ()), f"{point}.enabled", report)
        disabled = [ref for ref in given.get("disabled", ()) if _still_there(ref, point, report)]
        written = {"enabled": enabled, "disabled": disabled}
        sets[point] = {name: refs for name, refs in written.items() if refs}
    return {point: written for point, written in sets.items() if written}


def _renamed_refs(refs: list[JsonObject], where: str, report: ConversionReport) -> list[JsonObject]:
    by_name: dict[str, JsonObject] = {}
    for ref in refs:
        name = ref.get("name", "")
        now = successor(name)
        if name in CLOUD_LIMITS:
            report.became(f"{where} {name}", now)
        elif now != name:
            report.has_no_counterpart(f"{where} {name}", "v1beta3 refused it")
            continue
        if now not in by_name or now == name:
            by_name[now] = {**ref, "name": now}
    return list(by_name.values())


def _still_there(ref: JsonObject, point: str, report: ConversionReport) -> bool:
    name = ref.get("name", "")
    if successor(name) == name:
        return True
    report.is_default(f"{point}.disabled {name}: there is no such plugin any more")
    return False
