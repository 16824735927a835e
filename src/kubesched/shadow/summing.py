"""Findings, counted as they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kubesched.shadow.report import Agreement, ShadowFinding, ShadowSummary

#: The summary field of each verdict; a binding counts either as a tie or with one best node.
_COUNTED: Final = {
    Agreement.LOWER_SCORE: "lower_score",
    Agreement.REFUSED: "refused",
    Agreement.NONE_FITS: "none_fits",
    Agreement.SAME_MESSAGE: "same_message",
    Agreement.OTHER_WORDS: "other_words",
    Agreement.OTHER_NOMINATION: "other_nomination",
    Agreement.WOULD_PLACE: "would_place",
    Agreement.OTHER_PLACEMENT: "other_placement",
    Agreement.GATED: "gated",
    Agreement.FAILED: "failed",
}


class Tally(Struct):
    """Counts of findings so far."""

    timer: Callable[[], float]
    started: float
    counts: Counter[str]
    plugins: Counter[str]
    not_judged: Counter[str]

    @classmethod
    def begin(cls, timer: Callable[[], float]) -> Tally:
        """Return an empty one."""
        return cls(timer, timer(), Counter(), Counter(), Counter())

    def count(self, finding: ShadowFinding) -> None:
        """Count a finding."""
        counts, verdict = self.counts, finding.verdict
        if finding.kind == "Binding":
            counts["bindings"] += 1
            if finding.group:
                counts["groups"] += 1
                counts["groups_same"] += verdict is Agreement.SAME
            if finding.ours.best_nodes:
                group = "one_best" if finding.ours.best_nodes == 1 else "ties"
                counts[group] += 1
                counts[f"{group}_same"] += verdict is Agreement.SAME
                if group == "one_best":
                    counts["one_best_by_order"] += finding.by_order
        else:
            counts["unschedulable"] += 1
        if verdict in _COUNTED:
            counts[_COUNTED[verdict]] += 1
        counts["late"] += finding.late_seconds > 0
        counts["by_order"] += finding.by_order
        if not verdict.agrees and not finding.by_order and finding.plugin:
            self.plugins[finding.plugin] += 1

    def leave_out(self, reason: str) -> None:
        """Count a decision that was not judged."""
        self.not_judged[reason] += 1

    @property
    def total(self) -> int:
        """The number of decisions, judged or not."""
        counts = self.counts
        return counts["bindings"] + counts["unschedulable"] + self.not_judged.total()

    def summary(self, *, final: bool = False) -> ShadowSummary:
        """Return all counts."""
        counts = {name: count for name, count in self.counts.items() if count}
        summary = ShadowSummary(
            final=final,
            seconds=round(self.timer() - self.started, 1),
            plugins=dict(self.plugins.most_common()),
            not_judged=dict(self.not_judged.most_common()),
            **counts,  # type: ignore[arg-type]  # all of them are integers
        )
        same, all_of_them = summary.one_best_same, summary.one_best
        summary.agreement_percent = _percent(same, all_of_them)
        settled = all_of_them - summary.one_best_by_order
        summary.agreement_percent_without_order = _percent(same, settled)
        return summary


def _percent(part: int, whole: int) -> float | None:
    """Return a percentage of three decimals, truncated: one difference in a million must show."""
    return part * 100_000 // whole / 1000 if whole else None
