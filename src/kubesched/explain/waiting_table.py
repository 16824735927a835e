"""Waiting pods by cause, as text for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.markup import escape

from kubesched.explain.report import WaitingCause, WaitingReport, WorkloadExplanation
from kubesched.explain.table import detail_lines
from kubesched.explain.table_parts import start_table
from kubesched.framework.detail import listed

#: So many numbers and names are shown for the example of a cause, and so many for each reason.
_NUMBERS: Final = 3


def show_waiting(console: Console, said: WaitingReport, *, top: int, wide: bool = False) -> None:
    """Print the causes for which pods wait, the most common first; each pod if `wide`."""
    total = said.waiting + said.placed
    where = f" of namespace {escape(said.namespace)}" if said.namespace else ""
    if not said.waiting:
        console.print(f"No pod{where} waits for a node; {_count(said.placed, 'pod')} have one.")
    else:
        verb = "waits" if said.waiting == 1 else "wait"
        console.print(
            f"[bold]{said.waiting}[/] of {_count(total, 'pod')}{where} {verb} for a node; "
            f"there are {_count(said.nodes, 'node')}"
        )
        if wide:
            _each(console, said.causes)
        else:
            _causes(console, said.causes, top)
    _notes(console, said.notes)


def show_workload(
    console: Console, said: WorkloadExplanation, *, top: int, wide: bool = False
) -> None:
    """Print why pods of a workload wait, each of them if `wide`, and where others are."""
    console.print(
        f"[bold]{said.kind.lower()} {escape(said.namespace)}/{escape(said.name)}[/]: "
        f"{said.waiting} of {_count(said.waiting + said.placed, 'pod')} "
        f"{'waits' if said.waiting == 1 else 'wait'} for a node"
    )
    if wide:
        _each(console, said.causes)
    else:
        _causes(console, said.causes, top, is_of_workload=True)
    if said.nodes:
        table = start_table(console, f"{_count(said.placed, 'pod')} on nodes")
        table.add_column("pods", justify="right")
        table.add_column("node", no_wrap=True)
        for each in said.nodes[:top]:
            table.add_row(str(each.pods), escape(each.node))
        console.print(table)
        if len(said.nodes) > top:
            console.print(f"[dim]… and {len(said.nodes) - top} more nodes[/]")
    _notes(console, said.notes)


def _causes(
    console: Console, causes: Sequence[WaitingCause], top: int, *, is_of_workload: bool = False
) -> None:
    if not causes:
        return
    console.print("\n[bold]pods  cause[/]")
    for each in causes[:top]:
        console.print(
            f"{each.pods:4}  {'' if each.outcome == 'Unschedulable' else f'{each.outcome}: '}"
            f"{escape(each.text)}",
            soft_wrap=True,
        )
        if not is_of_workload:
            console.print(f"        {escape(_workloads(each))}", soft_wrap=True)
        if each.workloads[0].kind != "Pod" or each.pods > 1:
            console.print(f"        [dim]for example {escape(each.example)}[/]", soft_wrap=True)
        for line in _numbers(each):
            console.print(f"          [dim]{escape(line)}[/]", soft_wrap=True)
    if len(causes) > top:
        pods = sum(each.pods for each in causes[top:])
        console.print(f"[dim]… and {len(causes) - top} more causes, of {_count(pods, 'pod')}[/]")
    stuck = [each.example for each in causes if each.outcome not in ("Schedulable", "Nominated")]
    if stuck:
        console.print(f"\n[dim]kubesched explain pod {escape(stuck[0])} says what would help[/]")


def _each(console: Console, causes: Sequence[WaitingCause]) -> None:
    if not causes:
        return
    table = start_table(console, "Waiting")
    for title in ("pod", "outcome", "cause"):
        table.add_column(title, no_wrap=True)
    for cause in causes:
        for name in cause.names:
            table.add_row(*map(escape, (name, cause.outcome, cause.text)))
    console.print(table)


def _workloads(cause: WaitingCause) -> str:
    return listed(
        f"{each.kind} {each.namespace}/{each.name}"
        + ("" if each.kind == "Pod" else f" ({_count(each.pods, 'pod')})")
        for each in cause.workloads
    )


def _numbers(cause: WaitingCause) -> Iterator[str]:
    """Return the numbers and names behind a cause: the closest node of each reason."""
    for reason in cause.pod_reasons:
        yield from (each.text for each in reason.details[:_NUMBERS])
    if cause.pod_reasons:
        return
    # The reasons that the cause names, before those that other filters would have.
    told = [each for each in cause.reasons if each.details]
    told.sort(key=lambda each: each.text not in cause.text)
    for count in told[:_NUMBERS]:
        first = next(detail_lines(count.details[:1], 1))
        more = len(count.details) - 1
        yield f"{count.text}: {first}" + (f", and {more} more" if more else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _notes(console: Console, notes: Sequence[str]) -> None:
    for note in notes:
        console.print(f"[dim]Note: {escape(note)}[/]")
