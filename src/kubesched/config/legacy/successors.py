"""Replaces plugins that no longer exist by their successors.

volume limits of each cloud            -> NodeVolumeLimits
NodeResources{Least,Most}Allocated,
  RequestedToCapacityRatio             -> NodeResourcesFit, its scoringStrategy
SelectorSpread                         -> PodTopologySpread, its default constraints
ServiceAffinity (score)                -> PodTopologySpread, default constraints by label
NodeLabel                              -> NodeAffinity, its addedAffinity
ServiceAffinity (filter), others       -> nothing: the report names the alternative
"""

from __future__ import annotations

from typing import Any, Final

from kubesched.config.args import (
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MAX_CUSTOM_PRIORITY_SCORE,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_CONSTRAINTS,
    SYSTEM_DEFAULTING,
)
from kubesched.config.legacy.releases import OldProfile
from kubesched.config.legacy.report import ConversionReport
from kubesched.config.profiles import PluginRef

Args = dict[str, Any]

FIT: Final = "NodeResourcesFit"
SPREAD: Final = "PodTopologySpread"
NODE_AFFINITY: Final = "NodeAffinity"
VOLUME_LIMITS: Final = "NodeVolumeLimits"

CLOUD_LIMITS: Final = ("EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits")
STRATEGIES: Final = {
    "NodeResourcesLeastAllocated": LEAST_ALLOCATED,
    "NodeResourcesMostAllocated": MOST_ALLOCATED,
    "RequestedToCapacityRatio": REQUESTED_TO_CAPACITY_RATIO,
}
_SELECTOR_SPREADS: Final = ("SelectorSpread", "DefaultPodTopologySpread")
#: Plugins without a successor -> what to do instead.
WITHOUT_SUCCESSOR: Final = {
    "NodePreferAvoidPods": "the annotation scheduler.alpha.kubernetes.io/preferAvoidPods is no "
    "longer read; give such nodes a taint with the effect PreferNoSchedule",
    "NodeResourceLimits": "limits are not scored any more; nothing takes its place",
    "ServiceAffinity": "give the pods of each service podAffinity with its label as topologyKey",
}
#: The default shape of v1.16 policies: least allocated is best.
_DEFAULT_SHAPE: Final = (
    {"utilization": 0, "score": MAX_CUSTOM_PRIORITY_SCORE},
    {"utilization": 100, "score": 0},
)
#: NodeLabel gave a label its full score, so the term that replaces it has the full weight.
_FULL_WEIGHT: Final = 100


def successor(plugin: str) -> str:
    """Return the successor of an old plugin; "" if it has none."""
    if plugin in CLOUD_LIMITS:
        return VOLUME_LIMITS
    if plugin in STRATEGIES:
        return FIT
    if plugin in _SELECTOR_SPREADS:
        return SPREAD
    if plugin == "NodeLabel":
        return NODE_AFFINITY
    return "" if plugin in WITHOUT_SUCCESSOR else plugin


def report_named(profile: OldProfile, given: Args, report: ConversionReport) -> None:
    """Report the successors of old plugins that the user named at a point."""
    for point, sets in given.items():
        if point in {"preFilter", "preScore"}:
            continue  # they follow filter and score
        remaining = {successor(ref.name) for ref in profile.points[point]}
        for ref in sets.get("enabled", ()):
            old = ref.get("name", "")
            new = successor(old)
            if new and new != old:
                weight = f" weight {ref['weight']}" if ref.get("weight") else ""
                detail = f" {STRATEGIES[old]}" if old in STRATEGIES else ""
                report.became(f"{point} {old}{weight}", f"{point} {new}{detail}{weight}")
        for ref in sets.get("disabled", ()):
            old = ref.get("name", "")
            new = successor(old)
            if new == old:
                continue
            if not new or new in remaining:
                report.is_default(f"{point} without {old}: there is no such plugin any more")
            else:
                report.became(f"{point} without {old}", f"{point} without {new}")


