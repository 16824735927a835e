"""An explanation as tables for the terminal: result, reasons, then changes."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kubesched.explain.report import Explanation, NodeAnswer

_COLOURS = {
    "Schedulable": "green",
    "Unschedulable": "red",
    "Gated": "yellow",
    "Unclaimed": "red",
    "Error": "red",
}


def show(console: Console, said: Explanation, *, top: int, every_node: bool) -> None:
    """Print an explanation; `top` limits nodes and scores unless `every_node`."""
    limit = max(said.total_nodes, 1) if every_node else top
    _headline(console, said)
    _reasons(console, said)
    _scores(console, said, limit)
    _preemption(console, said)
    _changes(console, said)
    _nodes(console, said, limit, every_node=every_node)
    for note in said.notes:
        console.print(f"[dim]Note: {escape(note)}[/]")


def _headline(console: Console, said: Explanation) -> None:
    colour = _COLOURS[said.outcome]
    where = f", on {escape(said.current_node)} now" if said.current_node else ""
    console.print(
        f"[bold]{escape(said.pod)}[/]: [bold {colour}]{said.outcome}[/]{where}; "
        f"{'would fit' if said.outcome == 'Unclaimed' else 'fits'} on "
        f"{said.feasible_nodes} of {said.total_nodes} nodes (profile {escape(said.scheduler_name)})"
    )
    if said.message:
        console.print(escape(said.message), soft_wrap=True)


def _reasons(console: Console, said: Explanation) -> None:
    for reason in said.pod_reasons:
        console.print(f"\n[bold]About the pod itself[/] ({reason.plugin}): {escape(reason.text)}")
    if not said.reasons:
        return
    table = _table(console, "Why nodes were rejected (a node may have several reasons)")
    table.add_column("nodes", justify="right")
    table.add_column("sole reason", justify="right")
    table.add_column("plugin")
    table.add_column("reason", overflow="fold")
    for each in said.reasons:
        table.add_row(str(each.nodes), str(each.alone or "-"), each.plugin, escape(each.text))
    console.print(table)


def _scores(console: Console, said: Explanation, limit: int) -> None:
    if not said.scores:
        return
    shown = said.scores[:limit]
    # A plugin that scores all nodes 0 makes no difference.
    telling = [
        plugin
        for plugin in said.weights
        if any(each.plugins[plugin].normalized for each in said.scores)
    ]
    table = _table(
        console, f"Scores of {len(shown)} of {len(said.scores)} feasible nodes (raw→normalized)"
    )
    table.add_column("node", no_wrap=True)
    table.add_column("total", justify="right", style="bold")
    for plugin in telling:
        table.add_column(f"{plugin} *{said.weights[plugin]}", justify="right", overflow="fold")
    for each in shown:
        scores = (each.plugins[plugin] for plugin in telling)
        cells = (
            f"{score.raw}→{score.normalized}" if score.raw != score.normalized else str(score.raw)
            for score in scores
        )
        table.add_row(escape(each.node), str(each.total), *cells)
    console.print(table)
    if len(said.best_nodes) == 1:
        console.print(f"The scheduler would choose [bold]{escape(said.best_nodes[0])}[/].")
    else:
        console.print(
            f"The scheduler would choose one of {len(said.best_nodes)} equally good nodes."
        )


def _preemption(console: Console, said: Explanation) -> None:
    found = said.preemption
    if found is None:
        return
    if not found.node:
        console.print(
            f"\n[bold]Preemption[/] would not help: {escape(found.message)}", soft_wrap=True
        )
        return
    victims = ", ".join(f"{each.pod} (priority {each.priority})" for each in found.victims)
    console.print(
        f"\n[bold]Preemption[/] would make room on {escape(found.node)}: evict {escape(victims)}"
    )


def _changes(console: Console, said: Explanation) -> None:
    if not said.changes and said.outcome != "Unschedulable":
        return
    if not said.changes:
        console.print("\nNo change was found that would place the pod.")
        return
    table = _table(console, "What would place it, the smallest change first (each was tried out)")
    table.add_column("#", justify="right")
    table.add_column("change", overflow="fold")
    table.add_column("nodes", justify="right")
    table.add_column("for example", overflow="fold")
    for number, each in enumerate(said.changes, start=1):
        examples = ", ".join(each.examples)
        table.add_row(str(number), escape(each.title), str(each.nodes), escape(examples))
    console.print(table)
    if any(each.commands for each in said.changes):
        console.print("[dim]-o json has the kubectl commands for them[/]")


def _nodes(console: Console, said: Explanation, limit: int, *, every_node: bool) -> None:
    refused = [each for each in said.nodes if not each.feasible]
    if not refused:
        return
    if every_node:
        table = _table(console, "Every rejected node")
        table.add_column("node", no_wrap=True)
        table.add_column("reasons", overflow="fold")
        for each in refused:
            table.add_row(escape(each.node), escape(_listed(each)))
        console.print(table)
        return
    groups: dict[str, list[str]] = {}
    for each in refused:
        groups.setdefault(_listed(each), []).append(each.node)
    table = _table(console, "Nodes with the same reasons together (--all lists every node)")
    table.add_column("nodes", justify="right")
    table.add_column("reasons", overflow="fold")
    table.add_column("for example", overflow="fold")
    counts = Counter({text: len(names) for text, names in groups.items()})
    for text, count in counts.most_common(limit):
        table.add_row(str(count), escape(text), escape(", ".join(groups[text][:2])))
    console.print(table)
    if len(counts) > limit:
        console.print(f"[dim]… and {len(counts) - limit} more combinations of reasons[/]")


def _listed(answer: NodeAnswer) -> str:
    return "; ".join(each.text for each in answer.reasons)


def _table(console: Console, title: str) -> Table:
    """Start a table under a heading: a table's own title is wrapped to its width."""
    console.print(f"\n[bold]{title}[/]")
    return Table(box=None, pad_edge=False)
