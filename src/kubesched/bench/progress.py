"""Progress: a live line in a terminal, lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from kubesched.bench.report import brief
from kubesched.bench.results import BenchRun


class ConsoleProgress:
    """Shows runs and their stages; a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[counted]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None
        self._title = ""
        self._total = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def run(self, title: str, number: int, total: int) -> None:
        """A run begins."""
        self._title = f"[{number}/{total}] {title}"
        if not self._console.is_terminal:
            self._print(self._title)

    def stage(self, what: str, total: int) -> None:
        """A stage of `total` items begins."""
        self._total = total
        if self._task is None:
            self._task = self._bar.add_task("", counted="")
        self._bar.reset(
            self._task,
            total=total or None,
            description=f"{self._title}: {what}",
            counted="",
        )

    def done(self, count: int) -> None:
        """So many items are done."""
        if self._task is not None:
            counted = f"{count}/{self._total}" if self._total else ""
            self._bar.update(self._task, completed=count, counted=counted)

    def result(self, run: BenchRun) -> None:
        """A run is over: print its result."""
        if run.error:
            self._print(f"  failed: {brief(run.error)}")
        for each in run.measurements:
            name = f" ({each.name})" if each.name else ""
            what = f"{run.workload}{name}, round {run.round}: {run.scheduler}"
            self._print(f"  {what}: {each.pods_per_second:,.0f} pods/s")

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
