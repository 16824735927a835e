"""Reports of runs in virtual time as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from kubesched.config.durations import Duration
from kubesched.simulate.report import RunReport
from kubesched.simulate.table import show_more, show_preemptions, start_table

_BARS = "▁▂▃▄▅▆▇█"
#: Width of a line without its bars.
_BESIDE = 46


def show_run(console: Console, said: RunReport, *, took_s: float, top: int) -> None:
    """Print the report of a run."""
    console.print(
        f"[bold]{duration(said.seconds)}[/] in {took_s:.1f} s: [bold]{said.arrived}[/] pods "
        f"arrived, {said.ended} ended, [bold]{said.pending}[/] still wait; {said.placed} placements"
    )
    if said.displaced:
        victims = f", {said.victims} of them by preemption" if said.victims else ""
        console.print(f"{said.displaced} pods had to leave their node and came again{victims}")
    waits = said.waits
    if waits.pods:
        console.print(
            f"waited for a node: half at most {duration(waits.p50_s)}, 90 % {duration(waits.p90_s)}"
            f", 99 % {duration(waits.p99_s)}, the longest {duration(waits.longest_s)}"
        )
    _show_readings(console, said)
    _show_reasons(console, said, top=top)
    _show_waiting(console, said, top=top)
    show_preemptions(console, said.preemptions, title="Preemptions", top=top)


def _show_readings(console: Console, said: RunReport) -> None:
    readings = said.readings
    if len(readings) < 2:
        return
    width = max(console.width - _BESIDE, 10)
    title = f"From the beginning to the end, {duration(said.seconds)} later"
    table = start_table(console, title, "", "", ">mean", ">highest", ">at the end")
    percent: tuple[tuple[str, list[float], float], ...] = (
        ("cpu requested", [each.cpu for each in readings], said.mean_cpu),
        ("memory requested", [each.memory for each in readings], said.mean_memory),
    )
    for name, values, mean in percent:
        row = (f"{mean:.0f} %", f"{max(values):.0f} %", f"{values[-1]:.0f} %")
        table.add_row(name, sparkline(values, highest=100.0, width=width), *row)
    for name, counts in (
        ("pods on nodes", [each.pods for each in readings]),
        ("pods that wait", [each.waiting for each in readings]),
        ("nodes", [each.nodes for each in readings]),
    ):
        mean = sum(counts) / len(counts)
        row = (f"{mean:.0f}", f"{max(counts)}", f"{counts[-1]}")
        table.add_row(name, sparkline(counts, highest=max(counts), width=width), *row)
    console.print(table)


def sparkline(values: Sequence[float], *, highest: float, width: int) -> str:
    """Draw values as bars; where there are too many, each bar is the maximum of several."""
    step = max(-(-len(values) // width), 1)
    tops = [max(values[start : start + step]) for start in range(0, len(values), step)]
    if highest <= 0:
        return _BARS[0] * len(tops)
    last = len(_BARS) - 1
    return "".join(_BARS[min(max(round(top / highest * last), 0), last)] for top in tops)


def _show_reasons(console: Console, said: RunReport, *, top: int) -> None:
    if not said.reasons:
        return
    table = start_table(console, "Why pods were rejected", "reason", ">pods", ">rejections")
    for each in said.reasons[:top]:
        table.add_row(escape(each.reason), str(each.pods), str(each.refusals))
    console.print(table)


def _show_waiting(console: Console, said: RunReport, *, top: int) -> None:
    if not said.waiting:
        return
    table = start_table(console, "Still wait", "pod", ">since", ">refused", "because")
    for each in said.waiting[:top]:
        times = str(each.attempts) if each.attempts else ""
        table.add_row(
            escape(each.pod), duration(each.waited_s), times, escape(_brief(each.message))
        )
    console.print(table)
    show_more(console, len(said.waiting), top)


def _brief(message: str) -> str:
    """Return the part of a message about nodes, without preemption."""
    return message.partition(". ")[0]


def duration(seconds: float) -> str:
    """Format a duration, without fractions where it is long."""
    return str(Duration.of_seconds(round(seconds, 3 if seconds < 10 else 0)))
