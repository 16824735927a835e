"""Judges decisions about groups: as a whole, with the first of their members that is seen.

    first member is bound ──> our decision about all members that wait ──> one finding
    the others ─────────────> part of it, not judged again

Which of a group's nodes a member gets depends on all members before it, and bindings are seen in
any order. So it is compared whether the group is placed at all and in which topology domain.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from kubesched.api.core import Pod
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_groups import GroupKey
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.transaction import Transaction
from kubesched.framework.group import GroupInfo
from kubesched.scheduler.group_dry_run import GroupDecision, GroupDryRun
from kubesched.shadow.comparing import NAMED, DecisionComparison, same_words
from kubesched.shadow.report import Agreement, SchedulerChoice
from kubesched.shadow.watching import WatchedCluster


class GroupJudge:
    """Compares decisions about groups with ours."""

    def __init__(self, watched: WatchedCluster, groups: GroupDryRun) -> None:
        self._watched = watched
        self._groups = groups
        #: uids of members whose binding belongs to a finding already
        self._judged: set[str] = set()
        #: our last decision that placed nothing: group, state of the cluster
        self._refused: tuple[Hashable, GroupDecision] | None = None

    def is_judged(self, pod: Pod) -> bool:
        """Tell whether a binding was judged with another member of its group, and forget it."""
        known = pod.metadata.uid in self._judged
        self._judged.discard(pod.metadata.uid)
        return known

    def compare(self, pod: Pod, theirs: SchedulerChoice) -> DecisionComparison | str:
        """Compare a decision about a member with ours about its group, or say why not."""
        if theirs.nodes:
            return self.compare_binding(pod, theirs.nodes[0])
        return self.compare_refusal(pod, theirs.message)

    def compare_binding(self, pod: Pod, node_name: str) -> DecisionComparison | str:
        """Compare our decision about a group with the binding of its first member."""
        root = self._root(pod)
        if isinstance(root, str):
            return root
        with self._watched.cluster.transaction() as tx:
            _release(root.pods, tx)
            decision = self._groups.decide(root, preempts=False)
        self._judged.update(each.uid for each in root.pods if each.uid != pod.metadata.uid)
        nodes = tuple(dict.fromkeys(each.node_name for each in decision.assigned))
        ours = SchedulerChoice(nodes=nodes[:NAMED], message=decision.status.message)
        if not decision.gate.ok:
            why = decision.gate.message
            return DecisionComparison(verdict=Agreement.GATED, ours=ours, why=why)
        if not decision.status.ok:
            why = decision.status.message
            return DecisionComparison(verdict=Agreement.NONE_FITS, ours=ours, why=why)
        theirs, mine = self._domains(root, [node_name]), self._domains(root, nodes)
        if theirs != mine:
            why = f"ours places the group in {', '.join(sorted(mine))}, theirs in {theirs.pop()}"
            return DecisionComparison(verdict=Agreement.OTHER_PLACEMENT, ours=ours, why=why)
        return DecisionComparison(verdict=Agreement.SAME, ours=ours)

    def compare_refusal(self, pod: Pod, message: str) -> DecisionComparison | str:
        """Compare what is said of a member with what we say, having decided about its group."""
        root = self._root(pod)
        if isinstance(root, str):
            return root
        decision = self._refusal(root)
        nodes = tuple(dict.fromkeys(each.node_name for each in decision.assigned))
        info = next(each for each in root.pods if each.uid == pod.metadata.uid)
        said = decision.gate.message or decision.message_of(info)
        ours = SchedulerChoice(nodes=nodes[:NAMED], message=said)
        if not decision.gate.ok:
            return DecisionComparison(verdict=Agreement.GATED, ours=ours, why=said)
        if any(each.pod.uid == info.uid for each in decision.assigned):
            why = f"{len(decision.assigned)} members fit"
            return DecisionComparison(verdict=Agreement.WOULD_PLACE, ours=ours, why=why)
        if not same_words(said, message):
            return DecisionComparison(verdict=Agreement.OTHER_WORDS, ours=ours, why=f"ours: {said}")
        return DecisionComparison(verdict=Agreement.SAME_MESSAGE, ours=ours)

    def _root(self, pod: Pod) -> GroupInfo | str:
        """Return the tree of a member, or why it is not judged."""
        key = self._watched.cluster.groups.of(pod)
        root = None if key is None else self._groups.forest.root_of(key)
        info = None if root is None else self._groups.info(root)
        if info is None or all(each.uid != pod.metadata.uid for each in info.pods):
            return "the pod's group is not known yet"
        return info

    def _refusal(self, root: GroupInfo) -> GroupDecision:
        """Decide about a group; once for all members that are told of the same attempt."""
        uids = tuple(each.uid for each in root.pods)
        state: tuple[GroupKey, tuple[str, ...], object] = (
            root.key,
            uids,
            self._watched.cluster.version,
        )
        if self._refused is None or self._refused[0] != state:
            self._refused = state, self._groups.decide(root)
        return self._refused[1]

    def _domains(self, root: GroupInfo, nodes: Iterable[str]) -> set[str]:
        """Return the topology domains of nodes; the same for all if the group has no topology."""
        if root.topology_key is None:
            return {"any"}
        table: NodeTable = self._watched.cluster.table
        rows = [row for name in nodes if (row := table.row_of(name)) is not None]
        labels = (table.node_at(row).metadata.labels or {} for row in rows)
        return {each.get(root.topology_key, "") for each in labels}


def _release(pods: Iterable[PodInfo], tx: Transaction) -> None:
    """Take back the devices that the other scheduler has written for members already."""
    for each in pods:
        tx.release(each.pod)
