"""``kubesched bench --decisions``: each size in its own process.

sizes ──> python -m kubesched.bench.decisions … ──lines of JSON──> table, or JSON
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from kubesched import output_file
from kubesched.bench.decisions import WORKLOADS, Point
from kubesched.bench.processes import launched
from kubesched.bench.report import described
from kubesched.bench.results import Machine
from kubesched.bench.runner import this_machine
from kubesched.errors import KubeschedError, UsageError

QUICK_SIZES = (1000, 5000)
FULL_SIZES = (1000, 5000, 15_000, 50_000, 100_000)
EXISTING_A_NODE = 10
QUICK_PODS = 500
FULL_PODS = 1000

WIDTH = 110


class DecisionReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All points of one run."""

    started: str
    machine: Machine
    points: tuple[Point, ...]

    def to_json(self) -> bytes:
        """The report, indented."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def run(
    *,
    nodes: int | None,
    existing: int | None,
    pods: int | None,
    rounds: int,
    full: bool,
    names: Sequence[str],
    as_json: bool,
    results: Path | None,
) -> int:
    """Measure all sizes and show them; return the exit code."""
    chosen = _chosen(names)
    sizes = (nodes,) if nodes else FULL_SIZES if full else QUICK_SIZES
    count = pods or (FULL_PODS if full else QUICK_PODS)
    console = Console(stderr=True, highlight=False)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    points: list[Point] = []
    with console.status("building clusters") as status:
        for size in sizes:
            there = EXISTING_A_NODE * size if existing is None else existing
            for point in measure(chosen, nodes=size, existing=there, pods=count, rounds=rounds):
                status.update(f"{size} nodes: {point.workload} {point.per_second:,.0f}/s")
                points.append(point)
    report = DecisionReport(started=started, machine=this_machine(), points=tuple(points))
    if as_json:
        sys.stdout.write(report.to_json().decode())
    else:
        show(report)
    if results:
        output_file.make_folder(results)
        stamp = started.replace(":", "").replace("-", "").partition("+")[0]
        path = results / f"decisions-{stamp}.json"
        with output_file.writing(path) as file:
            file.write(report.to_json())
        console.print(f"written: {path}", soft_wrap=True)
    return 0


def _chosen(names: Sequence[str]) -> list[str]:
    for name in names:
        if name not in WORKLOADS:
            known = ", ".join(WORKLOADS)
            raise UsageError(f"--decisions: there is no workload {name!r}; there are {known}")
    return list(names) or list(WORKLOADS)


def measure(
    names: Sequence[str], *, nodes: int, existing: int, pods: int, rounds: int
) -> Iterator[Point]:
    """Measure one size in its own process; yields results as they come."""
    numbers = map(str, (nodes, existing, pods, rounds))
    command = [sys.executable, "-m", "kubesched.bench.decisions", *numbers, *names]
    with subprocess.Popen(  # noqa: S603  a command made here, without a shell
        launched(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            for line in process.stdout or ():
                yield msgspec.json.decode(line, type=Point)
            process.wait()
        finally:
            process.kill()
    if process.returncode:
        raise KubeschedError(f"measuring {nodes} nodes ended with status {process.returncode}")


def show(report: DecisionReport) -> None:
    """Print a report."""
    console = Console(highlight=False)
    console.width = max(console.width, WIDTH)
    console.print("kubesched bench --decisions: the engine alone, all nodes scored", soft_wrap=True)
    console.print(described(report.machine), soft_wrap=True)
    table = Table("workload", header_style="bold", pad_edge=False, box=box.SIMPLE_HEAD)
    for name in (
        "nodes",
        "existing",
        "decisions/s",
        "p50 µs",
        "p99 µs",
        "decided",
        "build s",
        "peak MiB",
    ):
        table.add_column(name, justify="right")
    last = 0
    for point in report.points:
        if last and point.nodes != last:
            table.add_section()
        last = point.nodes
        table.add_row(
            point.workload,
            f"{point.nodes:,}",
            f"{point.existing:,}",
            f"{point.per_second:,.0f}",
            f"{point.p50_us:,.0f}",
            f"{point.p99_us:,.0f}",
            f"{point.decided}/{point.pods}",
            f"{point.build_s:.1f}",
            f"{point.peak_mib:,.0f}",
        )
    console.print(table)
    console.print("decided: found a node, or (preemption) victims. peak: of the whole process.")
