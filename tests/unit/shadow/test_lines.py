"""Lines that people read, and lines that programs do."""

from __future__ import annotations

import io
import json

from kubesched.shadow.lines import JsonLines, TextLines
from kubesched.shadow.report import Agreement

from .findings import LESS, binding, refusal, tally


def test_lines_for_people() -> None:
    out = io.StringIO()
    lines = TextLines(out)
    lines.finding(binding(best=5))
    lines.finding(binding(Agreement.LOWER_SCORE, score=LESS, by_order=True, late_seconds=2.5))
    lines.finding(refusal(Agreement.SAME_MESSAGE))
    same, differs, refused = out.getvalue().splitlines()

    assert same == "01:02:03.456  shop/web-1  theirs n1  ours n1|n2|n3|… 2 more  same"
    assert differs == (
        "01:02:03.456  shop/web-1  theirs n1  ours n1  lower score: because  [judged 2.5 s late]"
        "  [the same if bindings of this burst were decided in another order]"
    )
    assert refused == "01:02:03.456  shop/web-2  theirs no node  ours no node  same"


def test_the_last_lines() -> None:
    out = io.StringIO()
    made = tally(binding(), binding(Agreement.LOWER_SCORE, score=LESS))
    made.leave_out("asleep")
    TextLines(out).summary(made.summary(final=True))
    said = out.getvalue()

    assert "agreement 50 % of those with one best node" in said
    assert "not judged:                     1  asleep" in said
    assert "differences by plugin: NodeResourcesFit 1" in said
    assert "our plugins failed" not in said


def test_lines_for_programs_are_one_object_each() -> None:
    out = io.StringIO()
    lines = JsonLines(out)
    lines.finding(binding(Agreement.LOWER_SCORE, score=LESS))
    lines.summary(tally(binding()).summary(final=True))
    found, summary = map(json.loads, out.getvalue().splitlines())

    assert found["verdict"] == "LowerScore"
    assert found["score"]["plugins"] == [{"plugin": "NodeResourcesFit", "theirs": 40, "ours": 50}]
    assert (summary["kind"], summary["final"], summary["agreementPercent"]) == (
        "Summary",
        True,
        100.0,
    )
