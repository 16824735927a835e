"""Reports of sweeps as tables: variants side by side, as many as fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.markup import escape

from kubesched.simulate.run_table import duration
from kubesched.simulate.sweeping import Measure, Sweep, VariantSummary
from kubesched.simulate.table import start_table

#: Width of the titles, and of a variant's numbers.
_TITLE_WIDTH = 30
_CELL_WIDTH = 22


def show_sweep(console: Console, said: Sweep) -> None:
    """Print the report of each variant; rows that are zero everywhere are left out."""
    for number, variant in enumerate(said.variants, start=1):
        console.print(f"[bold]{number}[/]  {escape(variant.name)}", soft_wrap=True)
    room = max((console.width - _TITLE_WIDTH) // _CELL_WIDTH, 1)
    for first in range(0, len(said.variants), room):
        _show_some(console, said, first, said.variants[first : first + room])


def _show_some(console: Console, said: Sweep, first: int, some: Sequence[VariantSummary]) -> None:
    title = f"Mean ± standard deviation of {said.seeds} seeds" if said.seeds > 1 else "Variants"
    numbers = (f">{number}" for number in range(first + 1, first + len(some) + 1))
    table = start_table(console, title, "", *numbers)
    rows: tuple[tuple[str, Callable[[VariantSummary], Measure], Callable[[float], str]], ...] = (
        ("placements", lambda each: each.placed, _number),
        ("pods that still wait", lambda each: each.pending, _number),
        ("preempted", lambda each: each.preempted, _number),
        ("displaced, preempted included", lambda each: each.displaced, _number),
        ("mean wait", lambda each: each.mean_wait_s, duration),
        ("wait of 99 %, at most", lambda each: each.p99_wait_s, duration),
        ("cpu requested", lambda each: each.cpu, _percent),
        ("memory requested", lambda each: each.memory, _percent),
        ("highest skew over zones", lambda each: each.highest_zone_skew, _number),
        ("workloads in one zone", lambda each: each.in_one_zone, _number),
    )
    for name, measure, written in rows:
        if any(measure(each).mean or measure(each).deviation for each in said.variants):
            table.add_row(name, *(_cell(measure(each), written) for each in some))
    console.print(table)


def _cell(measure: Measure, written: Callable[[float], str]) -> str:
    mean = written(measure.mean)
    return f"{mean} ± {written(measure.deviation)}" if measure.deviation else mean


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.2g}"


def _percent(value: float) -> str:
    return f"{value:.1f} %"
