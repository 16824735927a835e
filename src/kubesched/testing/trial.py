"""A plugin on a random cluster, alone and beside the default plugins.

Subject: class, arguments, nodes and pods that matter to it, seed
   └── trials() ──> PluginTrial: RandomCluster, two frameworks on it, and failure messages
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from msgspec import Struct

from kubesched.api import names
from kubesched.api.core import Node, Pod
from kubesched.clock import RealClock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.config.defaults import IN_TREE_PLUGINS, complete_profile
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginConfig, PluginRef, Plugins, PluginSet, Profile
from kubesched.errors import InvariantError
from kubesched.framework.building import build_framework
from kubesched.framework.plugin import Filter, Plugin, QueueSort, RowFilter, RowScore, Score
from kubesched.framework.registry import Registry
from kubesched.framework.runtime import Framework
from kubesched.plugin_loading import guarded
from kubesched.plugins.in_tree import IN_TREE
from kubesched.testing.asking import Asker
from kubesched.testing.random_cluster import RandomCluster

_GATES: Final = FeatureGates.of({})
#: Plugins that a profile requires.
_SORT: Final = "PrioritySort"
_NEEDED: Final = (_SORT, "DefaultBinder")
#: Number of recent events in a message.
_TOLD_EVENTS: Final = 6


P = TypeVar("P", bound=Plugin)


class PluginCheckError(AssertionError):
    """A plugin breaks a promise of the contract; the text says which, and where."""


class Subject(Struct, frozen=True, kw_only=True):
    """A plugin class to check, and its inputs."""

    plugin: type[Plugin]
    args: Mapping[str, Any] | None = None
    nodes: Sequence[Node] = ()
    pods: Sequence[Pod] = ()
    seed: int = 0
    examples: int = 6

    @property
    def name(self) -> str:
        """The plugin's name."""
        return getattr(self.plugin, "name", "") or self.plugin.__name__

    def trials(self, check: str) -> Iterator[PluginTrial]:
        """Return the plugin on random clusters, for one check."""
        for example in range(self.examples):
            yield PluginTrial(self, check, example)

    def framework(self, cluster: Cluster, *, alone: bool) -> Framework:
        """Return a profile with the plugin: as the only one, or beside the default plugins."""
        is_default = self.name in IN_TREE_PLUGINS and IN_TREE.get(self.name) is self.plugin
        # A profile has one order of the queue.
        sorts = issubclass(self.plugin, QueueSort)
        # Weighted, so that the plugin's scores show in decisions.
        own = PluginRef(name=self.name, weight=100)
        if alone:
            # The plugin may itself be one of the required ones.
            others = [
                each for each in _NEEDED if each != self.name and not (sorts and each == _SORT)
            ]
            needed = map(PluginRef, others)
            chosen = PluginSet(enabled=(*needed, own), disabled=(PluginRef(name="*"),))
        elif is_default:
            chosen = PluginSet()
        else:
            chosen = PluginSet(enabled=(own,), disabled=(PluginRef(_SORT),) if sorts else ())
        profile = complete_profile(
            Profile(scheduler_name=names.DEFAULT_SCHEDULER, plugins=Plugins(multi_point=chosen)),
            given_args=()
            if self.args is None
            else (PluginConfig(name=self.name, args=dict(self.args)),),
            gates=_GATES,
        )
        return build_framework(profile, registry=self._registry(), gates=_GATES, cluster=cluster)

    def _registry(self) -> Registry:
        if IN_TREE.get(self.name) is self.plugin:
            return IN_TREE
        return IN_TREE.with_plugins([guarded(self.plugin, RealClock())])


