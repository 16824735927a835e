"""A laboratory to schedule in: a cluster of a few objects, and a framework to ask about them.

Lab(node("n1"), pod("p1", node="n1")) ──> feasible nodes, messages, scores
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kubesched.api import names
from kubesched.api.core import Node, Pod
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.object_store import HasMeta, ObjectStore
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.config.args import PluginArgs
from kubesched.config.defaults import complete_profile
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginConfig, PluginRef, Plugins, PluginSet, Profile
from kubesched.framework.building import build_framework
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.group import GroupInfo
from kubesched.framework.null_writers import NullEvictor
from kubesched.framework.plugin import Filter, Plugin, RowFilter, RowScore
from kubesched.framework.runtime import Framework
from kubesched.framework.scoring import PluginScores
from kubesched.framework.status import Status
from kubesched.kinds import KINDS
from kubesched.plugins.in_tree import IN_TREE
from tests.support.evaluating import feasible_rows, total_scores

DEFAULT_GATES = FeatureGates.of()


class RecordingBinder:
    """A binder that only remembers what it was asked to bind."""

    def __init__(self) -> None:
        self.bound: list[tuple[str, str]] = []
        #: what to raise instead of binding
        self.failure: Exception | None = None

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        if self.failure is not None:
            raise self.failure
        self.bound.append((pod.full_name, node_name))


class RecordingEvictor(NullEvictor):
    """An evictor that only remembers which pods it was asked to evict."""

    def __init__(self) -> None:
        #: preemptor, node, victims
        self.evicted: list[tuple[str, str, list[str]]] = []
        #: group, victims
        self.evicted_for_groups: list[tuple[str, list[str]]] = []
        #: uids of pods for which evictions are still under way
        self.under_way: set[str] = set()

    def evict(self, preemptor: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        self.evicted.append((preemptor.uid, node_name, [victim.uid for victim in victims]))

    def evict_for_group(self, group: GroupInfo, victims: Sequence[PodInfo]) -> None:
        uids = [victim.uid for victim in victims]
        self.evicted_for_groups.append((group.group.metadata.uid, uids))

    def preemptors(self) -> set[str]:
        return self.under_way


def cluster_of(*objects: Node | Pod, rules: RequestRules | None = None) -> Cluster:
    """Make a cluster of nodes, and of pods that name their node."""
    cluster = Cluster(rules)
    for each in objects:
        if isinstance(each, Node):
            cluster.put_node(each)
        else:
            cluster.put_pod(each)
    return cluster


def framework_of(
    cluster: Cluster,
    *,
    plugins: Sequence[type[Plugin]] = (),
    only: Sequence[str] | None = None,
    args: Mapping[str, PluginArgs] | None = None,
    gates: FeatureGates = DEFAULT_GATES,
    binder: RecordingBinder | None = None,
    evictor: RecordingEvictor | None = None,
) -> Framework:
    """Make the default profile's framework, with more `plugins` at all points they implement.

    `only` replaces the default plugins by the named ones and those without which there is no
    profile.
    """
    added = tuple(PluginRef(name=each.name) for each in plugins)
    chosen = PluginSet(enabled=added)
    if only is not None:
        needed = ("PrioritySort", *only, "DefaultBinder")
        kept = tuple(PluginRef(name=name) for name in dict.fromkeys(needed))
        chosen = PluginSet(enabled=(*kept, *added), disabled=(PluginRef(name="*"),))
    profile = complete_profile(
        Profile(scheduler_name=names.DEFAULT_SCHEDULER, plugins=Plugins(multi_point=chosen)),
        given_args=tuple(PluginConfig(name=name, args=each) for name, each in (args or {}).items()),
        gates=gates,
    )
    return build_framework(
        profile,
        registry=IN_TREE.with_plugins(plugins),
        gates=gates,
        cluster=cluster,
        binder=binder or RecordingBinder(),
        evictor=evictor or RecordingEvictor(),
    )


def store_of(cluster: Cluster, obj: HasMeta) -> ObjectStore[Any, Any]:
    """Return where a cluster keeps objects like this one."""
    store = KINDS[type(obj).__name__].store
    assert store is not None
    return store(cluster)


class Lab:
    """A cluster and a framework, and questions to them by node name."""

    def __init__(
        self,
        *objects: Node | Pod,
        plugins: Sequence[type[Plugin]] = (),
        only: Sequence[str] | None = None,
        args: Mapping[str, PluginArgs] | None = None,
        gates: FeatureGates = DEFAULT_GATES,
    ) -> None:
        self.cluster = cluster_of(*objects, rules=RequestRules.of(gates))
        self.binder = RecordingBinder()
        self.evictor = RecordingEvictor()
        self.framework = framework_of(
            self.cluster,
            plugins=plugins,
            only=only,
            args=args,
            gates=gates,
            binder=self.binder,
            evictor=self.evictor,
        )

    def pending(self, unbound: Pod) -> PodInfo:
        """Compile a pod that wants a node."""
        return self.cluster.compiler.pending(unbound)

    def names(self, rows: IndexArray) -> list[str]:
        """Return the names of the nodes at rows."""
        return [self.cluster.table.name_at(row) for row in rows.tolist()]

    def find(self, unbound: Pod, state: CycleState | None = None) -> list[str] | Diagnosis:
        """Return the names of feasible nodes, in order, or the diagnosis."""
        found = feasible_rows(
            self.framework.evaluator, state or CycleState(), self.pending(unbound)
        )
        return found if isinstance(found, Diagnosis) else self.names(found)

    def feasible(self, unbound: Pod) -> list[str]:
        """Return the names of feasible nodes, in order."""
        found = self.find(unbound)
        return [] if isinstance(found, Diagnosis) else found

    def diagnosis(self, unbound: Pod) -> Diagnosis:
        """Return why the pod fits nowhere."""
        found = self.find(unbound)
        assert isinstance(found, Diagnosis), f"{unbound.metadata.name} fits on {found}"
        return found

    def message(self, unbound: Pod) -> str:
        """Return the text that tells why the pod fits nowhere."""
        return self.diagnosis(unbound).message()

    def left_by_masks(self, name: str, unbound: Pod) -> list[str]:
        """Return the nodes that are in none of the masks of nodes that a plugin rejects."""
        plugin, table = self.framework.plugins.instances[name], self.cluster.table
        assert isinstance(plugin, Filter)
        verdict = plugin.filter(CycleState(), self.pending(unbound), NodeRows.all_of(table))
        rejected = np.logical_or.reduce([np.zeros(table.size, dtype=np.bool_), *verdict.masks()])
        return [name for name in table.names() if not rejected[table.row_of(name)]]

    def plugin_scores(self, unbound: Pod) -> dict[str, PluginScores]:
        """Return what each plugin that does not skip thinks of the feasible nodes."""
        info, state = self.pending(unbound), CycleState()
        rows = feasible_rows(self.framework.evaluator, state, info)
        assert not isinstance(rows, Diagnosis), rows.message()
        found = self.framework.evaluator.plugin_scores(state, info, rows)
        return {each.plugin: each for each in found}

    def scores(self, plugin: str, unbound: Pod, *, raw: bool = False) -> dict[str, int]:
        """Return one plugin's scores of the feasible nodes, normalised unless `raw`."""
        scores = self.plugin_scores(unbound)[plugin]
        values = scores.raw if raw else scores.normalized
        return dict(zip(self.feasible(unbound), values.tolist(), strict=True))

    def totals(self, unbound: Pod) -> dict[str, int]:
        """Return the weighted sums for the feasible nodes."""
        info, state = self.pending(unbound), CycleState()
        rows = feasible_rows(self.framework.evaluator, state, info)
        assert not isinstance(rows, Diagnosis), rows.message()
        totals = total_scores(self.framework.evaluator, state, info, rows)
        return dict(zip(self.names(rows), totals.tolist(), strict=True))

    def plugin(self, name: str) -> Any:
        """Return the instance of a plugin."""
        return self.framework.plugins.instances[name]

    def rejections(self, plugin: str, unbound: Pod) -> dict[str, Status]:
        """Return what a row-local filter says about each node that it turns away."""
        row_filter = self.plugin(plugin)
        assert isinstance(row_filter, RowFilter)
        table = self.cluster.table
        verdict = row_filter.filter(self.pending(unbound).signature, NodeRows.all_of(table))
        return {
            table.name_at(row): status
            for row in np.flatnonzero(table.valid[: table.size]).tolist()
            if (status := verdict.status_of(row)) is not None
        }

    def raw_scores(self, plugin: str, unbound: Pod) -> dict[str, int]:
        """Return a row-local plugin's raw scores of all nodes, feasible or not."""
        row_score = self.plugin(plugin)
        assert isinstance(row_score, RowScore)
        table = self.cluster.table
        scores = row_score.score(self.pending(unbound).signature, NodeRows.all_of(table))
        return {
            table.name_at(row): int(scores[row])
            for row in np.flatnonzero(table.valid[: table.size]).tolist()
        }
