"""Reports: medians, ratios, tables, charts."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from kubesched.bench import chart, report
from kubesched.bench.results import BenchReport, BenchRun, Machine, Measurement, WorkloadFacts, rows

SVG = "{http://www.w3.org/2000/svg}"


def measurement(pods_per_second: float, name: str = "", cpu_ms: float | None = None) -> Measurement:
    return Measurement(
        name=name,
        pods=100,
        seconds=100 / pods_per_second,
        pods_per_second=pods_per_second,
        scheduler_cpu_ms_per_pod=cpu_ms,
    )


def runs(scheduler: str, *rates: float, workload: str = "Basic") -> list[BenchRun]:
    return [
        BenchRun(
            workload=workload,
            scheduler=scheduler,
            round=number,
            measurements=(measurement(rate, cpu_ms=rate / 100),),
        )
        for number, rate in enumerate(rates, start=1)
    ]


def make_report(*found: BenchRun, threshold: float = 0.0, precreated: bool = False) -> BenchReport:
    return BenchReport(
        started="2026-01-02T03:04:05+00:00",
        machine=Machine(system="Linux", processor="X", cpus=2, memory_mib=1, python="3.11"),
        kubernetes="v1.37.1",
        kubesched="0.1",
        apiserver="real",
        qps=5000,
        burst=10_000,
        precreated=precreated,
        schedulers={
            "ours": "kubesched, all nodes scored",
            "kube-scheduler": "the real one, a share of the nodes scored",
            "null-events": "decides nothing",
        },
        workloads=(WorkloadFacts(name="Basic", nodes=20, pods=100, threshold=threshold),),
        runs=found,
    )


def shown(made: BenchReport) -> str:
    console = Console(file=io.StringIO(), width=report.width_of(made), highlight=False)
    report.show(console, made)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_row_has_medians_and_ratios_within_rounds() -> None:
    made = make_report(
        *runs("ours", 400, 900, 1000),
        *runs("kube-scheduler", 200, 300, 1000),
        *runs("null-events", 500, 1000, 2000),
    )

    ours, theirs, limit = rows(made)

    assert ours.pods_per_second == 900
    assert ours.ratio == 2.0  # of 2, 3 and 1
    assert ours.share_of_limit == 0.8  # of 0.8, 0.9 and 0.5
    assert ours.scheduler_cpu_ms_per_pod == 9.0
    assert (theirs.ratio, limit.share_of_limit) == (1.0, 1.0)


def test_a_round_that_one_of_them_failed_is_left_out_of_the_ratio() -> None:
    failed = BenchRun(workload="Basic", scheduler="kube-scheduler", round=2, error="it broke")
    made = make_report(*runs("ours", 400, 900), *runs("kube-scheduler", 200), failed)

    ours = rows(made)[0]

    assert ours.ratio == 2.0
    assert made.failures == [failed]


def test_without_the_baseline_there_is_no_ratio() -> None:
    ours = rows(make_report(*runs("ours", 400)))[0]

    assert (ours.ratio, ours.share_of_limit) == (None, None)


def test_several_collections_of_a_workload_are_rows_of_their_own() -> None:
    run = BenchRun(
        workload="Basic",
        scheduler="ours",
        round=1,
        measurements=(measurement(10, "first"), measurement(20, "second")),
    )

    found = [(row.workload, row.pods_per_second) for row in rows(make_report(run))]

    assert ("Basic first", 10) in found
    assert ("Basic second", 20) in found


def test_the_mean_of_the_samples_is_what_thresholds_are_held_against() -> None:
    sampled = msgspec.structs.replace(measurement(10), samples=(10.0, 20.0, 60.0))

    assert sampled.sampled_average == 30.0
    assert measurement(10).sampled_average is None


def test_the_table_says_qps_and_sampling_and_who_failed() -> None:
    failed = BenchRun(
        workload="Basic", scheduler="kube-scheduler", round=1, error="it ended:\nline 1\nlast line"
    )

    text = shown(make_report(*runs("ours", 1234), failed, threshold=270))

    assert "5000 QPS, burst 10000" in text
    assert "all nodes scored" in text
    assert "a share of the nodes scored" in text
    assert "1,234" in text
    assert "20 nodes, 100 pods" in text
    assert "threshold is 270 pods/s" in text
    assert "failed: Basic, round 1, kube-scheduler: it ended: last line" in text


def test_of_a_workload_without_pods_it_says_what_the_scheduler_used() -> None:
    published = Measurement(pods=0, seconds=0.0, pods_per_second=0.0, scheduler_cpu_s=1.234)
    run = BenchRun(workload="Publish", scheduler="ours", round=1, measurements=(published,))

    want = "Publish, ours: no pods were to be bound; the scheduler used 1.23 s of CPU."
    assert want in shown(make_report(run))
    assert "no pods were to be bound" not in shown(make_report(*runs("ours", 10)))


def test_the_table_says_when_pods_were_there_before_the_scheduler() -> None:
    assert "before the scheduler started" in shown(make_report(precreated=True))


def test_pods_that_exist_before_have_the_time_until_all_are_bound_in_place_of_latencies() -> None:
    measured = msgspec.structs.replace(
        measurement(50.0), latency_p50_ms=12.0, latency_p99_ms=34.0, done_after_s=5.6
    )
    run = BenchRun(workload="Basic", scheduler="ours", round=1, measurements=(measured,))

    before, meanwhile = (shown(make_report(run, precreated=each)) for each in (True, False))

    assert "5.6" in before
    assert "done: from the start" in before
    assert "bound ms" not in before
    assert "12.0/34.0" in meanwhile
    assert "done" not in meanwhile
    assert "while the scheduler runs" in shown(make_report())


def test_a_report_can_be_read_again() -> None:
    made = make_report(*runs("ours", 400), *runs("kube-scheduler", 200))

    text = made.to_json()

    assert msgspec.json.decode(text, type=BenchReport) == made
    summary = msgspec.json.decode(text)["summary"]
    assert summary[0]["podsPerSecond"] == 400
    assert summary[0]["ratio"] == 2.0


def test_files_are_named_after_the_start(tmp_path: Path) -> None:
    made = make_report(*runs("ours", 400))

    written = report.write(made, tmp_path / "new")

    assert [path.name for path in written] == [
        "bench-20260102T030405.json",
        "bench-20260102T030405.svg",
    ]
    assert msgspec.json.decode(written[0].read_bytes(), type=BenchReport) == made


def bars(svg: str) -> list[float]:
    """The lengths of the bars, the legend's squares and the background left out."""
    root = ET.fromstring(svg)  # noqa: S314  made here
    return [
        float(rect.attrib["width"])
        for rect in root.iter(f"{SVG}rect")
        if rect.attrib.get("height") == "16"
    ]


def test_bars_are_as_long_as_they_are_fast() -> None:
    made = make_report(*runs("ours", 400), *runs("kube-scheduler", 200), *runs("null-events", 800))

    ours, theirs, limit = bars(chart.svg(rows(made)))

    assert ours / limit == pytest.approx(0.5, abs=0.01)
    assert theirs / limit == pytest.approx(0.25, abs=0.01)


def test_a_chart_tells_everything_in_words_too() -> None:
    made = make_report(*runs("ours", 400), *runs("kube-scheduler", 200))

    text = chart.svg(rows(made), title="A < B & C", subtitle=report.subtitle(made))

    root = ET.fromstring(text)  # noqa: S314  made here
    words = [each.text or "" for each in root.iter(f"{SVG}text")]
    assert words[0] == "A < B & C"
    assert "5000 QPS" in " ".join(words)
    assert "400 (2.00x)" in words
    assert "failed" in words  # the third scheduler has no run
    description = root.findtext(f"{SVG}desc") or ""
    assert "Basic, ours: 400 pods/s" in description


def test_a_chart_of_nothing_is_a_chart() -> None:
    assert bars(chart.svg([])) == []
