"""QuietRacks: avoid racks with many noisy pods.

Noisy pods are those that a label selector matches. The engine counts pods by selector and topology
domain anyway; a plugin gets such counts for a selector of its own, and they follow every pod.

Racks are scored, not nodes: the plugin returns a score for each rack and which rack each node is
in, so a decision costs as many numbers as there are racks.
"""

from __future__ import annotations

from typing import Self

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.domain_scores import DomainScores
from kubesched.framework.node_by_node import LowestWins
from kubesched.framework.plugin import Score
from kubesched.framework.pod_counts import PodCounts
from kubesched.framework.registry import PluginContext
from kubesched.plugin_loading import Arguments, arguments_of


class QuietRacks(LowestWins, Score):
    """Scores by the number of noisy pods in the rack; `LowestWins` turns that into 0 to 100."""

    name = "QuietRacks"

    class Args(Arguments):
        """What the configuration may say."""

        selector: str = "noisy=true"
        topology_key: str = "topology.kubernetes.io/rack"

    def __init__(self, counts: PodCounts) -> None:
        self._counts = counts

    @classmethod
    def create(cls, context: PluginContext) -> Self:
        """Make the plugin."""
        args = arguments_of(context.profile, cls)
        return cls(context.pod_counts(args.topology_key, args.selector))

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> DomainScores:
        """Return the number of noisy pods in the rack of each node."""
        return self._counts.scores(nodes)
