"""Reports of simulations as tables for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kubesched.simulate.places import natural
from kubesched.simulate.report import (
    Addition,
    ConfigurationComparison,
    DisplacedPod,
    Displacement,
    GangHeadroom,
    Headroom,
    Left,
    Losses,
    Move,
    Preemption,
    SpreadChange,
    Utilisation,
    WorkloadSpread,
)

_FEW: Final = 3
_SIDES: Final = ("before", "after")


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


def show_gang_headroom(console: Console, said: GangHeadroom, *, top: int) -> None:
    """Print how many more gangs fit, and where."""
    more = "at least " if said.at_least else ""
    each = f"{said.pods_each} pods each"
    if said.pods_each != said.min_count:
        each += f", {said.min_count} of which it needs"
    console.print(
        f"[bold]podgroup {escape(said.group)}[/]: {more}[bold]{said.gangs}[/] more like it fit "
        f"({each})"
    )
    if said.placements:
        table = start_table(
            console, "Where they go", ">gang", ">pods", ">nodes", "in", "for example"
        )
        for number, one in enumerate(said.placements[:top], start=1):
            nodes = ", ".join(f"{name} {count}" for name, count in list(one.nodes.items())[:3])
            counts = str(sum(one.nodes.values())), str(len(one.nodes))
            table.add_row(str(number), *counts, escape(one.domain or "-"), escape(nodes))
        console.print(table)
        show_more(console, len(said.placements), top)
    if said.message:
        console.print(f"\nWhy not one more: {escape(said.message)}", soft_wrap=True)


def show_displacement(
    console: Console, said: Displacement, *, verb: str, top: int, wide: bool = False
) -> None:
    """Print where the pods of some nodes go."""
    console.print(f"[bold]{escape(said.name)}[/] {verb}: {_fate(said)}")
    for gang in said.gangs[:top]:
        console.print(
            f"  gang {escape(gang.group)} keeps {gang.running} pods on nodes, of the {gang.needed} "
            "that it needs"
        )
    _show_budgets(console, said, top=top, wide=wide)
    _show_moved(console, said, top=top, wide=wide)
    show_left(console, said.left, top=top, wide=wide)


def _fate(said: Displacement) -> str:
    parts = [f"[bold]{counted(said.displaced, 'pod')}[/] to move"] if said.displaced else []
    if said.left:
        parts += [
            f"{said.placed} placed elsewhere",
            f"[bold]{len(said.left)}[/] left without a node",
        ]
    elif said.displaced:
        parts.append("placed elsewhere" if said.displaced == 1 else "all placed elsewhere")
    if said.ended:
        parts.append(f"{counted(said.ended, 'daemon pod')} end with their node")
    return ", ".join(parts) or "no pod to move"


def _show_budgets(console: Console, said: Displacement, *, top: int, wide: bool) -> None:
    if not said.budgets:
        return
    title, columns = "Evictions that a PodDisruptionBudget blocks now", (">allowed", ">blocked")
    table = start_table(console, title, "budget", *columns, "pods")
    for each in said.budgets[:top]:
        pods = ", ".join(each.pods) if wide else listed(each.pods)
        table.add_row(*map(escape, (each.budget, str(each.allowed), str(len(each.pods)), pods)))
    console.print(table)
    show_more(console, len(said.budgets), top)


def _show_moved(console: Console, said: Displacement, *, top: int, wide: bool) -> None:
    """Print where pods go; those of one workload in one line unless all are to be shown."""
    if not said.moved:
        return
    if wide:
        table = start_table(console, "Where they go", "pod", "from", "to")
        for each in said.moved:
            table.add_row(*map(escape, (each.pod, each.before, each.after)))
        console.print(table)
        return
    alike: dict[str, list[DisplacedPod]] = {}
    for each in said.moved:
        alike.setdefault(each.workload or each.pod, []).append(each)
    table = start_table(console, "Where they go", ">pods", "of", "to")
    for title, pods in list(alike.items())[:top]:
        counts = Counter(each.after for each in pods)
        table.add_row(str(len(pods)), escape(title), escape(_nodes(counts)))
    console.print(table)
    show_more(console, len(alike), top)


def _nodes(counts: Counter[str]) -> str:
    """Return nodes, each with its number of pods where that is not 1."""
    each = [name if count == 1 else f"{name} ({count})" for name, count in counts.items()]
    return listed(sorted(each, key=natural))


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


def show_addition(console: Console, said: Addition, *, top: int, wide: bool = False) -> None:
    """Print the effect of more nodes."""
    console.print(
        f"{said.added} more nodes like [bold]{escape(said.like)}[/]: of {said.pending} pending "
        f"pods, [bold]{said.placed_after}[/] find a node instead of {said.placed_before}"
    )
    if said.before is not None and said.after is not None:
        _show_utilisation(console, said.before, said.after)
    show_left(console, said.still_left, top=top, wide=wide)


def show_comparison(
    console: Console, said: ConfigurationComparison, *, top: int, wide: bool = False
) -> None:
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
    if said.moves:
        _show_moves(console, said.moves, top=top, wide=wide)


def _show_moves(console: Console, moves: Sequence[Move], *, top: int, wide: bool) -> None:
    """Print pods that are placed otherwise; those of one workload in one line."""
    alike: dict[str, list[Move]] = {}
    for each in moves:
        alike.setdefault(each.pod if wide else each.workload or each.pod, []).append(each)
    table = start_table(console, "Placed otherwise", ">pods", "of", "before", "after")
    for title, pods in list(alike.items())[:top]:
        before, after = (_places([getattr(each, side) for each in pods]) for side in _SIDES)
        table.add_row(str(len(pods)), *map(escape, (title, before, after)))
    console.print(table)
    show_more(console, len(alike), top)


def _places(nodes: Sequence[str]) -> str:
    """Return the nodes of pods, or how many there are."""
    without = nodes.count("")
    on = sorted({each for each in nodes if each}, key=natural)
    parts = [", ".join(on) if len(on) <= _FEW else f"{len(on)} nodes"] if on else []
    if without:
        parts.append("(none)" if without == 1 else f"({without} none)")
    return ", ".join(parts)


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
    show_more(console, len(preemptions), top)


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
    show_more(console, len(found), top)


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


def show_left(console: Console, left: Sequence[Left], *, top: int, wide: bool = False) -> None:
    """Print pods without a node; those of one workload with one reason in one line."""
    if not left:
        return
    if wide:
        table = start_table(console, "Left without a node", "pod", ">priority", "because")
        for each in left:
            table.add_row(escape(each.pod), str(each.priority), escape(each.message))
        console.print(table)
        return
    alike = Counter((each.workload or each.pod, each.priority, each.message) for each in left)
    table = start_table(console, "Left without a node", ">pods", "of", ">priority", "because")
    for (title, priority, message), count in list(alike.items())[:top]:
        table.add_row(str(count), escape(title), str(priority), escape(message))
    console.print(table)
    show_more(console, len(alike), top)


def show_more(console: Console, rows: int, top: int) -> None:
    """Print how many rows of a table are not shown."""
    if rows > top:
        console.print(f"[dim]… and {rows - top} more (--top N, or -o wide)[/]")


def counted(number: int, what: str) -> str:
    """Return a number of things, one of which has no plural."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def listed(names: Sequence[str]) -> str:
    """Return the first few of several names, and how many more there are."""
    more = len(names) - _FEW
    return ", ".join(names[:_FEW]) + (f" and {more} more" if more > 0 else "")


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
