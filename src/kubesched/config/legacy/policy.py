"""Converts a Policy to an old profile: predicates filter, priorities score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubesched.config.args import LEAST_ALLOCATED
from kubesched.config.field_errors import shown
from kubesched.config.legacy.policy_tables import (
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    EQUAL_PRIORITY,
    MANDATORY,
    PREDICATES,
    PRIORITIES,
)
from kubesched.config.legacy.releases import OldProfile
from kubesched.config.legacy.report import ConversionReport
from kubesched.config.legacy.successors import STRATEGIES, WITHOUT_SUCCESSOR, successor
from kubesched.config.profiles import PluginRef
from kubesched.errors import ConfigError

JsonObject = dict[str, Any]
#: today's default plugins of each point
DefaultPoints = Mapping[str, tuple[PluginRef, ...]]

#: Plugins that ran with every policy.
_ALWAYS: Final = {
    "queueSort": "PrioritySort",
    "postFilter": "DefaultPreemption",
    "bind": "DefaultBinder",
}
_INTER_POD_AFFINITY: Final = "InterPodAffinity"


def old_profile(policy: JsonObject, today: DefaultPoints, report: ConversionReport) -> OldProfile:
    """Return the profile that kube-scheduler v1.22 made of a policy."""
    points = {point: [PluginRef(name=plugin)] for point, plugin in _ALWAYS.items()}
    points |= {point: [] for point in ("filter", "score", "reserve", "preBind")}
    profile = OldProfile(scheduler_name=None, points=points, selector_spread_apart=True)
    _Predicates(profile, today, report).add(policy.get("predicates"))
    _Priorities(profile, today, report).add(policy.get("priorities"))
    _add_hard_affinity_weight(profile, policy.get("hardPodAffinitySymmetricWeight", 0), report)
    if policy.get("alwaysCheckAllPredicates"):
        report.has_no_counterpart(
            "alwaysCheckAllPredicates",
            "it never changed where pods go; 'kubesched explain' names all reasons of each node",
        )
    return profile


class _Predicates:
    def __init__(self, profile: OldProfile, today: DefaultPoints, report: ConversionReport) -> None:
        self._profile = profile
        self._default = {ref.name for ref in today["filter"]}
        self._report = report

    def add(self, given: list[JsonObject] | None) -> None:
        if given is None:
            self._report.became("no predicates", "the default predicates of v1.22")
            names = [self._plugins_of({"name": name}, tell=False) for name in DEFAULT_PREDICATES]
        else:
            names = [self._plugins_of(predicate) for predicate in given]
        names += [self._plugins_of({"name": name}, tell=False) for name in MANDATORY]
        for predicate in names:
            plugins, points = PREDICATES[predicate]
            for point in points:
                present = {ref.name for ref in self._profile.points[point]}
                self._profile.points[point] += [
                    PluginRef(name=plugin) for plugin in plugins if plugin not in present
                ]

    def _plugins_of(self, predicate: JsonObject, *, tell: bool = True) -> str:
        """Convert the argument of a predicate; returns the name of its built-in predicate."""
        name = predicate.get("name", "")
        argument = predicate.get("argument") or {}
        if name in PREDICATES and not argument:
            if tell:
                self._tell(name)
            return str(name)
        match _only_argument("predicate", name, argument):
            case "serviceAffinity":
                labels = argument["serviceAffinity"].get("labels") or []
                _extend(self._profile, "ServiceAffinity", "affinityLabels", labels)
                self._report.became(f"predicate {name}", "ServiceAffinity, see No counterpart")
                return "CheckServiceAffinity"
            case _:
                presence = argument["labelsPresence"]
                labels = presence.get("labels") or []
                wanted = bool(presence.get("presence"))
                field = "presentLabels" if wanted else "absentLabels"
                _extend(self._profile, "NodeLabel", field, labels)
                verb = "must have" if wanted else "must not have"
                self._report.became(
                    f"predicate {name}",
                    f"NodeAffinity addedAffinity: nodes {verb} {', '.join(labels)}",
                )
                return "CheckNodeLabelPresence"

    def _tell(self, predicate: str) -> None:
        plugins, _ = PREDICATES[predicate]
        successors = [now for plugin in plugins if (now := successor(plugin))]
        if self._default.issuperset(successors):
            self._report.is_default(f"predicate {predicate}: {', '.join(successors)}")
        else:
            self._report.became(f"predicate {predicate}", f"filter {', '.join(successors)}")


class _Priorities:
    def __init__(self, profile: OldProfile, today: DefaultPoints, report: ConversionReport) -> None:
        self._profile = profile
        self._default = today["score"]
        self._report = report
        #: weights of plugins, by plugin; the last priority of a plugin counts
        self._weights: dict[str, int] = {}

    def add(self, given: list[JsonObject] | None) -> None:
        if given is None:
            self._report.became("no priorities", "the default priorities of v1.22")
            for name, weight in DEFAULT_PRIORITIES.items():
                self._weights[PRIORITIES[name]] = weight
        for priority in given or ():
            self._add(priority)
        for plugin, fields in (
            ("NodeLabel", ("presentLabelsPreference", "absentLabelsPreference")),
            ("ServiceAffinity", ("antiAffinityLabelsPreference",)),
        ):
            if plugin in self._weights:
                # Each label was a separate priority, of the same weight.
                args = self._profile.args[plugin]
                self._weights[plugin] *= sum(len(args.get(field, ())) for field in fields)
        self._profile.points["score"] = [
            PluginRef(name=plugin, weight=weight) for plugin, weight in self._weights.items()
        ]

    def _add(self, priority: JsonObject) -> None:
        name, weight = priority.get("name", ""), priority.get("weight", 0)
        if weight <= 0:
            raise ConfigError(f"priority {shown(name)} needs a weight of at least 1, not {weight}")
        if name == EQUAL_PRIORITY:
            self._report.is_default(f"priority {name}: it gave all nodes the same")
            return
        argument = priority.get("argument") or {}
        plugin = PRIORITIES.get(name) if not argument else None
        old = f"priority {name} weight {weight}"
        if plugin is None:
            plugin, new = self._custom(name, argument)
            self._check_same_weight(name, plugin, weight)
        elif plugin in WITHOUT_SUCCESSOR:
            new = ""
        else:
            strategy = STRATEGIES.get(plugin, "")
            new = f"{successor(plugin)} {strategy}".rstrip()
            if strategy in {"", LEAST_ALLOCATED} and self._is_default(plugin, weight):
                self._report.is_default(f"{old}: {new}")
                new = ""
        self._weights[plugin] = weight
        if new:
            self._report.became(old, f"score {new}")

    def _is_default(self, plugin: str, weight: int) -> bool:
        return PluginRef(name=successor(plugin), weight=weight) in self._default

    def _custom(self, name: str, argument: JsonObject) -> tuple[str, str]:
        """Convert the argument of a priority; returns the plugin, and the name of its successor.

        Such priorities have names that the user chose.
        """
        match _only_argument("priority", name, argument):
            case "labelPreference":
                preference = argument["labelPreference"]
                wanted = bool(preference.get("presence"))
                field = "presentLabelsPreference" if wanted else "absentLabelsPreference"
                label = preference.get("label", "")
                _extend(self._profile, "NodeLabel", field, [label])
                which = "with" if wanted else "without"
                return "NodeLabel", f"NodeAffinity addedAffinity: nodes {which} {label} preferred"
            case "serviceAntiAffinity":
                label = argument["serviceAntiAffinity"].get("label", "")
                _extend(self._profile, "ServiceAffinity", "antiAffinityLabelsPreference", [label])
                return "ServiceAffinity", f"PodTopologySpread default constraint by {label}"
            case _:
                args = argument["requestedToCapacityRatioArguments"]
                self._profile.args["RequestedToCapacityRatio"] = args
                return "RequestedToCapacityRatio", "NodeResourcesFit RequestedToCapacityRatio"

    def _check_same_weight(self, name: str, plugin: str, weight: int) -> None:
        before = self._weights.get(plugin, weight)
        if before != weight:
            raise ConfigError(
                f"priority {shown(name)}: priorities of one kind need the same weight, "
                f"not {before} and {weight}"
            )


def _add_hard_affinity_weight(profile: OldProfile, weight: int, report: ConversionReport) -> None:
    if weight == 0:
        return
    what = f"hardPodAffinitySymmetricWeight {weight}"
    if any(ref.name == _INTER_POD_AFFINITY for ref in profile.points["score"]):
        profile.args[_INTER_POD_AFFINITY] = {"hardPodAffinityWeight": weight}
        report.became(what, f"{_INTER_POD_AFFINITY} hardPodAffinityWeight {weight}")
    else:
        report.is_default(f"{what}: without InterPodAffinityPriority it had no effect")


_ARGUMENTS: Final = {
    "predicate": ("serviceAffinity", "labelsPresence"),
    "priority": ("serviceAntiAffinity", "labelPreference", "requestedToCapacityRatioArguments"),
}


def _only_argument(what: str, name: str, argument: JsonObject) -> str:
    known = _ARGUMENTS[what]
    given = [each for each in known if each in argument]
    if len(given) == 1:
        return given[0]
    if not argument:
        raise ConfigError(f"{what} {shown(name)} never existed, and has no argument")
    raise ConfigError(f"{what} {shown(name)} needs exactly one argument of {', '.join(known)}")


def _extend(profile: OldProfile, plugin: str, field: str, labels: list[str]) -> None:
    profile.args.setdefault(plugin, {}).setdefault(field, []).extend(labels)