def replace_old_plugins(profile: OldProfile, report: ConversionReport) -> None:
    """Replace plugins that no longer exist, with their arguments, in place."""
    _replace_cloud_limits(profile)
    _replace_resource_scores(profile, report)
    _replace_selector_spread(profile)
    _replace_service_affinity(profile, report)
    _replace_node_label(profile, report)
    for plugin, instead in WITHOUT_SUCCESSOR.items():
        labels = profile.args.pop(plugin, {}).get("affinityLabels")
        if _take(profile, plugin):
            what = f"{plugin} by {', '.join(labels)}" if labels else plugin
            report.has_no_counterpart(what, instead)


def _replace_cloud_limits(profile: OldProfile) -> None:
    for point, refs in profile.points.items():
        names = [VOLUME_LIMITS if ref.name in CLOUD_LIMITS else ref.name for ref in refs]
        first = {name: index for index, name in reversed(list(enumerate(names)))}
        profile.points[point] = [
            PluginRef(name=name, weight=refs[index].weight)
            for index, name in enumerate(names)
            if first[name] == index or name != VOLUME_LIMITS
        ]


def _replace_resource_scores(profile: OldProfile, report: ConversionReport) -> None:
    candidates = [ref for ref in profile.points["score"] if ref.name in (*STRATEGIES, FIT)]
    for ref in candidates:
        _take(profile, ref.name, "score")
    old_args = {name: profile.args.pop(name, {}) for name in STRATEGIES}
    if not candidates:
        return
    chosen = profile.chosen.get("score", ())
    kept = max(candidates, key=lambda ref: (ref.name in chosen, ref.weight))
    for ref in candidates:
        if ref is not kept:
            report.has_no_counterpart(
                f"score {ref.name} weight {ref.weight}",
                f"NodeResourcesFit scores with one strategy, and that of {kept.name} is kept",
            )
    profile.points["score"].append(PluginRef(name=FIT, weight=kept.weight))
    if kept.name == FIT:
        return
    strategy = _strategy(kept.name, old_args[kept.name])
    if strategy != {"type": LEAST_ALLOCATED}:
        profile.args[FIT] = {**profile.args.get(FIT, {}), "scoringStrategy": strategy}


def _strategy(plugin: str, args: Args) -> Args:
    strategy: Args = {"type": STRATEGIES[plugin]}
    resources: list[Args] = args.get("resources") or []
    if strategy["type"] == REQUESTED_TO_CAPACITY_RATIO:
        shape = args.get("shape") or list(_DEFAULT_SHAPE)
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    else:
        # A weight of 0 excluded a resource from the score; today it means 1.
        resources = [each for each in resources if each.get("weight", 0) != 0]
    if resources:
        strategy["resources"] = resources
    return strategy


def _replace_selector_spread(profile: OldProfile) -> None:
    spread = _ref(profile, SPREAD)
    selector = next((found for name in _SELECTOR_SPREADS if (found := _ref(profile, name))), None)
    for name in _SELECTOR_SPREADS:
        _take(profile, name)
        profile.args.pop(name, None)
    if selector and not spread:
        profile.points["score"].append(PluginRef(name=SPREAD, weight=selector.weight))
    args = profile.args.get(SPREAD, {})
    scores = spread or _ref(profile, "ServiceAffinity")
    apart = profile.selector_spread_apart and not selector
    if scores and apart and not args.get("defaultConstraints"):
        # Pods without constraints were spread by SelectorSpread, or not at all.
        profile.args[SPREAD] = {**args, "defaultingType": LIST_DEFAULTING}


def _replace_service_affinity(profile: OldProfile, report: ConversionReport) -> None:
    args = profile.args.get("ServiceAffinity", {})
    scores = _ref(profile, "ServiceAffinity")
    labels = args.get("antiAffinityLabelsPreference") or []
    if scores and labels:
        _raise_score(profile, SPREAD, scores.weight)
        _add_constraints(profile, labels)
        _take(profile, "ServiceAffinity", "score")
        report.note(
            f"ServiceAffinity by {', '.join(labels)} became default constraints of "
            "PodTopologySpread: they count pods of the same service, but only for pods without "
            "topologySpreadConstraints of their own, and not on nodes without the labels"
        )


