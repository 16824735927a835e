"""The plugins of one profile, in the order of each extension point."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.config.profiles import PluginRef
from kubesched.framework import plugin as points
from kubesched.framework.plugin import Plugin
from kubesched.queue.hints import Registrations

P = TypeVar("P", bound=Plugin)


def of_kind(plugins: Iterable[Plugin], kind: type[P]) -> dict[str, P]:
    """Return the plugins of a kind, by name."""
    return {plugin.name: plugin for plugin in plugins if isinstance(plugin, kind)}


class ApplicablePlugins(Generic[P]):
    """The plugins of a point that run for a pod, and the names of those that do not apply to it."""

    __slots__ = ("inapplicable", "plugins")

    def __init__(self, plugins: Iterable[P], inapplicable: Container[str]) -> None:
        enabled = list(plugins)
        #: each with its name
        self.plugins = [
            (plugin.name, plugin) for plugin in enabled if plugin.name not in inapplicable
        ]
        #: names of the others
        self.inapplicable = [plugin.name for plugin in enabled if plugin.name in inapplicable]


class PointPlugins(Generic[P]):
    """The plugins of a point: most run for all pods, some only for pods with volumes."""

    __slots__ = ("_for_all", "_without_volumes")

    def __init__(self, plugins: Iterable[P], only_with_volumes: Container[str]) -> None:
        enabled = list(plugins)
        self._for_all = ApplicablePlugins(enabled, ())
        self._without_volumes = ApplicablePlugins(enabled, only_with_volumes)

    def applicable(self, pod: PodInfo) -> ApplicablePlugins[P]:
        """Return the plugins that run for a pod."""
        return self._without_volumes if pod.volumes is NO_VOLUMES else self._for_all


class ProfilePlugins:
    """A profile's plugin instances by extension point."""

    def __init__(
        self, enabled: Mapping[str, Sequence[PluginRef]], instances: Mapping[str, Plugin]
    ) -> None:
        def at(point: str) -> list[Any]:
            # The configuration was validated: each implements the point it is enabled at.
            return [instances[ref.name] for ref in enabled.get(point, ())]

        self.instances = instances
        self.pre_enqueue: list[points.PreEnqueue] = at("preEnqueue")
        self.queue_sort: list[points.QueueSort] = at("queueSort")
        self.pre_filter: list[points.SignaturePreFilter | points.PreFilter] = at("preFilter")
        #: those that skip all pods without volumes, at every later point too
        self.only_with_volumes = frozenset(
            each.name for each in self.pre_filter if each.only_with_volumes
        )
        #: those that do not apply to resizes
        self.skip_resizes = frozenset(each.name for each in self.pre_filter if each.skips_resizes)
        self.filter: list[points.RowFilter | points.Filter] = at("filter")
        self.post_filter: list[points.PostFilter] = at("postFilter")
        self.pre_score: list[points.SignaturePreScore | points.PreScore] = at("preScore")
        #: each with its weight
        self.score: list[tuple[points.RowScore | points.Score, int]] = list(
            zip(at("score"), (ref.weight for ref in enabled.get("score", ())), strict=True)
        )
        self.reserve: list[points.Reserve] = at("reserve")
        self.permit: list[points.Permit] = at("permit")
        self.pre_bind: list[points.PreBind] = at("preBind")
        self.bind: list[points.Bind] = at("bind")
        self.post_bind: list[points.PostBind] = at("postBind")
        self.placement_generate: list[points.PlacementGenerate] = at("placementGenerate")
        #: with the weight of each
        self.placement_score: list[tuple[points.PlacementScore, int]] = list(
            zip(
                at("placementScore"),
                (ref.weight for ref in enabled.get("placementScore", ())),
                strict=True,
            )
        )
        self.pod_group_post_filter: list[points.PodGroupPostFilter] = at("podGroupPostFilter")

    def registrations(self) -> dict[str, Registrations]:
        """Return the registered events of each plugin that can reject pods; None is any event."""
        rejecting = (
            *self.pre_enqueue,
            *self.pre_filter,
            *self.filter,
            *self.reserve,
            *self.permit,
        )
        return {plugin.name: plugin.events_to_register() for plugin in rejecting}
