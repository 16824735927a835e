"""``kubesched simulate run``: arrivals and departures of a day, in seconds."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kubesched.cli import cluster_source
from kubesched.cli.printing import pod_names, show
from kubesched.cli.simulating import Kinds, add_kind, duration, tell

if TYPE_CHECKING:
    from kubesched.simulate.trace import Script
    from kubesched.snapshot.contents import Snapshot

_TRACES = """\
a trace is one JSON or YAML object a line, or CSV with the same fields:
  {"time": 0, "template": "web", "duration": "10m"}
  {"time": "5m", "pod": {"spec": {…}}, "duration": 600, "count": 3}
  {"time": "10m", "template": "w", "count": 8, "gang": {"minCount": 6}}
  {"time": "1h", "add": 5, "like": "node-7"}
  {"time": "2h", "lose": "node-3", "for": "30m"}
or a workload with rates, from which one is made by chance (--seed):
  kind: Workload
  duration: 24h
  templates:
  - name: web
    arrivals: {perHour: 600, pattern: diurnal, peakAt: 14h, swing: 0.8}
    lifetime: {exponential: 30m}
    pod: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}
"""


def add_kind_of_simulation(kinds: Kinds) -> None:
    """Add the command."""
    text = "let pods come and go in virtual time: a day in seconds"
    parser = add_kind(kinds, "run", text, _run, epilog=_TRACES)
    parser.add_argument("trace", type=Path, metavar="TRACE", help="what happens, and when")
    add_run_flags(parser)


def add_run_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a run, single or in a sweep."""
    group = parser.add_argument_group("the run")
    group.add_argument(
        "--template",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="manifest of pods that the trace calls by name; may be repeated",
    )
    group.add_argument(
        "--until",
        type=duration,
        metavar="DURATION",
        help="end it then (default: the workload's duration, or when nothing is to happen)",
    )
    group.add_argument(
        "--binding-time",
        type=duration,
        default=0.0,
        metavar="DURATION",
        help="from decision to binding (default: 0s)",
    )
    group.add_argument(
        "--termination-time",
        type=duration,
        default=0.0,
        metavar="DURATION",
        help="from a pod's eviction to its end (default: 0s)",
    )
    group.add_argument(
        "--in-line",
        action="store_true",
        help="try only the first of pods that are alike again: quicker where thousands wait, "
        "but not what would happen, waits in particular",
    )


def read_script(flags: argparse.Namespace, snapshot: Snapshot) -> Script:
    """Read the trace or workload."""
    from kubesched.simulate import trace  # noqa: PLC0415 (costs time to import)
    from kubesched.simulate.casting import Casting  # noqa: PLC0415

    casting = Casting(snapshot)
    for path in flags.template:
        casting.read_template(path)
    return trace.read_script(flags.trace, casting)


@contextmanager
def _progress(until_s: float | None) -> Iterator[Callable[[float, int], None]]:
    """Show the virtual time that has passed on a terminal, as long as it lasts."""
    from rich.console import Console  # noqa: PLC0415 (costs time to import)
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

    from kubesched.simulate.run_table import duration as duration_text  # noqa: PLC0415

    columns = BarColumn(), TextColumn("{task.description}")
    console = Console(stderr=True)
    is_quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=is_quiet) as bar:
        task = bar.add_task("", total=until_s)

        def tell(seconds: float, waiting: int) -> None:
            end = f" of {duration_text(until_s)}" if until_s else ""
            text = f"{duration_text(seconds)}{end}, {waiting} pods wait"
            bar.update(task, completed=seconds, description=text)

        yield tell


def _run(flags: argparse.Namespace) -> int:
    from msgspec.structs import replace  # noqa: PLC0415

    from kubesched.simulate import run_table  # noqa: PLC0415
    from kubesched.simulate.playing import Conditions  # noqa: PLC0415
    from kubesched.simulate.running import run  # noqa: PLC0415
    from kubesched.simulate.simulated_cluster import Delays  # noqa: PLC0415

    gates = cluster_source.read_gates(flags)
    registry = cluster_source.read_registry(flags)
    config = cluster_source.read_configuration(flags.config, gates, registry)
    snapshot = cluster_source.read_snapshot(flags)
    script = read_script(flags, snapshot)
    conditions = Conditions(
        snapshot=snapshot,
        config=config,
        gates=gates,
        registry=registry,
        seed=flags.seed,
        delays=Delays(binding_s=flags.binding_time, termination_s=flags.termination_time),
        until_s=flags.until,
        in_line=flags.in_line,
    )
    started = time.perf_counter()
    with _progress(conditions.until_s or script.until_s) as progress:
        said = run(replace(conditions, progress=progress), script)
    took_s = time.perf_counter() - started
    tell(said.notes)
    return show(
        flags,
        said,
        lambda console, top, _wide: run_table.show_run(console, said, took_s=took_s, top=top),
        pod_names(each.pod for each in said.waiting),
    )
