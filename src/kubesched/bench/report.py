"""A report for the terminal: what was compared, how, and a table.

Figures are always shown with QPS, burst, and the share of nodes that each scheduler scores.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kubesched import output_file
from kubesched.bench import chart
from kubesched.bench.results import BASELINE, LIMIT, BenchReport, Machine, Row, rows

#: Width of the table beside the names of workloads.
_COLUMNS_WIDTH = 112

_ABSENT = "-"
_LATENCY = "bound ms\np50/p99"
_COLUMNS = (
    "pods/s",
    "sampled\npods/s",
    "ratio",
    "of the\nlimit",
    _LATENCY,
    "attempt ms\np50/p99",
    "sched.\nms/pod",
    "API\nms/pod",
    "peak\nMiB",
)
#: In place of latencies, where all pods exist before the scheduler does.
_DONE = "done\ns"
_PODS_PER_SECOND = (
    "pods/s: pods over the time to the last one bound; sampled: second by second, "
    "without the first and the last, as scheduler_perf does it."
)
_BOUND = "bound: from the request that creates a pod to its binding seen in a watch."
_DONE_AFTER = "done: from the start of the scheduler's process to the last pod bound."
_ATTEMPTS = "attempt: the scheduler's own metric."


def show(console: Console, report: BenchReport) -> None:
    """Print a report."""
    console.print(Text(heading(report)), soft_wrap=True)
    console.print()
    console.print(table(report))
    console.print(Text(explanation(report)), soft_wrap=True)
    for run in report.failures:
        what = f"{run.workload}, round {run.round}, {run.scheduler}: {brief(run.error)}"
        console.print(Text(f"failed: {what}", style="red"), soft_wrap=True)


def width_of(report: BenchReport) -> int:
    """Return the minimum width of the table."""
    names = [row.workload for row in rows(report)]
    return _COLUMNS_WIDTH + max(map(len, (*names, *_sizes(report).values())), default=0)


def _sizes(report: BenchReport) -> dict[str, str]:
    return {each.name: f"  {each.nodes} nodes, {each.pods} pods" for each in report.workloads}


def brief(error: str) -> str:
    """Return the first and the last line of an error."""
    first, *rest = [line.strip() for line in error.splitlines() if line.strip()] or [""]
    return f"{first} {rest[-1]}" if rest else first


def heading(report: BenchReport) -> str:
    """What was compared, and how."""
    server = "kube-apiserver + etcd" if report.apiserver == "real" else "embedded API server"
    pods = (
        "all pods created before the scheduler started, timed from the first one bound"
        if report.precreated
        else "pods created while the scheduler runs, as in scheduler_perf"
    )
    lines = [
        f"kubesched bench, Kubernetes {report.kubernetes}, {report.started}",
        f"machine     {described(report.machine)}",
        f"API server  {server}, a fresh one for each run",
        f"clients     {report.qps:g} QPS, burst {report.burst}, for every scheduler alike",
        f"pods        {pods}",
    ]
    width = max(len(name) for name in report.schedulers)
    lines += [f"{name:<{width}}  {what}" for name, what in report.schedulers.items()]
    return "\n".join(lines)


def described(machine: Machine) -> str:
    """A machine in one line."""
    hardware = f"{machine.cpus} CPUs ({machine.processor}), {machine.memory_mib} MiB"
    return f"{hardware}, {machine.system}, Python {machine.python}"


def table(report: BenchReport) -> Table:
    """One line per scheduler, one section per workload."""
    made = Table(header_style="bold", padding=(0, 2, 0, 0), pad_edge=False, box=box.SIMPLE_HEAD)
    made.add_column("workload", no_wrap=True)
    made.add_column("scheduler", no_wrap=True)
    for name in _COLUMNS:
        shown = _DONE if report.precreated and name == _LATENCY else name
        made.add_column(shown, justify="right", no_wrap=True)
    sizes = _sizes(report)
    for workload, group in groupby(rows(report), key=lambda row: row.workload):
        # The size is below the name, beside the second scheduler if there is one.
        size = sizes.get(workload) or sizes.get(workload.rpartition(" ")[0], "")
        beside = [Text(workload, style="bold"), Text(size, style="dim")]
        for row in group:
            made.add_row(beside.pop(0) if beside else "", row.scheduler, *_cells(row, report))
        if beside:
            made.add_row(beside.pop(0))
        made.add_section()
    return made


def _cells(row: Row, report: BenchReport) -> list[str]:
    latency = (
        _number(row.done_after_s, 1)
        if report.precreated
        else _pair(row.latency_p50_ms, row.latency_p99_ms)
    )
    return [
        _number(row.pods_per_second, 0),
        _number(row.sampled_average, 0),
        f"{row.ratio:.2f}x" if row.ratio is not None else _ABSENT,
        f"{row.share_of_limit:.0%}" if row.share_of_limit is not None else _ABSENT,
        latency,
        _pair(row.attempt_p50_ms, row.attempt_p99_ms),
        _number(row.scheduler_cpu_ms_per_pod, 2),
        _number(row.apiserver_cpu_ms_per_pod, 2),
        _number(row.scheduler_peak_mib, 0),
    ]


def _pair(first: float | None, second: float | None) -> str:
    if first is None and second is None:
        return _ABSENT
    return "/".join(_number(each, 1 if each and each < 100 else 0) for each in (first, second))


def _number(value: float | None, digits: int) -> str:
    return _ABSENT if value is None else f"{value:,.{digits}f}"


def explanation(report: BenchReport) -> str:
    """Explain the columns."""
    rounds = max((run.round for run in report.runs), default=0)
    lines = [
        f"Medians of {rounds} rounds." if rounds > 1 else "One round: expect noise.",
        _PODS_PER_SECOND,
        f"ratio: pods/s over {BASELINE}'s of the same round; of the limit: over {LIMIT}'s.",
        f"{_DONE_AFTER if report.precreated else _BOUND} {_ATTEMPTS}",
        "ms/pod: CPU time of scheduler and API server, events included; peak: the scheduler's.",
    ]
    lines += [
        f"{run.workload}, {run.scheduler}: no pods were to be bound; the scheduler used "
        f"{each.scheduler_cpu_s:.2f} s of CPU."
        for run in report.runs
        for each in run.measurements
        if not each.pods and each.scheduler_cpu_s is not None
    ]
    for each in report.workloads:
        if each.threshold:
            what = f"scheduler_perf's threshold is {each.threshold:g} pods/s (sampled)"
            lines.append(f"{each.name}: {what}, on its own machines.")
    return "\n".join(lines)


def write(report: BenchReport, folder: Path) -> list[Path]:
    """Write the report as JSON and its chart as SVG; return the paths."""
    stamp = report.started.replace(":", "").replace("-", "").partition("+")[0]
    output_file.make_folder(folder)
    json_file, svg_file = (folder / f"bench-{stamp}.{kind}" for kind in ("json", "svg"))
    with output_file.writing(json_file) as file:
        file.write(report.to_json())
    with output_file.writing(svg_file) as file:
        file.write(chart.svg(rows(report), subtitle=subtitle(report)).encode())
    return [json_file, svg_file]


def subtitle(report: BenchReport) -> str:
    """The conditions of a chart's figures."""
    sampling = "; ".join(
        f"{name}: {what}" for name, what in report.schedulers.items() if "null" not in name
    )
    return f"{report.qps:g} QPS, burst {report.burst}, {report.machine.cpus} CPUs. {sampling}"
