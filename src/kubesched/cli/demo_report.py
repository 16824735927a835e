"""The output of the demo: a progress bar, and a summary."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kubesched.api import names
from kubesched.cluster.resources import CPU, MEMORY

if TYPE_CHECKING:
    from kubesched.app import App
    from kubesched.queue.queued_pod import QueuedPod

#: Called with the number of bound and of parked pods.
Advance = Callable[[int, int], None]

#: Widths of the progress bar and of a share in the table.
BAR_WIDTH = 24
CELLS = 14


_FEW = 10


def plural(count: int, noun: str) -> str:
    """Format a count with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


class Statistics:
    """When pods were created and bound."""

    def __init__(self) -> None:
        self._created: dict[str, float] = {}
        self._latencies_s: list[float] = []
        self._began = self._last_bound = 0.0

    def begin(self) -> None:
        """Start the clock."""
        self._began = self._last_bound = time.perf_counter()

    def created(self, uid: str) -> None:
        """Record a created pod."""
        self._created[uid] = time.perf_counter()

    def bound(self, pod: QueuedPod, node_name: str) -> None:  # noqa: ARG002 (the caller's signature)
        """Record a bound pod."""
        self._last_bound = time.perf_counter()
        self._latencies_s.append(self._last_bound - self._created.get(pod.info.uid, self._began))

    @property
    def created_count(self) -> int:
        """How many pods were created."""
        return len(self._created)

    @property
    def bound_count(self) -> int:
        """How many pods were bound."""
        return len(self._latencies_s)

    @property
    def rate(self) -> float:
        """Pods bound a second."""
        return self.bound_count / max(self._last_bound - self._began, 1e-9)

    @property
    def seconds(self) -> float:
        """From the first pod created to the last one bound."""
        return self._last_bound - self._began

    def latency_ms(self, percentile: float) -> float:
        """How long a pod waited from its creation to its binding."""
        if not self._latencies_s:
            return 0.0
        return float(np.percentile(self._latencies_s, percentile)) * 1000


@contextmanager
def progress(console: Console, total: int) -> Iterator[Advance]:
    """Show a bar that moves as pods are bound."""
    columns = (
        TextColumn("scheduling"),
        BarColumn(BAR_WIDTH),
        MofNCompleteColumn(),
        TextColumn("bound, {task.fields[parked]} waiting"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("pods", total=total, parked=0)
        yield lambda bound, parked: bar.update(task, completed=bound, parked=parked)


def show(console: Console, app: App, statistics: Statistics) -> None:
    """Print the summary."""
    waiting = statistics.created_count - statistics.bound_count
    bound = f"[bold]{plural(statistics.bound_count, 'pod')} bound[/]"
    if statistics.bound_count > 1:
        bound += f" in {statistics.seconds:.1f} s, {statistics.rate:.0f} pods/s"
    console.print(f"\n{bound}; {waiting} waiting")
    if statistics.bound_count:
        # Percentiles of a few pods are meaningless.
        shown = (50, 90, 99) if statistics.bound_count >= _FEW else (50,)
        latencies = (f"p{p} {statistics.latency_ms(p):.0f} ms" for p in shown)
        console.print(f"from creation to binding: {', '.join(latencies)}")
    console.print(_zones(app))
    if waiting:
        console.print(_reasons(app))


def _zones(app: App) -> Table:
    table = Table(box=box.SIMPLE, title="requested share of allocatable", title_justify="left")
    for heading in ("zone", "nodes", "pods", "cpu", "memory"):
        table.add_column(heading)
    nodes = app.cluster.table
    column = nodes.label_column(names.LABEL_ZONE)
    for zone in sorted(value for value in column.vocabulary.values if value is not None):
        rows = np.flatnonzero(column.ids[: nodes.size] == column.vocabulary.find(zone))
        shares = [
            nodes.requested[resource, rows].sum() / nodes.allocatable[resource, rows].sum()
            for resource in (CPU, MEMORY)
        ]
        pods = str(int(nodes.pod_count[rows].sum()))
        table.add_row(zone, str(len(rows)), pods, *(_bar(share) for share in shares))
    return table


def _bar(share: float) -> str:
    filled = round(share * CELLS)
    return f"[green]{'█' * filled}[/][dim]{'░' * (CELLS - filled)}[/] {share:4.0%}"


def _reasons(app: App) -> Table:
    """Group the pending pods by their message."""
    table = Table(box=box.SIMPLE, title="why pods wait", title_justify="left")
    table.add_column("pods", justify="right")
    table.add_column("such as")
    table.add_column("because", overflow="fold")
    found: Counter[str] = Counter()
    example: dict[str, str] = {}
    for pod in app.queue.pods():
        reason = app.why_waiting(pod)
        found[reason] += 1
        example.setdefault(reason, pod.info.pod.metadata.name)
    for reason, count in found.most_common():
        table.add_row(str(count), example[reason], escape(reason))
    return table
