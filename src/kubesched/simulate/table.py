"""Reports of simulations as tables for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kubesched.simulate.report import (
    Addition,
    ConfigurationComparison,
    Displacement,
    Headroom,
    Left,
    Losses,
    Preemption,
    SpreadChange,
    Utilisation,
    WorkloadSpread,
)


def show_headroom(console: Console, said: Headroom, *, top: int) -> None:
    """Print how many more pods fit."""
    more = "at least " if said.at_least else ""
    console.print(
        f"[bold]{escape(said.pod)}[/]: {more}[bold]{said.pods}[/] more fit, on {said.nodes} nodes"
    )
    if len(said.by_zone) > 1:
        zones = ", ".join(f"{zone or '(none)'} {count}" for zone, count in said.by_zone.items())
        console.print(f"by zone: {escape(zones)}")
    if said.by_node:
        table = start_table(console, "Nodes that take the most", "node", ">pods")
        for name, count in Counter(said.by_node).most_common(top):
            table.add_row(escape(name), str(count))
        console.print(table)
    if said.message:
        console.print(f"\nWhy not one more: {escape(said.message)}", soft_wrap=True)


def show_displacement(console: Console, said: Displacement, *, verb: str, top: int) -> None:
    """Print where the pods of some nodes go."""
    ended = f", {said.ended} end with their nodes" if said.ended else ""
    console.print(
        f"[bold]{escape(said.name)}[/] {verb}: {said.displaced} pods must move{ended}; "
        f"[bold]{said.placed}[/] find another node, [bold]{len(said.left)}[/] are left"
    )
    for name in said.against_budgets[:top]:
        console.print(f"  a disruption budget does not allow to evict {escape(name)} now")
    _show_left(console, said.left, top=top)


def show_losses(console: Console, said: Losses, *, top: int) -> None:
    """Print which losses would leave pods without a node."""
    total = len(said.domains)
    console.print(f"[bold]{said.harmless}[/] of {total} can be lost without a pod left behind")
    worst = sorted(said.domains, key=lambda each: -len(each.left))
    harmful = [each for each in worst if each.left]
    if not harmful:
        return
    table = start_table(
        console, "The worst of the others", "lost", ">must move", ">left", "for example", "because"
    )
    for each in harmful[:top]:
        first = each.left[0]
        table.add_row(
            escape(each.name),
            str(each.displaced),
            str(len(each.left)),
            escape(first.pod),
            escape(first.message),
        )
    console.print(table)


def show_addition(console: Console, said: Addition, *, top: int) -> None:
    """Print the effect of more nodes."""
    console.print(
        f"{said.added} more nodes like [bold]{escape(said.like)}[/]: of {said.pending} pending "
        f"pods, [bold]{said.placed_after}[/] find a node instead of {said.placed_before}"
    )
    if said.before is not None and said.after is not None:
        _show_utilisation(console, said.before, said.after)
    _show_left(console, said.still_left, top=top)


def show_comparison(console: Console, said: ConfigurationComparison, *, top: int) -> None:
    """Print the effect of another configuration."""
    console.print(
        f"of {said.pods} pods, [bold]{len(said.moves)}[/] are placed otherwise and "
        f"{said.unchanged} as before; left without a node: {said.left_after} instead of "
        f"{said.left_before}; would-be preemptions: {_victims(said.preemptions_after)} instead of "
        f"{_victims(said.preemptions_before)}"
    )
    _show_utilisation(console, said.before, said.after)
    _show_spread(console, said, top=top)
    show_preemptions(console, said.preemptions_before, title="Preempted before", top=top)
    show_preemptions(console, said.preemptions_after, title="Preempted after", top=top)
    if not said.moves:
        return
    table = start_table(console, "Placed otherwise", "pod", "before", "after")
    for each in said.moves[:top]:
        table.add_row(*map(escape, (each.pod, each.before or "(none)", each.after or "(none)")))
    console.print(table)
    if len(said.moves) > top:
        console.print(f"[dim]… and {len(said.moves) - top} more[/]")


def show_preemptions(
    console: Console, preemptions: Sequence[Preemption], *, title: str, top: int
) -> None:
    """Print preemptors and their victims."""
    if not preemptions:
        return
    table = start_table(console, title, "for", ">pods", "on", "for example")
    for each in preemptions[:top]:
        row = (each.preemptor, str(len(each.victims)), each.node, each.victims[0])
        table.add_row(*map(escape, row))
    console.print(table)
    if len(preemptions) > top:
        console.print(f"[dim]… and {len(preemptions) - top} more[/]")


def _victims(preemptions: Sequence[Preemption]) -> int:
    return sum(len(each.victims) for each in preemptions)


def _show_spread(console: Console, said: ConfigurationComparison, *, top: int) -> None:
    before, after = said.spread_before, said.spread_after
    if not before.workloads and not after.workloads:
        return
    table = start_table(console, "Spread of workloads", "", ">before", ">after")
    for title, was, now in (
        ("workloads of several pods", before.workloads, after.workloads),
        ("all of whose pods are in one zone", before.in_one_zone, after.in_one_zone),
        ("all of whose pods are on one node", before.on_one_node, after.on_one_node),
        ("mean skew over zones", before.mean_zone_skew, after.mean_zone_skew),
        ("highest skew over zones", before.highest_zone_skew, after.highest_zone_skew),
    ):
        table.add_row(title, str(was), str(now))
    console.print(table)
    if said.spread_changes:
        _show_spread_changes(console, said.spread_changes, top=top)


def _show_spread_changes(console: Console, found: Sequence[SpreadChange], *, top: int) -> None:
    columns = ("workload", ">pods", ">zones", ">skew over zones", ">nodes", ">most on a node")
    table = start_table(console, "Spread otherwise", *columns)
    for each in found[:top]:
        pairs = zip(_numbers(each.before), _numbers(each.after), strict=True)
        table.add_row(escape(each.workload), *(_change(was, now) for was, now in pairs))
    console.print(table)
    if len(found) > top:
        console.print(f"[dim]… and {len(found) - top} more[/]")


def _numbers(spread: WorkloadSpread) -> tuple[int, ...]:
    return spread.pods, spread.zones, spread.zone_skew, spread.nodes, spread.most_on_a_node


def _change(was: int, now: int) -> str:
    return str(was) if was == now else f"{was} → {now}"


def _show_utilisation(console: Console, before: Utilisation, after: Utilisation) -> None:
    table = start_table(console, "Requested share of allocatable", "", ">before", ">after")
    for title, was, now in (
        ("cpu", before.cpu, after.cpu),
        ("memory", before.memory, after.memory),
        ("cpu of the fullest node", before.highest_cpu, after.highest_cpu),
        ("memory of the fullest node", before.highest_memory, after.highest_memory),
    ):
        table.add_row(title, f"{was} %", f"{now} %")
    console.print(table)


def _show_left(console: Console, left: Sequence[Left], *, top: int) -> None:
    if not left:
        return
    table = start_table(console, "Left without a node", "pod", ">priority", "because")
    for each in left[:top]:
        table.add_row(escape(each.pod), str(each.priority), escape(each.message))
    console.print(table)
    if len(left) > top:
        console.print(f"[dim]… and {len(left) - top} more[/]")


def start_table(console: Console, title: str, *columns: str) -> Table:
    """Start a table under a heading; columns that start with ``>`` hold numbers."""
    console.print(f"\n[bold]{title}[/]")
    table = Table(box=None, pad_edge=False)
    for each in columns:
        number = each.startswith(">")
        table.add_column(
            each.removeprefix(">"), justify="right" if number else "left", overflow="fold"
        )
    return table
