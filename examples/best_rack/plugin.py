"""BestRack: keep each group of pods in one rack if it fits, and leave whole racks free.

All three extension points of groups in one plugin:

    generate_placements    each rack, and last of all: all nodes
    score_placement        the rack that is fullest with the group; all nodes are the last choice
    pod_group_post_filter  says so if not even all nodes are enough

Enable it instead of TopologyPlacementGenerator: only one plugin generates placements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from kubesched.cluster.node_table import NodeTable
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import (
    Assignments,
    GroupInfo,
    GroupTrial,
    Placement,
    PodGroupPostFilterResult,
)
from kubesched.framework.plugin import PlacementGenerate, PlacementScore, PodGroupPostFilter
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SUCCESS, Status, unschedulable
from kubesched.plugin_loading import Arguments, arguments_of

ANYWHERE = ""


class BestRack(PlacementGenerate, PlacementScore, PodGroupPostFilter):
    """Tries each rack, and then all nodes."""

    name = "BestRack"
    # After DefaultPreemption, even if that says that nothing helps.
    last_resort = True

    class Args(Arguments):
        """What the configuration may say."""

        topology_key: str = "topology.kubernetes.io/rack"

    def __init__(self, table: NodeTable, topology_key: str) -> None:
        self._table = table
        self._key = topology_key

    @classmethod
    def create(cls, context: PluginContext) -> Self:
        """Make the plugin."""
        return cls(context.cluster.table, arguments_of(context.profile, cls).topology_key)

    def generate_placements(
        self, state: CycleState, group: GroupInfo, within: Placement
    ) -> tuple[Sequence[Placement], Status]:
        """Return a mask over rows for each rack, and one for all nodes."""
        column = self._table.label_column(self._key)
        racks = np.where(within.rows, column.ids[: len(within.rows)], 0)
        named = [(column.vocabulary.values[each] or "", each) for each in np.unique(racks) if each]
        placements = [Placement(name, racks == each) for name, each in sorted(named)]
        return [*placements, Placement(ANYWHERE, within.rows)], SUCCESS

    def score_placement(self, group: GroupInfo, placed: Assignments) -> tuple[int, Status]:
        """Return how full the placement is with the group, in percent of its pods' places."""
        if placed.placement.name == ANYWHERE:
            return 0, SUCCESS
        rows = np.flatnonzero(placed.placement.rows)
        places = int(self._table.allowed_pods[rows].sum())
        taken = int(self._table.pod_count[rows].sum()) + len(placed.assigned)
        return 1 + 99 * min(taken, places) // max(places, 1), SUCCESS

    def pod_group_post_filter(
        self, state: CycleState, group: GroupInfo, trial: GroupTrial
    ) -> PodGroupPostFilterResult:
        """Say that neither a rack nor all nodes have enough room."""
        text = f"neither one {self._key} nor all nodes have room for {len(group.pods)} pods"
        return PodGroupPostFilterResult(unschedulable(text))
