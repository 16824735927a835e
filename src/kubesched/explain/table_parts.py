"""Parts of explanations of pods and of groups, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kubesched.explain.report import HelpfulChange, PreemptionEffect

#: Of the message in the pod's condition.
_PREFIX: Final = "preemption: "


def start_table(console: Console, title: str) -> Table:
    """Start a table under a heading: a table's own title is wrapped to its width."""
    console.print(f"\n[bold]{title}[/]")
    return Table(box=None, pad_edge=False)


def show_preemption(console: Console, found: PreemptionEffect | None) -> None:
    """Print the effect of preemption, if it was tried."""
    if found is None:
        return
    if not found.node:
        console.print(
            f"\n[bold]Preemption[/] would not help: {escape(found.message.removeprefix(_PREFIX))}",
            soft_wrap=True,
        )
        return
    victims = ", ".join(f"{each.pod} (priority {each.priority})" for each in found.victims)
    console.print(
        f"\n[bold]Preemption[/] would make room on {escape(found.node)}: evict {escape(victims)}"
    )


def show_changes(
    console: Console, changes: Sequence[HelpfulChange], *, with_commands: bool
) -> None:
    """Print what would help, and how much; the commands for it, or how to get them."""
    table = start_table(
        console, "What would place it, the smallest change first (each was tried out)"
    )
    table.add_column("#", justify="right")
    table.add_column("change", overflow="fold")
    table.add_column("nodes", justify="right")
    table.add_column("for example", overflow="fold")
    for number, each in enumerate(changes, start=1):
        examples = ", ".join(each.examples)
        table.add_row(str(number), escape(each.title), str(each.nodes), escape(examples))
    console.print(table)
    if with_commands:
        _commands(console, changes)
    elif any(each.commands for each in changes):
        console.print("[dim]-o wide has the kubectl commands for them[/]")


def _commands(console: Console, changes: Sequence[HelpfulChange]) -> None:
    console.print("\n[bold]How to make these changes[/]")
    for number, each in enumerate(changes, start=1):
        console.print(f"{number}  [dim]{escape(each.note)}[/]", soft_wrap=True)
        for command in each.commands:
            console.print(f"   {escape(command)}", soft_wrap=True)