def _add_constraints(profile: OldProfile, labels: list[str]) -> None:
    args = profile.args.get(SPREAD, {})
    if args.get("defaultingType", SYSTEM_DEFAULTING) == SYSTEM_DEFAULTING:
        present = [
            {
                "maxSkew": each.max_skew,
                "topologyKey": each.topology_key,
                "whenUnsatisfiable": each.when_unsatisfiable,
            }
            for each in SYSTEM_CONSTRAINTS
        ]
    else:
        present = []
    constraints = args.get("defaultConstraints") or present
    keys = [each.get("topologyKey") for each in constraints]
    constraints += [
        {"maxSkew": 1, "topologyKey": label, "whenUnsatisfiable": "ScheduleAnyway"}
        for label in dict.fromkeys(labels)
        if label not in keys
    ]
    profile.args[SPREAD] = {
        **args,
        "defaultConstraints": constraints,
        "defaultingType": LIST_DEFAULTING,
    }


def _replace_node_label(profile: OldProfile, report: ConversionReport) -> None:
    args = profile.args.pop("NodeLabel", {})
    scores = _ref(profile, "NodeLabel")
    _take(profile, "NodeLabel", "score")
    if _take(profile, "NodeLabel", "filter"):
        required = _expressions(args, "presentLabels", "absentLabels")
        if required:
            _require(profile, required)
            if _ref(profile, NODE_AFFINITY, "filter") is None:
                profile.points["filter"].append(PluginRef(name=NODE_AFFINITY))
                report.note(
                    "NodeAffinity filters now, for the labels that nodes must have; "
                    "nodeSelector and node affinity of pods were not looked at before"
                )
    preferred = _expressions(args, "presentLabelsPreference", "absentLabelsPreference")
    if scores and preferred:
        _raise_score(profile, NODE_AFFINITY, scores.weight)
        affinity = _added_affinity(profile)
        terms = affinity.setdefault("preferredDuringSchedulingIgnoredDuringExecution", [])
        terms += [
            {"weight": _FULL_WEIGHT, "preference": {"matchExpressions": [expression]}}
            for expression in preferred
        ]
        report.note(
            "labels that nodes should have became addedAffinity of NodeAffinity: its score is "
            "relative to the best node, and shared with the preferences of the pod"
        )


def _expressions(args: Args, present: str, absent: str) -> list[Args]:
    return [
        {"key": label, "operator": operator}
        for field, operator in ((present, "Exists"), (absent, "DoesNotExist"))
        for label in args.get(field) or []
    ]


def _require(profile: OldProfile, expressions: list[Args]) -> None:
    affinity = _added_affinity(profile)
    selector = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = selector.get("nodeSelectorTerms") or [{}]
    selector["nodeSelectorTerms"] = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or []), *expressions]}
        for term in terms
    ]


def _added_affinity(profile: OldProfile) -> Args:
    args = profile.args.setdefault(NODE_AFFINITY, {})
    affinity = args.get("addedAffinity") or {}
    args["addedAffinity"] = affinity
    return affinity


def _raise_score(profile: OldProfile, plugin: str, weight: int) -> None:
    """Raise the score weight of a plugin to at least this weight."""
    before = _ref(profile, plugin)
    _take(profile, plugin, "score")
    highest = max(weight, before.weight if before else 0)
    profile.points["score"].append(PluginRef(name=plugin, weight=highest))


def _ref(profile: OldProfile, plugin: str, point: str = "score") -> PluginRef | None:
    return next((ref for ref in profile.points.get(point, ()) if ref.name == plugin), None)


def _take(profile: OldProfile, plugin: str, point: str = "") -> bool:
    """Remove a plugin from a point, or from all; tell whether it was there."""
    found = False
    for each in [point] if point else list(profile.points):
        refs = profile.points.get(each, [])
        left = [ref for ref in refs if ref.name != plugin]
        found = found or len(left) < len(refs)
        profile.points[each] = left
    return found
