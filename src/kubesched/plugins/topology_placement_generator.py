"""TopologyPlacementGenerator: a group goes to nodes that have the same value of a label.

There is one placement for each value of the label that the group names; nodes without it are in
none. Members that have a node already decide which value it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.group_forest import GroupForest
from kubesched.cluster.incremental import Memo
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import GroupInfo, Placement
from kubesched.framework.plugin import PlacementGenerate
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SUCCESS, Status, error


class TopologyPlacementGenerator(PlacementGenerate):
    """Makes a placement of each topology domain."""

    name = "TopologyPlacementGenerator"

    def __init__(self, cluster: Cluster, forest: GroupForest) -> None:
        self._cluster = cluster
        self._forest = forest
        #: label → a placement for each of its domains on all nodes
        self._everywhere: Memo[str, list[Placement]] = Memo(
            self._on_all_nodes, cluster.table.node_changes
        )

    @classmethod
    def create(cls, context: PluginContext) -> TopologyPlacementGenerator:
        """Make the plugin."""
        composite = context.gates.enabled("CompositePodGroup")
        forest = GroupForest(context.cluster.groups, composite=composite)
        return cls(context.cluster, forest)

    def generate_placements(
        self,
        state: CycleState,  # noqa: ARG002
        group: GroupInfo,
        within: Placement,
    ) -> tuple[Sequence[Placement], Status]:
        """Return a placement for each domain, in the order of their names."""
        label = group.topology_key
        if label is None:
            return [within], SUCCESS
        placed = self._forest.placed(group.key)
        required: str | None = None
        for pod in placed:
            domain, problem = self._domain_of(pod, label)
            if not problem and required is not None and domain != required:
                problem = f"more than 1 domain found for pod group: {required}, {domain}"
            if problem:
                text = f"cannot determine domain for already scheduled pods: {problem}"
                return [], error(text)
            required = domain
        return [
            each for each in self._domains(label, within) if required in (None, each.name)
        ], SUCCESS

    def _domain_of(self, pod: PodInfo, label: str) -> tuple[str, str]:
        """Return the domain of a member's node, or what is wrong with it."""
        table, node_name = self._cluster.table, self._cluster.node_of(pod.uid) or ""
        row = table.row_of(node_name)
        if row is None:
            found = f'nodeinfo not found for node name "{node_name}"'
            return "", f"getting node for pod {pod.full_name}: {found}"
        domain = (table.node_at(row).metadata.labels or {}).get(label)
        if domain is None:
            return "", f"no topology domain found for pod {pod.full_name}"
        return domain, ""

    def _domains(self, label: str, within: Placement) -> list[Placement]:
        if within.count == len(self._cluster.table):
            return self._everywhere.of(label)
        return self._within(label, within.rows)

    def _on_all_nodes(self, label: str) -> list[Placement]:
        table = self._cluster.table
        return self._within(label, table.valid[: table.size])

    def _within(self, label: str, rows: BoolArray) -> list[Placement]:
        column = self._cluster.table.label_column(label)
        ids = np.where(rows, column.ids[: len(rows)], 0)
        found = [int(each) for each in np.unique(ids) if each]
        named = sorted((column.vocabulary.values[each] or "", each) for each in found)
        return [Placement(name, ids == each) for name, each in named]
