"""A scheduling profile: which plugins run at which extension point, and with which arguments.

These are the completed forms, after defaulting: ``plugins`` is the user's choice merged with the
default plugins, ``plugin_config`` has arguments for every enabled plugin that takes any.
``config.plugins`` expands ``multi_point`` into the order in which each point runs its plugins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeVar

from msgspec import structs

from kubesched.api.meta import ApiStruct
from kubesched.config.args import PluginArgs
from kubesched.errors import ConfigError

A = TypeVar("A", bound=ApiStruct)

#: Names of the extension points as configuration keys, without ``multiPoint``.
EXTENSION_POINTS: Final = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)
MULTI_POINT: Final = "multiPoint"

#: In a disabled list: all default plugins of the point.
ALL_PLUGINS: Final = "*"


class PluginRef(ApiStruct, frozen=True):
    """A plugin by name; the weight counts only for scores, where 0 means 1."""

    name: str = ""
    weight: int = 0


class PluginSet(ApiStruct, frozen=True):
    """Plugins enabled and disabled at one extension point."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


class Plugins(ApiStruct, frozen=True):
    """The plugin sets of all extension points."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()

    def at(self, point: str) -> PluginSet:
        """Return the set of one point, named as in the configuration (``preFilter``)."""
        plugin_set = getattr(self, _ATTRIBUTES[point])
        assert isinstance(plugin_set, PluginSet)  # noqa: S101 - every field is one
        return plugin_set

    def items(self) -> Iterator[tuple[str, PluginSet]]:
        """Return all points with their sets, ``multiPoint`` included."""
        return ((point, self.at(point)) for point in _ATTRIBUTES)

    def names(self) -> list[str]:
        """List every plugin that is enabled anywhere, sorted."""
        return sorted({ref.name for _, plugin_set in self.items() for ref in plugin_set.enabled})


#: configuration key to attribute
_ATTRIBUTES: Final = {info.encode_name: info.name for info in structs.fields(Plugins)}


class PluginConfig(ApiStruct, frozen=True):
    """Arguments of one plugin: typed if it is in-tree, plain JSON otherwise, None without any."""

    name: str
    args: PluginArgs | dict[str, Any] | None = None


class Profile(ApiStruct, frozen=True):
    """A scheduler name, and the plugins for the pods that name it."""

    scheduler_name: str
    #: None: the value of the whole configuration counts; 0: chosen by cluster size
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()

    def args(self, plugin: str, kind: type[A]) -> A:
        """Return the arguments of an in-tree plugin, of the struct that belongs to it."""
        for config in self.plugin_config:
            if config.name == plugin and isinstance(config.args, kind):
                return config.args
        raise ConfigError(
            f"profile {self.scheduler_name}: plugin {plugin} has no {kind.__name__} configured"
        )
