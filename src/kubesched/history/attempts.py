"""What the scheduler knew in an attempt, evaluated again on the state of that moment.

The recording has the result, the message and the numbers of nodes. Which nodes a reason rejected,
and the scores, follow from the state: filters and scores depend on nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from kubesched.api.core import Pod
from kubesched.api.resource import AllocationResult
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.history.report import (
    AttemptKnown,
    ChosenVictim,
    ClaimKnown,
    ExtenderAnswer,
    RejectedNodes,
    ScoredNode,
    WinningScore,
)
from kubesched.recording.entries import Answered, Decided

_EXAMPLES: Final = 3
_EXTENDER: Final = "Extender"


def known_at(
    cluster: Cluster,
    framework: Framework,
    pod: PodInfo,
    entry: Decided,
    answers: Sequence[Answered],
) -> AttemptKnown:
    """Return what was known in an attempt; the cluster is in the state before the decision."""
    attempt = _EvaluatedAttempt(cluster.table, framework, pod, entry)
    if answers:
        # They answered about an earlier state, and scored as well.
        attempt.note = "rejections and scores are not evaluated again: extenders took part"
    else:
        attempt.evaluate()
    return AttemptKnown(
        number=entry.attempt,
        profile=entry.profile,
        code=entry.code,
        node=entry.node,
        message=entry.message,
        nodes=len(cluster.table),
        evaluated=entry.evaluated,
        feasible=entry.feasible,
        rejected=attempt.rejected,
        scores=attempt.scores,
        nominated=entry.nominated,
        victims=victims_of(cluster, entry.victims),
        plugins=entry.plugins,
        pending_plugins=entry.pending_plugins,
        claims=claims_of(cluster, pod),
        extenders=tuple(map(_answer, answers)),
        note=attempt.note,
    )


class _EvaluatedAttempt:
    """One attempt, evaluated again."""

    def __init__(
        self, table: NodeTable, framework: Framework, pod: PodInfo, entry: Decided
    ) -> None:
        self._table = table
        self._framework = framework
        self._pod = pod
        self._entry = entry
        self.rejected: tuple[RejectedNodes, ...] = ()
        self.scores: WinningScore | None = None
        self.note = ""

    def evaluate(self) -> None:
        """Filter and score again, and compare with what was recorded."""
        evaluator, state, entry = self._framework.evaluator, CycleState(), self._entry
        try:
            found = evaluator.look(state, self._pod)
            if isinstance(found, Diagnosis):
                if entry.node:
                    self._differs(0)
                else:
                    self.rejected = _rejections(self._table, found)
                return
            if not entry.node or found.count < entry.feasible:
                self._differs(found.count)
                return
            if len(self._table) > found.count:
                rejecting = evaluator.diagnose(state, self._pod, {})
                self.rejected = _rejections(self._table, rejecting)
            if found.count > entry.feasible:
                self.note = (
                    f"scores are not evaluated again: {entry.feasible} of {found.count} feasible "
                    f"nodes were scored (percentageOfNodesToScore)"
                )
            elif found.count > 1 and self._framework.plugins.score:
                self._score(state, found.rows())
        except AttemptError as failed:
            if entry.code != "Error":
                self.note = f"evaluated again, it fails: {failed.status.message}"

    def _differs(self, feasible: int) -> None:
        self.note = (
            f"evaluated again, {feasible} nodes are feasible instead of {self._entry.feasible}: "
            f"another version or other plugins decided then"
        )

    def _score(self, state: CycleState, rows: IndexArray) -> None:
        columns = self._framework.evaluator.plugin_scores(state, self._pod, rows)
        total = np.zeros(len(rows), dtype=np.int64)
        for each in columns:
            total += each.normalized * each.weight

        def score_of(place: int) -> ScoredNode:
            return ScoredNode(
                node=self._table.name_at(int(rows[place])),
                total=int(total[place]),
                plugins={
                    each.plugin: int(each.normalized[place]) * each.weight for each in columns
                },
            )

        best = np.flatnonzero(total == total.max())
        chosen = [n for n in best.tolist() if self._table.name_at(int(rows[n])) == self._entry.node]
        if not chosen:
            self.note = (
                "evaluated again, another node has the best score: another version or other "
                "plugins decided then"
            )
            return
        order = np.argsort(-total, kind="stable").tolist()
        runner_up = next(place for place in order if place != chosen[0])
        self.scores = WinningScore(
            winner=score_of(chosen[0]), runner_up=score_of(runner_up), tied=len(best)
        )


def _rejections(table: NodeTable, diagnosis: Diagnosis) -> tuple[RejectedNodes, ...]:
    found: dict[tuple[str, str], list[int]] = {}
    for status, rows in diagnosis.rejections():
        for reason in status.reasons:
            found.setdefault((status.plugin, reason), []).extend(rows.tolist())
    told = [
        RejectedNodes(
            plugin=plugin,
            reason=reason,
            nodes=len(rows),
            examples=tuple(table.name_at(row) for row in rows[:_EXAMPLES]),
        )
        for (plugin, reason), rows in found.items()
    ]
    return tuple(sorted(told, key=lambda each: (-each.nodes, each.plugin, each.reason)))


def _answer(said: Answered) -> ExtenderAnswer:
    rejected = said.rejected or {}
    counts = Counter(reason for why in rejected.values() for reason in why.reasons)
    return ExtenderAnswer(
        feasible=None if said.feasible is None else len(said.feasible),
        rejected=tuple(
            RejectedNodes(
                plugin=_EXTENDER,
                reason=reason,
                nodes=count,
                examples=tuple(
                    [node for node, why in rejected.items() if reason in why.reasons][:_EXAMPLES]
                ),
            )
            for reason, count in counts.most_common()
        ),
        error=said.error,
    )


def victims_of(cluster: Cluster, uids: Sequence[str]) -> tuple[ChosenVictim, ...]:
    """Return the victims of an attempt."""
    return tuple(_victim(cluster, uid) for uid in uids)


def _victim(cluster: Cluster, uid: str) -> ChosenVictim:
    info = cluster.pod(uid)
    if info is None:
        return ChosenVictim(pod="", uid=uid)
    node = cluster.node_of(uid) or ""
    return ChosenVictim(pod=info.full_name, uid=uid, priority=info.priority, node=node)


def claims_of(cluster: Cluster, pod: PodInfo) -> tuple[ClaimKnown, ...]:
    """Return the claims of a pod, with the volume and the devices that they have."""
    volumes = [
        ClaimKnown(
            kind="PersistentVolumeClaim",
            name=mount.name,
            allocated=(claim.spec.volume_name,) if claim.spec.volume_name else (),
        )
        for mount in pod.volumes.mounts
        if (claim := cluster.storage.claims.get(*mount.key)) is not None
    ]
    return (*volumes, *_device_claims(cluster, pod.pod))


def _device_claims(cluster: Cluster, pod: Pod) -> list[ClaimKnown]:
    claims = cluster.devices.claims
    return [
        ClaimKnown(
            kind="ResourceClaim",
            name=claim.metadata.name,
            allocated=devices_of(claims.pending(claim.metadata.uid) or claim.status.allocation),
        )
        for claim in claims.of_pod(pod)
    ]


def devices_of(allocation: AllocationResult | None) -> tuple[str, ...]:
    """Return the devices of an allocation, as driver/pool/device."""
    if allocation is None:
        return ()
    return tuple(f"{each.driver}/{each.pool}/{each.device}" for each in allocation.devices.results)
