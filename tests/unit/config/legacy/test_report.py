from __future__ import annotations

from kubesched.config.legacy.report import ConversionReport


def test_a_report_has_the_parts_that_there_is_something_to_say_about() -> None:
    report = ConversionReport(source="Policy")
    report.became("a", "b")
    report.became("a", "b")
    report.has_no_counterpart("c", "do this")

    assert report.text() == (
        "Policy -> kubescheduler.config.k8s.io/v1\n"
        "Converted:\n"
        "  a -> b\n"
        "No counterpart:\n"
        "  c: do this\n"
    )


def test_entries_name_their_subject() -> None:
    report = ConversionReport(source="Policy", subject="mine: ")
    report.is_default("a")
    report.note("b")

    assert (report.default, report.notes) == (["mine: a"], ["mine: b"])
