"""Two decisions about one pod side by side: who chose what, and which plugin makes the difference.

    theirs (a node, or a message) ──┐
                                    ├──> Comparison: verdict, why, scores, refusal
    ours (deciding.Decision) ───────┘

Nothing here decides and nothing is changed; rows and scores of our decision are only read.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from msgspec import Struct

from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.evaluation import Evaluator
from kubesched.framework.status import Status
from kubesched.shadow.deciding import Decision, Placed, Unplaced, Untried
from kubesched.shadow.report import Outcome, PluginDifference, Refusal, ScoreDifference, Verdict

#: Of many equally good nodes, so many are named.
NAMED = 3


class Comparison(Struct, frozen=True, kw_only=True):
    """What there is to say about two decisions."""

    verdict: Verdict
    ours: Outcome
    why: str = ""
    score: ScoreDifference | None = None
    refused_by: Refusal | None = None


#: Where a message says that pods are preempted, and how many: a matter of the nomination.
_PLACEMENT: Final = re.compile(
    r"(?<=found a potential placement for pod) on node \S+, preempting \d+ victims"
)


def compare_binding(
    ours: Decision, pod: PodInfo, row: int, *, table: NodeTable, evaluator: Evaluator
) -> Comparison:
    """Compare our decision with a pod's binding to a row."""
    outcome = outcome_of(ours, table)
    if isinstance(ours, Untried):
        return _untried(ours, outcome)
    if isinstance(ours, Unplaced):
        status = None if ours.diagnosis is None else ours.diagnosis.status_of(row)
        refusal = _refusal(status)
        why = f"{_said(refusal)}; and no other node fits" if refusal else ours.message
        return Comparison(verdict=Verdict.NONE_FITS, ours=outcome, why=why, refused_by=refusal)
    at = np.flatnonzero(ours.rows == row)
    if not len(at):
        return _refused(ours, outcome, pod, row, evaluator)
    if ours.totals[at[0]] == ours.totals.max():
        return Comparison(verdict=Verdict.SAME, ours=outcome)
    return _scored_less(ours, outcome, int(at[0]), table)


def compare_refusal(
    ours: Decision, message: str, nominated_node: str, *, table: NodeTable
) -> Comparison:
    """Compare our decision with the words in which the other scheduler turned a pod away."""
    outcome = outcome_of(ours, table)
    if isinstance(ours, Untried):
        return _untried(ours, outcome)
    if isinstance(ours, Placed):
        why = f"{len(ours.rows)} nodes fit"
        return Comparison(verdict=Verdict.WOULD_PLACE, ours=outcome, why=why)
    if _PLACEMENT.sub("", ours.message) != _PLACEMENT.sub("", message):
        return Comparison(verdict=Verdict.OTHER_WORDS, ours=outcome, why=f"ours: {ours.message}")
    if ours.nominated_node != nominated_node:
        why = (
            f"theirs makes room on {nominated_node or 'no node'}, "
            f"ours on {ours.nominated_node or 'no node'}"
        )
        return Comparison(verdict=Verdict.OTHER_NOMINATION, ours=outcome, why=why)
    return Comparison(verdict=Verdict.SAME_MESSAGE, ours=outcome)


def outcome_of(ours: Decision, table: NodeTable) -> Outcome:
    """Return our decision as it is reported."""
    if isinstance(ours, Untried):
        return Outcome(message=ours.status.message)
    if isinstance(ours, Unplaced):
        return Outcome(message=ours.message, nominated_node=ours.nominated_node)
    best = ours.best
    return Outcome(
        nodes=tuple(table.name_at(row) for row in best[:NAMED].tolist()),
        best_nodes=len(best),
        feasible_nodes=len(ours.rows),
    )


def _untried(ours: Untried, outcome: Outcome) -> Comparison:
    verdict = Verdict.GATED if ours.gated else Verdict.FAILED
    refusal = _refusal(ours.status)
    return Comparison(verdict=verdict, ours=outcome, why=_said(refusal), refused_by=refusal)


def _refused(
    ours: Placed, outcome: Outcome, pod: PodInfo, row: int, evaluator: Evaluator
) -> Comparison:
    """Say why the other scheduler's node is not among ours."""
    try:
        status = evaluator.status_on(ours.state, pod, row)
    except AttemptError as failed:
        status = failed.status
    refusal = _refusal(status)
    nominated = pod.pod.status.nominated_node_name
    if refusal is not None:
        why = _said(refusal)
    elif nominated:
        why = f"the pod is nominated to {nominated}, which is free: others are not looked at"
    else:
        why = "PreFilter plugins restrict the pod to other nodes"
    return Comparison(verdict=Verdict.REFUSED, ours=outcome, why=why, refused_by=refusal)


def _scored_less(ours: Placed, outcome: Outcome, at: int, table: NodeTable) -> Comparison:
    best = int(ours.totals.argmax())
    total, top = int(ours.totals[at]), int(ours.totals[best])
    found = [
        PluginDifference(
            each.plugin,
            theirs=int(each.normalized[at]) * each.weight,
            ours=int(each.normalized[best]) * each.weight,
        )
        for each in ours.scores
        if each.normalized[at] != each.normalized[best]
    ]
    found.sort(key=lambda each: each.theirs - each.ours)
    rank = int(np.count_nonzero(ours.totals > total)) + 1
    score = ScoreDifference(theirs=total, ours=top, rank=rank, plugins=tuple(found))
    name = table.name_at(int(ours.rows[best]))
    by = ", ".join(f"{each.plugin} {each.theirs - each.ours:+d}" for each in found)
    why = (
        f"scores {total}, {top - total} less than {name}: {by}; "
        f"number {rank} of {len(ours.rows)} feasible"
    )
    return Comparison(verdict=Verdict.LOWER_SCORE, ours=outcome, why=why, score=score)


def _refusal(status: Status | None) -> Refusal | None:
    return None if status is None else Refusal(status.plugin, status.reasons)


def _said(refusal: Refusal | None) -> str:
    if refusal is None:
        return ""
    reasons = ", ".join(refusal.reasons)
    return f"{refusal.plugin}: {reasons}" if refusal.plugin else reasons
