"""Why a pod is not on a certain node, as text for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from kubesched.explain.report import NodeExplanation
from kubesched.explain.table_parts import start_table

_COLOURS = {"Rejected": "red", "Outscored": "yellow", "Tied": "green", "Best": "green"}


def show_on_node(console: Console, said: NodeExplanation) -> None:
    """Print the reasons of a rejection with their numbers, or the scores side by side."""
    where = f", on {escape(said.current_node)} now" if said.current_node else ""
    console.print(
        f"[bold]{escape(said.pod)}[/] on [bold]{escape(said.node)}[/]: "
        f"[bold {_COLOURS[said.outcome]}]{said.outcome}[/]{where} "
        f"(profile {escape(said.scheduler_name)})"
    )
    console.print(escape(said.text), soft_wrap=True)
    if said.reasons:
        console.print("\n[bold]Why it is rejected[/]")
    for reason in said.reasons:
        console.print(f"{reason.plugin}: {escape(reason.text)}", soft_wrap=True)
        for detail in reason.details:
            console.print(f"  {escape(detail.text)}", soft_wrap=True)
    if said.scores:
        _scores(console, said)
    for note in said.notes:
        console.print(f"[dim]Note: {escape(note)}[/]")


def _scores(console: Console, said: NodeExplanation) -> None:
    table = start_table(console, "Points (score times weight), the largest loss first")
    table.add_column("plugin")
    for name in ("weight", said.winner, said.node, "difference"):
        table.add_column(escape(name), justify="right")
    for each in said.scores:
        if not (each.winner or each.node):
            continue
        table.add_row(
            each.plugin,
            str(each.weight),
            str(each.winner),
            str(each.node),
            f"{each.difference:+}" if each.difference else "0",
        )
    total = said.node_points - said.winner_points
    table.add_row(
        "[bold]total[/]",
        "",
        f"[bold]{said.winner_points}[/]",
        f"[bold]{said.node_points}[/]",
        f"[bold]{total:+}[/]" if total else "0",
    )
    console.print(table)
