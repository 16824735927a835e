"""The files of a run: JSON with every sample, and a chart; rewritten while it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kubesched import output_file
from kubesched.bench import line_chart
from kubesched.bench.line_chart import Panel

from .growth import Growth
from .subject import Sample, Subject


class Course(msgspec.Struct, frozen=True):
    """What a run has seen of one scheduler."""

    scheduler: str
    description: str
    growth: Growth | None
    verdict: str
    traffic: dict[str, int]
    samples: list[Sample]


def course(subject: Subject) -> Course:
    """Sum a scheduler up."""
    grown = subject.growth()
    return Course(
        scheduler=subject.candidate.name,
        description=subject.candidate.description,
        growth=grown,
        verdict=sentence(subject),
        traffic=dict(sorted(subject.counts.items())),
        samples=subject.samples,
    )


def sentence(subject: Subject) -> str:
    """Say what came of a run."""
    name, samples, grown = subject.candidate.name, subject.samples, subject.growth()
    first, last = samples[0], samples[-1]
    highest = max(each.rss_kb for each in samples)
    says = "too short to tell" if grown is None else str(grown)
    return (
        f"{name}: {says}. {first.rss_kb / 1024:.1f} MiB at first, {last.rss_kb / 1024:.1f} at "
        f"last, {highest / 1024:.1f} at most, in {last.minutes:.0f} minutes with {last.bound:,} "
        f"bound pods and {last.changes - first.changes:,} changes."
        + (f" {subject.ended}" if subject.ended else "")
    )


def write(base: Path, subjects: Sequence[Subject], title: str) -> None:
    """Write the JSON and the chart of a run that has samples."""
    courses = [course(each) for each in subjects if each.samples]
    encoded = msgspec.json.format(msgspec.json.encode(courses), indent=1)
    drawn = chart(courses, title).encode()
    for ending, content in ((".json", encoded + b"\n"), (".svg", drawn)):
        with output_file.writing(base.with_suffix(ending)) as out:
            out.write(content)


def chart(courses: Sequence[Course], title: str) -> str:
    """Draw memory, latency and CPU over time."""

    def line(of: Course, value: str, scale: float = 1.0) -> list[tuple[float, float]]:
        found = ((each.minutes, getattr(each, value)) for each in of.samples[1:])
        return [(minutes, each / scale) for minutes, each in found if each is not None]

    panels = [
        Panel("MiB, resident", {each.scheduler: line(each, "rss_kb", 1024) for each in courses}),
        Panel(
            "ms of CPU per second", {each.scheduler: line(each, "cpu_ms_per_s") for each in courses}
        ),
        Panel("ms to binding, median", {each.scheduler: line(each, "p50_ms") for each in courses}),
        Panel("ms to binding, 99 %", {each.scheduler: line(each, "p99_ms") for each in courses}),
    ]
    notes = "; ".join(each.verdict for each in courses)
    return line_chart.svg(panels, title=title, subtitle=notes, x_label="minutes")
