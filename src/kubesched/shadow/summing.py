"""Findings, counted as they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kubesched.shadow.report import Finding, Summary, Verdict

#: Field of the summary that counts a verdict; the same binding counts as tie or with one best node.
_COUNTED: Final = {
    Verdict.LOWER_SCORE: "lower_score",
    Verdict.REFUSED: "refused",
    Verdict.NONE_FITS: "none_fits",
    Verdict.SAME_MESSAGE: "same_message",
    Verdict.OTHER_WORDS: "other_words",
    Verdict.OTHER_NOMINATION: "other_nomination",
    Verdict.WOULD_PLACE: "would_place",
    Verdict.GATED: "gated",
    Verdict.FAILED: "failed",
}


class Tally(Struct):
    """What was found until now."""

    timer: Callable[[], float]
    started: float
    counts: Counter[str]
    plugins: Counter[str]
    not_judged: Counter[str]

    @classmethod
    def begin(cls, timer: Callable[[], float]) -> Tally:
        """Return an empty one."""
        return cls(timer, timer(), Counter(), Counter(), Counter())

    def count(self, finding: Finding) -> None:
        """Count a finding."""
        counts, verdict = self.counts, finding.verdict
        if finding.kind == "Binding":
            counts["bindings"] += 1
            if finding.ours.best_nodes:
                group = "one_best" if finding.ours.best_nodes == 1 else "ties"
                counts[group] += 1
                counts[f"{group}_same"] += verdict is Verdict.SAME
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
        """How many decisions there were, judged or not."""
        counts = self.counts
        return counts["bindings"] + counts["unschedulable"] + self.not_judged.total()

    def summary(self, *, final: bool = False) -> Summary:
        """Return all numbers."""
        counts = {name: count for name, count in self.counts.items() if count}
        summary = Summary(
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
    """Return a share with three digits, cut: one difference in a million must not read as none."""
    return part * 100_000 // whole / 1000 if whole else None
