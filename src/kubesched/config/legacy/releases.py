"""The default plugins of each extension point, in releases that listed them by point.

Each apiVersion implies the last release that read it: v1alpha1 and v1alpha2 for v1.18, v1beta1
for v1.22, v1beta2 for v1.27. PreFilter and PreScore are not listed: they follow Filter and Score.
What v1.18 did outside of the framework (preemption, binding volumes) is listed as today's plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kubesched.config.profiles import PluginRef
from kubesched.errors import ConfigError

#: extension point to plugins in running order
Points = dict[str, list[PluginRef]]

V1ALPHA1: Final = "v1alpha1"
V1ALPHA2: Final = "v1alpha2"
V1BETA1: Final = "v1beta1"
V1BETA2: Final = "v1beta2"
V1BETA3: Final = "v1beta3"
#: from the oldest to the newest
OLD_VERSIONS: Final = (V1ALPHA1, V1ALPHA2, V1BETA1, V1BETA2, V1BETA3)

DEFAULT_PROVIDER: Final = "DefaultProvider"
AUTOSCALER_PROVIDER: Final = "ClusterAutoscalerProvider"
PROVIDERS: Final = (DEFAULT_PROVIDER, AUTOSCALER_PROVIDER)

_EVERYWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "queueSort": ("PrioritySort",),
    "filter": (
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "EBSLimits",
        "GCEPDLimits",
        "NodeVolumeLimits",
        "AzureDiskLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
    ),
    "postFilter": ("DefaultPreemption",),
    "reserve": ("VolumeBinding",),
    "preBind": ("VolumeBinding",),
    "bind": ("DefaultBinder",),
}
_SCORES: Final[Mapping[str, int]] = {
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "InterPodAffinity": 1,
    "NodeAffinity": 1,
    "TaintToleration": 1,
}
_SCORES_V1_18: Final = {
    **_SCORES,
    "NodeResourcesLeastAllocated": 1,
    "NodePreferAvoidPods": 10000,
    "DefaultPodTopologySpread": 1,
    "PodTopologySpread": 1,
}
_SCORES_BY_VERSION: Final[Mapping[str, Mapping[str, int]]] = {
    V1ALPHA1: _SCORES_V1_18,
    V1ALPHA2: _SCORES_V1_18,
    V1BETA1: {
        **_SCORES,
        "NodeResourcesLeastAllocated": 1,
        "NodePreferAvoidPods": 10000,
        "PodTopologySpread": 2,
    },
    V1BETA2: {**_SCORES, "NodeResourcesFit": 1, "PodTopologySpread": 2},
}

#: Today's plugins that the old releases had; all others were added later.
KNOWN_THEN: Final = frozenset(
    (*(name for names in _EVERYWHERE.values() for name in names), *_SCORES)
)


class OldProfile(msgspec.Struct):
    """A profile before its conversion to v1: the plugins of each point, and their arguments."""

    scheduler_name: str | None
    points: Points
    #: arguments by plugin, as they were given
    args: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    #: plugins that the user put in an order, by point
    chosen: dict[str, list[str]] = msgspec.field(default_factory=dict)
    #: points whose defaults the user disabled with ``*``
    emptied: set[str] = msgspec.field(default_factory=set)
    #: whether SelectorSpread spread pods without constraints
    selector_spread_apart: bool = False


def default_points(version: str, provider: str = DEFAULT_PROVIDER) -> Points:
    """Return the plugins that ran if the configuration named none."""
    if provider not in PROVIDERS:
        known = " or ".join(PROVIDERS)
        raise ConfigError(f'algorithm provider "{provider}" never existed: it has to be {known}')
    scores = _SCORES_BY_VERSION[version]
    if provider == AUTOSCALER_PROVIDER:
        least, most = "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated"
        if least not in scores:
            raise ConfigError(f"{version} has no algorithm providers: they ended with v1beta1")
        scores = {most if name == least else name: scores[name] for name in scores}
    points = {point: [PluginRef(name=name) for name in _EVERYWHERE[point]] for point in _EVERYWHERE}
    points["score"] = [PluginRef(name=name, weight=weight) for name, weight in scores.items()]
    return points
