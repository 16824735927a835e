"""Compares two decisions about one pod: both choices, and the plugin that makes the difference.

    theirs (a node, or a message) ──┐
                                    ├──> DecisionComparison: verdict, why, scores, refusal
    ours (deciding.Decision) ───────┘

Read-only: nothing decides here, and nothing is changed.
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
from kubesched.shadow.report import (
    Agreement,
    NodeRefusal,
    PluginDifference,
    SchedulerChoice,
    ScoreDifference,
)

#: Of many equally good nodes, this many are named.
NAMED = 3


class DecisionComparison(Struct, frozen=True, kw_only=True):
    """The comparison of two decisions."""

    verdict: Agreement
    ours: SchedulerChoice
    why: str = ""
    score: ScoreDifference | None = None
    refused_by: NodeRefusal | None = None


#: Where a message says that pods are preempted, and how many: a matter of the nomination.
_PLACEMENT: Final = re.compile(
    r"(?<=found a potential placement for pod) on node \S+, preempting \d+ victims"
)


def compare_binding(
    ours: Decision, pod: PodInfo, row: int, *, table: NodeTable, evaluator: Evaluator
) -> DecisionComparison:
    """Compare our decision with a pod's binding to a row."""
    outcome = outcome_of(ours, table)
    if isinstance(ours, Untried):
        return _untried(ours, outcome)
    if isinstance(ours, Unplaced):
        status = None if ours.diagnosis is None else ours.diagnosis.status_of(row)
        refusal = _refusal(status)
        why = f"{_said(refusal)}; and no other node fits" if refusal else ours.message
        return DecisionComparison(
            verdict=Agreement.NONE_FITS, ours=outcome, why=why, refused_by=refusal
        )
    at = np.flatnonzero(ours.rows == row)
    if not len(at):
        return _refused(ours, outcome, pod, row, evaluator)
    if ours.totals[at[0]] == ours.totals.max():
        return DecisionComparison(verdict=Agreement.SAME, ours=outcome)
    return _scored_less(ours, outcome, int(at[0]), table)


def compare_refusal(
    ours: Decision, message: str, nominated_node: str, *, table: NodeTable
) -> DecisionComparison:
    """Compare our decision with the message of the other scheduler's rejection."""
    outcome = outcome_of(ours, table)
    if isinstance(ours, Untried):
        return _untried(ours, outcome)
    if isinstance(ours, Placed):
        why = f"{len(ours.rows)} nodes fit"
        return DecisionComparison(verdict=Agreement.WOULD_PLACE, ours=outcome, why=why)
    if not same_words(ours.message, message):
        return DecisionComparison(
            verdict=Agreement.OTHER_WORDS, ours=outcome, why=f"ours: {ours.message}"
        )
    if ours.nominated_node != nominated_node:
        why = (
            f"theirs makes room on {nominated_node or 'no node'}, "
            f"ours on {ours.nominated_node or 'no node'}"
        )
        return DecisionComparison(verdict=Agreement.OTHER_NOMINATION, ours=outcome, why=why)
    return DecisionComparison(verdict=Agreement.SAME_MESSAGE, ours=outcome)


def same_words(ours: str, theirs: str) -> bool:
    """Tell whether two messages are the same, but for where pods are preempted."""
    return _PLACEMENT.sub("", ours) == _PLACEMENT.sub("", theirs)


def outcome_of(ours: Decision, table: NodeTable) -> SchedulerChoice:
    """Return our decision in the form of the report."""
    if isinstance(ours, Untried):
        return SchedulerChoice(message=ours.status.message)
    if isinstance(ours, Unplaced):
        return SchedulerChoice(message=ours.message, nominated_node=ours.nominated_node)
    best = ours.best
    return SchedulerChoice(
        nodes=tuple(table.name_at(row) for row in best[:NAMED].tolist()),
        best_nodes=len(best),
        feasible_nodes=len(ours.rows),
    )


def _untried(ours: Untried, outcome: SchedulerChoice) -> DecisionComparison:
    verdict = Agreement.GATED if ours.gated else Agreement.FAILED
    refusal = _refusal(ours.status)
    return DecisionComparison(verdict=verdict, ours=outcome, why=_said(refusal), refused_by=refusal)


def _refused(
    ours: Placed, outcome: SchedulerChoice, pod: PodInfo, row: int, evaluator: Evaluator
) -> DecisionComparison:
    """Return why the other scheduler's node is not among our feasible ones."""
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
    return DecisionComparison(verdict=Agreement.REFUSED, ours=outcome, why=why, refused_by=refusal)


def _scored_less(
    ours: Placed, outcome: SchedulerChoice, at: int, table: NodeTable
) -> DecisionComparison:
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
    return DecisionComparison(verdict=Agreement.LOWER_SCORE, ours=outcome, why=why, score=score)


def _refusal(status: Status | None) -> NodeRefusal | None:
    return None if status is None else NodeRefusal(status.plugin, status.reasons)


def _said(refusal: NodeRefusal | None) -> str:
    if refusal is None:
        return ""
    reasons = ", ".join(refusal.reasons)
    return f"{refusal.plugin}: {reasons}" if refusal.plugin else reasons
