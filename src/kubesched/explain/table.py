"""An explanation as tables for the terminal: result, reasons, then changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.markup import escape

from kubesched.explain import group_table
from kubesched.explain.device_table import show_devices
from kubesched.explain.report import Explanation, NodeAnswer, Reason, ReasonDetail
from kubesched.explain.table_parts import show_changes, show_preemption, start_table

#: So many details are shown of each reason, and so many nodes are named for each.
_DETAILS: Final = 3
_NAMED_NODES: Final = 2
_ONLY_OF_POD: Final = "only what is about the pod itself"
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
    _reasons(console, said, most_details=limit if every_node else _DETAILS)
    if said.devices is not None:
        show_devices(console, said.devices)
    if said.group is not None:
        group_table.show_summary(console, said.group)
    _scores(console, said, limit)
    show_preemption(console, said.preemption)
    _changes(console, said, with_commands=every_node)
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


def _reasons(console: Console, said: Explanation, *, most_details: int) -> None:
    plugins_by: dict[str, list[Reason]] = {}
    for reason in said.pod_reasons:
        plugins_by.setdefault(reason.text, []).append(reason)
    for text, reasons in plugins_by.items():
        plugins = ", ".join(each.plugin for each in reasons)
        console.print(
            f"\n[bold]About the pod itself[/] ({plugins}): {escape(text)}", soft_wrap=True
        )
        for detail in (detail for each in reasons for detail in each.details):
            console.print(f"  {escape(detail.text)}", soft_wrap=True)
    if not said.reasons:
        return
    console.print("\n[bold]Why nodes were rejected (a node may have several reasons)[/]")
    width = max(len(each.plugin) for each in said.reasons)
    console.print(f"[bold]nodes  sole reason  {'plugin':{width}}  reason[/]")
    for each in said.reasons:
        console.print(
            f"{each.nodes:5}  {each.alone or '-':>11}  {each.plugin:{width}}  {escape(each.text)}",
            soft_wrap=True,
        )
        # Not a table's cell, in which a line of numbers would be wrapped.
        for line in detail_lines(each.details, most_details):
            console.print(f"       [dim]{escape(line)}[/]", soft_wrap=True)


def detail_lines(details: Sequence[ReasonDetail], most: int) -> Iterator[str]:
    """Return a line for each of the first details, and how many more there are."""
    for each in details[:most]:
        yield f"{each.text}{_where(each)}"
    rest = details[most:]
    if rest:
        nodes = sum(each.nodes for each in rest)
        on = f" ({nodes} nodes)" if nodes > len(rest) else ""
        yield f"… and {len(rest)} more{on}"


def _where(detail: ReasonDetail) -> str:
    if not detail.nodes:
        return ""
    if detail.nodes <= len(detail.examples) <= _NAMED_NODES:
        return f": {', '.join(detail.examples)}"
    return f": {detail.nodes} nodes such as {detail.examples[0]}"


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
    table = start_table(
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


def _changes(console: Console, said: Explanation, *, with_commands: bool) -> None:
    if said.changes:
        show_changes(console, said.changes, with_commands=with_commands)
    elif said.outcome == "Unschedulable":
        found = "No change was found that would place the pod."
        console.print(f"\n{found if said.total_nodes else 'There are no nodes: it needs one.'}")


def _nodes(console: Console, said: Explanation, limit: int, *, every_node: bool) -> None:
    refused = [each for each in said.nodes if not each.feasible]
    if not refused:
        return
    if every_node:
        table = start_table(console, "Every rejected node")
        table.add_column("node", no_wrap=True)
        table.add_column("reasons", overflow="fold")
        for each in refused:
            table.add_row(escape(each.node), escape(_listed(each, said, details=True)))
        console.print(table)
        return
    groups: dict[str, list[str]] = {}
    for each in refused:
        groups.setdefault(_listed(each, said), []).append(each.node)
    table = start_table(console, "Nodes with the same reasons together (--all lists every node)")
    table.add_column("nodes", justify="right")
    table.add_column("reasons", overflow="fold")
    table.add_column("for example", overflow="fold")
    counts = Counter({text: len(names) for text, names in groups.items()})
    for text, count in counts.most_common(limit):
        table.add_row(str(count), escape(text), escape(", ".join(groups[text][:2])))
    console.print(table)
    if len(counts) > limit:
        console.print(f"[dim]… and {len(counts) - limit} more combinations of reasons[/]")


def _listed(answer: NodeAnswer, said: Explanation, *, details: bool = False) -> str:
    """Return the reasons of a node; those of the pod itself are told before."""
    of_pod = {(each.plugin, each.text) for each in said.pod_reasons}
    own = [each for each in answer.reasons if (each.plugin, each.text) not in of_pod]
    return "; ".join(_with_details(each) if details else each.text for each in own) or _ONLY_OF_POD


def _with_details(reason: Reason) -> str:
    told = ", ".join(each.text for each in reason.details)
    return f"{reason.text} ({told})" if told else reason.text
