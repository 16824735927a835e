"""Findings and summaries as lines of text or JSON."""

from __future__ import annotations

from typing import Protocol, TextIO

import msgspec

from kubesched.shadow.report import Agreement, SchedulerChoice, ShadowFinding, ShadowSummary

_WORDS = {
    Agreement.SAME: "same",
    Agreement.LOWER_SCORE: "lower score",
    Agreement.REFUSED: "refused by ours",
    Agreement.NONE_FITS: "none fits in ours",
    Agreement.SAME_MESSAGE: "same",
    Agreement.OTHER_WORDS: "other words",
    Agreement.OTHER_NOMINATION: "other nomination",
    Agreement.WOULD_PLACE: "ours would place it",
    Agreement.OTHER_PLACEMENT: "other placement",
    Agreement.GATED: "gated by ours",
    Agreement.FAILED: "ours failed",
}


class FindingOutput(Protocol):
    """Output of findings."""

    def finding(self, finding: ShadowFinding) -> None:
        """Write a finding."""

    def summary(self, summary: ShadowSummary) -> None:
        """Write a summary."""


class JsonLines:
    """One JSON object per line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def finding(self, finding: ShadowFinding) -> None:
        """Write a finding."""
        self._write(finding)

    def summary(self, summary: ShadowSummary) -> None:
        """Write a summary."""
        self._write(summary)

    def _write(self, what: ShadowFinding | ShadowSummary) -> None:
        self._out.write(msgspec.json.encode(what).decode() + "\n")
        self._out.flush()


class TextLines:
    """Lines of text."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def finding(self, finding: ShadowFinding) -> None:
        """Write a finding."""
        clock = finding.time[11:23]
        theirs, ours = _short(finding.theirs), _short(finding.ours)
        which = f"{finding.pod} (podgroup {finding.group})" if finding.group else finding.pod
        text = f"{clock}  {which}  theirs {theirs}  ours {ours}  {_WORDS[finding.verdict]}"
        if finding.why:
            text += f": {finding.why}"
        if finding.late_seconds:
            text += f"  [judged {finding.late_seconds:g} s late]"
        if finding.by_order:
            text += "  [the same if bindings of this burst were decided in another order]"
        self._write(text)

    def summary(self, summary: ShadowSummary) -> None:
        """Write a summary: one line while running, a table at the end."""
        if summary.final:
            for line in final_lines(summary):
                self._write(line)
        else:
            self._write(f"--- {running_line(summary)}")

    def _write(self, line: str) -> None:
        self._out.write(line + "\n")
        self._out.flush()


def _short(outcome: SchedulerChoice) -> str:
    if not outcome.nodes:
        nominated = f" (nominated to {outcome.nominated_node})" if outcome.nominated_node else ""
        return f"no node{nominated}"
    more = outcome.best_nodes - len(outcome.nodes)
    listed = "|".join(outcome.nodes)
    return f"{listed}|… {more} more" if more > 0 else listed


def running_line(summary: ShadowSummary) -> str:
    """Return a summary on one line."""
    parts = [
        f"{summary.bindings} bindings",
        f"agreement {_percent(summary)} of {summary.one_best} with one best node",
        f"{summary.ties_same} of {summary.ties} ties",
        f"{summary.same_message} of {summary.unschedulable} refusals",
    ]
    if summary.by_order:
        parts.append(f"{summary.by_order} differ by order alone")
    if left := sum(summary.not_judged.values()):
        parts.append(f"{left} not judged")
    if summary.late:
        parts.append(f"{summary.late} judged late")
    return ", ".join(parts)


def _percent(summary: ShadowSummary) -> str:
    return "-" if summary.agreement_percent is None else f"{summary.agreement_percent:g} %"


def final_lines(summary: ShadowSummary) -> list[str]:
    """Return a summary as a small table."""
    rows: list[tuple[str, int, str]] = [
        ("bindings judged", summary.bindings, ""),
        ("  with one best node", summary.one_best, f"{summary.one_best_same} the same"),
        ("  ties, several equally good", summary.ties, f"{summary.ties_same} one of ours"),
        ("  other node scores less", summary.lower_score, ""),
        ("  node refused by our filters", summary.refused, ""),
        ("  no node fits in our eyes", summary.none_fits, ""),
        ("  of whole groups", summary.groups, f"{summary.groups_same} the same"),
        ("  group placed elsewhere", summary.other_placement, ""),
        ("refusals judged", summary.unschedulable, ""),
        ("  same message", summary.same_message, ""),
        ("  other words", summary.other_words, ""),
        ("  room made on another node", summary.other_nomination, ""),
        ("  we would place the pod", summary.would_place, ""),
        ("gated by our plugins", summary.gated, ""),
        ("our plugins failed", summary.failed, ""),
        ("by order in a burst alone", summary.by_order, "differences that another order explains"),
        ("judged late", summary.late, ""),
    ]
    lines = ["", f"agreement {_percent(summary)} of those with one best node"]
    if summary.one_best_by_order:
        settled = summary.agreement_percent_without_order
        lines[-1] += f", {settled:g} % without those that depend on order"
    lines += [
        f"{name:<30}{count:>8}" + (f"  {note}" if note and count else "")
        for name, count, note in rows
        if count or not name.startswith((" ", "gated", "our", "by", "judged"))
    ]
    lines += [f"not judged: {count:>21}  {why}" for why, count in summary.not_judged.items()]
    if summary.plugins:
        listed = ", ".join(f"{name} {count}" for name, count in summary.plugins.items())
        lines.append(f"differences by plugin: {listed}")
    return lines
