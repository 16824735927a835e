"""Findings in numbers: agreement over those with one best node, ties apart."""

from __future__ import annotations

from kubesched.shadow.lines import running_line
from kubesched.shadow.report import Agreement

from .findings import LESS, REFUSAL, binding, refusal, tally


def test_nothing_yet() -> None:
    summary = tally().summary()
    assert (summary.bindings, summary.agreement_percent) == (0, None)
    assert running_line(summary).startswith("0 bindings, agreement - of 0")


def test_agreement_is_over_those_with_one_best_node() -> None:
    summary = tally(
        binding(),
        binding(),
        binding(Agreement.LOWER_SCORE, score=LESS),
        binding(best=4),
        binding(Agreement.REFUSED, best=2, refused_by=REFUSAL),
        binding(Agreement.NONE_FITS, best=0, refused_by=REFUSAL),
    ).summary()

    assert (summary.bindings, summary.one_best, summary.one_best_same) == (6, 3, 2)
    assert summary.agreement_percent == 66.666
    assert (summary.ties, summary.ties_same) == (2, 1)
    assert (summary.lower_score, summary.refused, summary.none_fits) == (1, 1, 1)
    assert summary.plugins == {"TaintToleration": 2, "NodeResourcesFit": 1}


def test_one_difference_in_many_never_reads_as_none() -> None:
    many = tally(*[binding()] * 99_999, binding(Agreement.LOWER_SCORE, score=LESS), binding())
    assert many.summary().agreement_percent == 99.999


def test_differences_by_order_are_counted_apart() -> None:
    summary = tally(binding(), binding(Agreement.LOWER_SCORE, score=LESS, by_order=True)).summary()

    assert (summary.agreement_percent, summary.agreement_percent_without_order) == (50.0, 100.0)
    assert (summary.by_order, summary.plugins) == (1, {})


def test_refusals_and_what_was_not_judged() -> None:
    made = tally(
        refusal(Agreement.SAME_MESSAGE),
        refusal(Agreement.OTHER_WORDS),
        refusal(Agreement.WOULD_PLACE),
    )
    made.leave_out("asleep")
    made.leave_out("asleep")
    summary = made.summary(final=True)

    assert (summary.unschedulable, summary.same_message, summary.other_words) == (3, 1, 1)
    assert (summary.would_place, summary.not_judged, summary.final) == (1, {"asleep": 2}, True)
    assert made.total == 5
