"""The answer to "do these pods fit?" as text for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from kubesched.simulate.places import folded
from kubesched.simulate.report import Applied, AppliedWorkload, NodesOfPods, PreemptedPod
from kubesched.simulate.table import counted, show_left, show_more, start_table


def show_applied(console: Console, said: Applied, *, top: int, wide: bool = False) -> None:
    """Print whether pods fit, where they go, who has to go, and why not all fit."""
    console.print(_answer(said))
    for workload in said.workloads:
        console.print(f"  {escape(_described(workload, alone=len(said.workloads) == 1))}")
    if wide:
        _show_each(console, said)
    else:
        _show_places(console, said.places, top=top)
    _show_preempted(console, said.preempted, top=top, wide=wide)
    show_left(console, said.left, top=top, wide=wide)


def _answer(said: Applied) -> str:
    if not said.pods:
        return "[bold]yes[/]: no more pods are asked for than there are"
    if said.fits:
        all_of = "the pod fits" if said.pods == 1 else f"all {said.pods} pods fit"
        return f"[bold green]yes[/]: {all_of}{_price(said)}"
    return f"[bold red]no[/]: {said.placed} of {counted(said.pods, 'pod')} fit{_price(said)}"


def _price(said: Applied) -> str:
    victims = len(said.preempted)
    if not victims:
        return ""
    left = sum(not each.now for each in said.preempted)
    fate = f", {left} of which find no other node" if left else ""
    return f", {counted(victims, 'pod')} preempted for that{fate}"


def _described(workload: AppliedWorkload, *, alone: bool) -> str:
    title = f"{workload.kind.lower()} {workload.namespace}/{workload.name}"
    if workload.existing:
        asked = f"{workload.more} more: {workload.asked} asked for, {workload.existing} are there"
    else:
        asked = f"{workload.more} asked for"
    fit = "" if alone else f"; {workload.placed} fit"
    return f"{title}: {asked}{fit}"


def _show_places(console: Console, places: Sequence[NodesOfPods], *, top: int) -> None:
    if not places:
        return
    pools, zones = any(each.pool for each in places), any(each.zone for each in places)
    columns = [*(["pool"] if pools else []), *(["zone"] if zones else [])]
    table = start_table(console, "Where they go", *columns, ">pods", ">nodes", "each", "on")
    for place in places[:top]:
        row = [*([place.pool or "-"] if pools else []), *([place.zone or "-"] if zones else [])]
        row += [str(place.pods), str(len(place.nodes)), _each(place), folded(place.nodes)]
        table.add_row(*map(escape, row))
    console.print(table)
    show_more(console, len(places), top)


def _each(place: NodesOfPods) -> str:
    fewest, most = min(place.nodes.values()), max(place.nodes.values())
    return str(most) if fewest == most else f"{fewest} to {most}"


def _show_each(console: Console, said: Applied) -> None:
    if not said.placements:
        return
    where = {node: each for each in said.places for node in each.nodes}
    table = start_table(console, "Where they go", "pod", "node", "pool", "zone")
    for pod, node in said.placements.items():
        place = where[node]
        table.add_row(*map(escape, (pod, node, place.pool or "-", place.zone or "-")))
    console.print(table)


def _show_preempted(
    console: Console, preempted: Sequence[PreemptedPod], *, top: int, wide: bool
) -> None:
    if not preempted:
        return
    if wide:
        columns = ("pod", ">priority", "from", "for", "violates budget", "afterwards")
        table = start_table(console, "Preempted", *columns)
        for each in preempted:
            afterwards = f"on {each.now}" if each.now else "waiting"
            cells = (each.pod, str(each.priority), each.node, each.preemptor, each.budget or "-")
            table.add_row(*map(escape, (*cells, afterwards)))
        console.print(table)
        return
    alike: dict[tuple[str, int, str], list[PreemptedPod]] = {}
    for each in preempted:
        alike.setdefault((each.workload or each.pod, each.priority, each.budget), []).append(each)
    columns = (">pods", "of", ">priority", "from", "violates budget", "afterwards")
    table = start_table(console, "Preempted", *columns)
    for (title, priority, budget), group in list(alike.items())[:top]:
        row = (str(len(group)), title, str(priority), folded(each.node for each in group))
        table.add_row(*map(escape, (*row, budget or "-", _fate(group))))
    console.print(table)
    show_more(console, len(alike), top)


def _fate(group: Sequence[PreemptedPod]) -> str:
    counts = Counter(bool(each.now) for each in group)
    if not counts[True]:
        return "waiting"
    if not counts[False]:
        return f"on {folded(each.now for each in group)}"
    return f"{counts[True]} placed again, {counts[False]} waiting"
