"""The explanation of a group, as tables for the terminal."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.markup import escape

from kubesched.explain.report import GroupExplanation
from kubesched.explain.table_parts import show_changes, show_preemption, start_table

_COLOURS = {
    "Scheduled": "green",
    "Schedulable": "green",
    "Unschedulable": "red",
    "Gated": "yellow",
    "Error": "red",
}


def show(console: Console, said: GroupExplanation, *, top: int, wide: bool = False) -> None:
    """Print the explanation of a group; `top` limits placements and members."""
    profile = f" (profile {escape(said.scheduler_name)})" if said.scheduler_name else ""
    console.print(
        f"[bold]podgroup {escape(said.group)}[/]: "
        f"[bold {_COLOURS[said.outcome]}]{said.outcome}[/]; {_size(said)}{profile}"
    )
    if said.message:
        console.print(escape(said.message), soft_wrap=True)
    console.print(f"\n{escape(said.text)}", soft_wrap=True)
    _placements(console, said, top)
    _members(console, said, top)
    show_preemption(console, said.preemption)
    if said.changes:
        show_changes(console, said.changes, with_commands=wide)
    elif said.outcome == "Unschedulable":
        console.print("\nNo change was found that would place the group.")
    for note in said.notes:
        console.print(f"[dim]Note: {escape(note)}[/]")


def show_summary(console: Console, said: GroupExplanation) -> None:
    """Print the group of a pod in a few lines."""
    console.print(
        f"\n[bold]Group {escape(said.group)}[/]: {_size(said)}; {escape(said.text)}",
        soft_wrap=True,
    )
    if len(said.placements) > 1:
        console.print(f"[dim]kubesched explain podgroup/{escape(said.group)} has more[/]")


def _size(said: GroupExplanation) -> str:
    needs = f"a gang that needs {said.min_count}" if said.policy == "gang" else "a basic group"
    part_of = f", part of {said.part_of}" if said.part_of else ""
    members = "1 member" if said.members == 1 else f"{said.members} members"
    return f"{needs}, with {members}, {said.placed} of them on nodes{escape(part_of)}"


def _placements(console: Console, said: GroupExplanation, top: int) -> None:
    if not said.topology_key or not said.placements:
        return
    table = start_table(console, f"Placements by {escape(said.topology_key)}, the best first")
    table.add_column("placement", no_wrap=True)
    table.add_column("nodes", justify="right")
    table.add_column("fit", justify="right")
    table.add_column("the others lack", overflow="fold")
    for each in said.placements[:top]:
        lacking = "; ".join(f"{one.pods}: {one.message}" for one in each.lacking)
        fit = f"{each.fits} of {each.members}"
        table.add_row(escape(each.name), str(each.nodes), fit, escape(lacking))
    console.print(table)
    if len(said.placements) > top:
        console.print(f"[dim]… and {len(said.placements) - top} more[/]")


def _members(console: Console, said: GroupExplanation, top: int) -> None:
    if not said.pods:
        return
    would = said.outcome in ("Schedulable", "Scheduled")
    table = start_table(console, "Members" if would else "Members, on the best placement")
    table.add_column("pods", justify="right")
    table.add_column("node", overflow="fold")
    table.add_column("for example", no_wrap=True)
    found: Counter[tuple[str, bool]] = Counter()
    examples: dict[tuple[str, bool], str] = {}
    for each in said.pods:
        key = each.node, each.placed
        found[key] += 1
        examples.setdefault(key, each.pod)
    for (node, placed), count in found.most_common(top):
        where = node if placed else f"{node} (would fit)" if node else "none"
        table.add_row(str(count), escape(where), escape(examples[node, placed]))
    console.print(table)
    if len(found) > top:
        console.print(f"[dim]… and {len(found) - top} more[/]")
