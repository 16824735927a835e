"""The report of a replay as tables for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kubesched.replay.deciding import AttemptOutcome
from kubesched.replay.report import Difference, Replayed


def show(console: Console, said: Replayed, *, top: int) -> None:
    """Print the report of a replay."""
    _show_summary(console, said)
    if said.other_configuration:
        _show_comparison(console, said)
    _show_differences(console, said, top=top)


def _show_summary(console: Console, said: Replayed) -> None:
    lines = [
        ("recording", said.recording + (" (redacted)" if said.redacted else "")),
        ("time", f"{said.start} … {said.end}, {said.covered_seconds:g} s"),
        ("entries", f"{said.entries:,}" + (", then it is cut off" if said.cut_off else "")),
        ("decisions", f"{said.decisions:,}"),
        ("same", f"{said.same:,}"),
    ]
    if said.other_configuration:
        lines.append(("just as good", f"{said.tied:,}"))
    lines += [
        ("different", f"{said.different:,}"),
        ("speed", f"{said.decisions_per_second:,.0f} decisions/s, {said.took_seconds:g} s in all"),
    ]
    table = Table.grid(padding=(0, 2))
    for title, text in lines:
        table.add_row(f"[bold]{title}[/]", escape(text))
    console.print(table)


def _show_comparison(console: Console, said: Replayed) -> None:
    console.print(
        f"\nof the different ones, {said.placed_elsewhere} place the pod on another node, "
        f"{said.placed_only_now} place one that found none then, {said.placed_only_then} find none "
        f"where there was one then, {said.otherwise} preempt otherwise",
        soft_wrap=True,
    )
    then, now = said.recorded_preemptions, said.preemptions
    console.print(
        f"preemptions: {now.decisions} decisions would evict {now.victims} pods; "
        f"then {then.decisions} evicted {then.victims}",
        soft_wrap=True,
    )
    if said.placements is not None:
        there = said.placements
        console.print(
            f"in the end, {there.now} pods have a node instead of {there.recorded}, "
            f"{there.moved} of all are elsewhere, or have one only now or only then",
            soft_wrap=True,
        )
    console.print("\n[bold]Requested share of allocatable, at the end[/]")
    table = Table(box=None, pad_edge=False)
    columns = ("recorded", "now", "fullest node recorded", "fullest node now")
    table.add_column("")
    for title in columns if said.follow == "own" else ("", "fullest node"):
        table.add_column(title, justify="right")
    for each in said.usage:
        values = (each.recorded, each.now, each.highest_recorded, each.highest_now)
        shown = values if said.follow == "own" else (each.recorded, each.highest_recorded)
        table.add_row(escape(each.resource), *(f"{value:g} %" for value in shown))
    console.print(table)


def _show_differences(console: Console, said: Replayed, *, top: int) -> None:
    if not said.differences:
        return
    console.print(f"\n[bold]The first of {said.different} that differ[/]")
    table = Table(box=None, pad_edge=False)
    table.add_column("entry", justify="right")
    for title in ("pod", "in", "recorded", "now"):
        table.add_column(title, overflow="fold")
    for each in said.differences[:top]:
        table.add_row(
            str(each.entry),
            escape(each.pod),
            escape(", ".join(each.fields)),
            escape(_outcome(each, each.recorded)),
            escape(_outcome(each, each.now)),
        )
    console.print(table)
    if said.different > top:
        console.print(f"[dim]… and {said.different - top} more[/]")


def _outcome(difference: Difference, outcome: AttemptOutcome) -> str:
    """Format the outcome of an attempt, with the differing fields."""
    parts = [outcome.node or outcome.message or outcome.code]
    if outcome.nominated:
        parts.append(f"nominated to {outcome.nominated}, evicts {len(outcome.victims)}")
    shown = {"node", "message", "nominated", "victims", "code"}
    parts += [
        f"{field} {getattr(outcome, field)}" for field in difference.fields if field not in shown
    ]
    return "; ".join(parts)
