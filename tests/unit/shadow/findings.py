"""Findings as they might be, for those who count and print them."""

from __future__ import annotations

from kubesched.shadow.report import (
    Agreement,
    NodeRefusal,
    PluginDifference,
    SchedulerChoice,
    ScoreDifference,
    ShadowFinding,
)
from kubesched.shadow.summing import Tally

LESS = ScoreDifference(
    theirs=90, ours=100, rank=2, plugins=(PluginDifference("NodeResourcesFit", 40, 50),)
)
REFUSAL = NodeRefusal("TaintToleration", ("node(s) had untolerated taint {a: b}",))


def binding(
    verdict: Agreement = Agreement.SAME,
    *,
    best: int = 1,
    score: ScoreDifference | None = None,
    refused_by: NodeRefusal | None = None,
    by_order: bool = False,
    late_seconds: float = 0.0,
) -> ShadowFinding:
    """Return what was found about a binding."""
    return ShadowFinding(
        kind="Binding",
        time="2026-11-16T01:02:03.456+00:00",
        pod="shop/web-1",
        uid="u",
        scheduler_name="default-scheduler",
        theirs=SchedulerChoice(nodes=("n1",)),
        ours=SchedulerChoice(
            nodes=tuple(f"n{number}" for number in range(1, min(best, 3) + 1)), best_nodes=best
        ),
        verdict=verdict,
        why="because" if verdict is not Agreement.SAME else "",
        score=score,
        refused_by=refused_by,
        by_order=by_order,
        late_seconds=late_seconds,
    )


def refusal(verdict: Agreement) -> ShadowFinding:
    """Return what was found about a refusal."""
    return ShadowFinding(
        kind="Unschedulable",
        time="2026-11-16T01:02:03.456+00:00",
        pod="shop/web-2",
        uid="u",
        scheduler_name="default-scheduler",
        theirs=SchedulerChoice(message="no"),
        ours=SchedulerChoice(message="no"),
        verdict=verdict,
    )


def tally(*findings: ShadowFinding) -> Tally:
    """Count findings."""
    made = Tally.begin(lambda: 7.0)
    for each in findings:
        made.count(each)
    return made
