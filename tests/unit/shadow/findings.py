"""Findings as they might be, for those who count and print them."""

from __future__ import annotations

from kubesched.shadow.report import (
    Finding,
    Outcome,
    PluginDifference,
    Refusal,
    ScoreDifference,
    Verdict,
)
from kubesched.shadow.summing import Tally

LESS = ScoreDifference(
    theirs=90, ours=100, rank=2, plugins=(PluginDifference("NodeResourcesFit", 40, 50),)
)
REFUSAL = Refusal("TaintToleration", ("node(s) had untolerated taint {a: b}",))


def binding(
    verdict: Verdict = Verdict.SAME,
    *,
    best: int = 1,
    score: ScoreDifference | None = None,
    refused_by: Refusal | None = None,
    by_order: bool = False,
    late_seconds: float = 0.0,
) -> Finding:
    """Return what was found about a binding."""
    return Finding(
        kind="Binding",
        time="2026-11-16T01:02:03.456+00:00",
        pod="shop/web-1",
        uid="u",
        scheduler_name="default-scheduler",
        theirs=Outcome(nodes=("n1",)),
        ours=Outcome(
            nodes=tuple(f"n{number}" for number in range(1, min(best, 3) + 1)), best_nodes=best
        ),
        verdict=verdict,
        why="because" if verdict is not Verdict.SAME else "",
        score=score,
        refused_by=refused_by,
        by_order=by_order,
        late_seconds=late_seconds,
    )


def refusal(verdict: Verdict) -> Finding:
    """Return what was found about a refusal."""
    return Finding(
        kind="Unschedulable",
        time="2026-11-16T01:02:03.456+00:00",
        pod="shop/web-2",
        uid="u",
        scheduler_name="default-scheduler",
        theirs=Outcome(message="no"),
        ours=Outcome(message="no"),
        verdict=verdict,
    )


def tally(*findings: Finding) -> Tally:
    """Count findings."""
    made = Tally.begin(lambda: 7.0)
    for each in findings:
        made.count(each)
    return made
