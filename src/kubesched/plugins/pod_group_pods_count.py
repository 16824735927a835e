"""PodGroupPodsCount: prefers placements in which more pods of the group have a node.

score = pods of the group with a node · 100 / the most of them in any placement
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.cluster.group_forest import GroupForest
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import Assignments, GroupInfo
from kubesched.framework.plugin import MAX_NODE_SCORE, PlacementScore
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SUCCESS, Status, error


class PodGroupPodsCount(PlacementScore):
    """Counts pods, those that had a node before included."""

    name = "PodGroupPodsCount"

    def __init__(self, forest: GroupForest) -> None:
        self._forest = forest

    @classmethod
    def create(cls, context: PluginContext) -> PodGroupPodsCount:
        """Make the plugin."""
        composite = context.gates.enabled("CompositePodGroup")
        return cls(GroupForest(context.cluster.groups, composite=composite))

    def score_placement(self, group: GroupInfo, placed: Assignments) -> tuple[int, Status]:
        """Count the pods with a node."""
        return len(self._forest.placed(group.key)) + len(placed.assigned), SUCCESS

    def score_placements(
        self, group: GroupInfo, placed: Sequence[Assignments]
    ) -> tuple[Sequence[int], Status]:
        """Count the pods with a node; those that had one before once for all placements."""
        before = len(self._forest.placed(group.key))
        return [before + len(each.assigned) for each in placed], SUCCESS

    def normalize_placements(
        self,
        state: CycleState,  # noqa: ARG002
        scores: Sequence[int],
    ) -> tuple[Sequence[int], Status]:
        """Scale the counts."""
        most = max(scores, default=0)
        if most == 0:
            text = "no pods from pod group are assigned to any of the candidate placements"
            return scores, error(text)
        return [score * MAX_NODE_SCORE // most for score in scores], SUCCESS