class PluginTrial:
    """One plugin on one random cluster."""

    def __init__(self, subject: Subject, check: str, example: int) -> None:
        self.subject = subject
        self._check = check
        self._example = example
        rng = Random(f"{subject.seed}/{example}")  # noqa: S311 (no secret)
        self.world = RandomCluster(rng, nodes=subject.nodes, pods=subject.pods)
        self.rng = rng

    @property
    def cluster(self) -> Cluster:
        """The current cluster."""
        return self.world.cluster

    @property
    def table(self) -> NodeTable:
        """The nodes of the cluster."""
        return self.world.cluster.table

    @cached_property
    def alone(self) -> Framework:
        """A profile without other plugins that decide anything."""
        return self.subject.framework(self.cluster, alone=True)

    @cached_property
    def together(self) -> Framework:
        """The default profile, with the plugin."""
        return self.subject.framework(self.cluster, alone=False)

    @property
    def plugin(self) -> Plugin:
        """The plugin instance of the runtime."""
        return self.alone.plugins.instances[self.subject.name]

    def plugin_as(self, kind: type[P]) -> P:
        """Return the plugin as a kind, for checks of that kind."""
        if not isinstance(self.plugin, kind):
            raise InvariantError(f"{self.subject.name} is no {kind.__name__}")
        return self.plugin

    @cached_property
    def asker(self) -> Asker:
        """Calls the plugin uncached."""
        return Asker(self.plugin, self.table)

    def pods(self, count: int = 6) -> list[PodInfo]:
        """Return pending pods: some random ones, and the given ones."""
        return self.world.pending(self.world.pods_to_ask_about(count))

    def steps(self, count: int) -> Iterator[None]:
        """Apply `count` events one by one; the first turn is before all of them."""
        yield
        for _ in range(count):
            self.world.step()
            yield

    def fail(
        self,
        what: str,
        *,
        pod: PodInfo | None = None,
        node: str = "",
        cause: Exception | None = None,
    ) -> NoReturn:
        """Raise PluginCheckError."""
        about = [f"pod {pod.full_name}"] if pod is not None else []
        about += [f"node {node}"] if node else []
        events = self.world.events[-_TOLD_EVENTS:]
        lines = [
            f"{self.subject.name} breaks {self._check}: {what}",
            *([f"  asked about {', '.join(about)}"] if about else []),
            *([f"  after: {'; '.join(events)}"] if events else []),
            f"  to repeat it: seed={self.subject.seed}, example {self._example}",
        ]
        raise PluginCheckError("\n".join(lines)) from cause

    def compare(
        self,
        said: Mapping[str, object],
        expected: Mapping[str, object],
        what: str,
        *,
        pod: PodInfo | None = None,
    ) -> None:
        """Fail if two answers differ for a node; `what` describes them."""
        for node in [*expected, *(each for each in said if each not in expected)]:
            ours, theirs = shown(said.get(node)), shown(expected.get(node))
            if said.get(node) != expected.get(node):
                self.fail(f"{what}: said {ours}, expected {theirs}", pod=pod, node=node)


Check = Callable[[PluginTrial], None]


class Promise(NamedTuple):
    """A check, and the plugins it applies to."""

    name: str
    check: Check
    applies_to: Callable[[type[Plugin]], bool]


class Promises:
    """The checks of one module, in source order."""

    def __init__(self) -> None:
        self.all: list[Promise] = []

    def by(
        self, *kinds: type[Plugin], where: Callable[[type[Plugin]], bool] = lambda _: True
    ) -> Callable[[Check], Check]:
        """Register a check for plugins of some kinds, optionally filtered by `where`."""

        def register(check: Check) -> Check:
            name = check.__name__.removeprefix("check_")
            self.all.append(Promise(name, check, lambda cls: issubclass(cls, kinds) and where(cls)))
            return check

        return register


#: Plugins with answers about nodes.
DECIDING: Final[tuple[type[Plugin], ...]] = (RowFilter, Filter, RowScore, Score)


def shown(answer: object) -> str:
    """Format an answer for a message."""
    code = getattr(answer, "code", None)
    if code is None:
        return repr(answer)
    return f"{code.label} {answer.message!r}"  # type: ignore[attr-defined]
