"""``kubesched simulate sweep``: the same simulation under many configurations and seeds."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kubesched.cli import cluster_source
from kubesched.cli.parsing import positive
from kubesched.cli.printing import show
from kubesched.cli.simulate_run import add_run_flags, read_script
from kubesched.cli.simulating import Kinds, add_kind, tell
from kubesched.errors import UsageError

if TYPE_CHECKING:
    from kubesched.simulate.sweeping import Payload, Result, Task
    from kubesched.simulate.variants import Variant

_PATHS = """\
--set changes a field of every configuration; several values, and several --set, are combined:
  --set NodeResourcesFit.weight=1,5,20                  weight of a plugin's scores
  --set ImageLocality.enabled=true,false                plugins to go without
  --set NodeResourcesFit.scoringStrategy.type=LeastAllocated,MostAllocated   arguments of a plugin
  --set podMaxBackoffSeconds=10,60                      a field of the configuration itself
  --set 'NodeResourcesFit.scoringStrategy.resources=[{name: cpu, weight: 1}]'
"""


def add_kind_of_simulation(kinds: Kinds) -> None:
    """Add the command."""
    text = "compare many configurations, each with many seeds"
    parser = add_kind(kinds, "sweep", text, _run, epilog=_PATHS, has_objects=False)
    parser.add_argument(
        "trace",
        nargs="?",
        type=Path,
        metavar="TRACE",
        help="what happens, as for 'simulate run' (default: pods that are pending are placed)",
    )
    parser.add_argument("--all", action="store_true", help="place all pods anew that may move")
    parser.add_argument(
        "--variant",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="another KubeSchedulerConfiguration to compare; may be repeated",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="PATH=A,B,…",
        help="a field and its values to compare; may be repeated",
    )
    parser.add_argument("--seeds", type=positive, default=1, metavar="N", help="seeds to use")
    parser.add_argument(
        "--jobs", type=positive, metavar="N", help="processes (default: one a core)"
    )
    parser.add_argument("--dask", metavar="ADDRESS", help="scheduler of a Dask cluster to use")
    add_run_flags(parser)


def _run(flags: argparse.Namespace) -> int:
    from kubesched.simulate import sweep_table  # noqa: PLC0415 (costs time to import)
    from kubesched.simulate.sweeping import Sweep, summed  # noqa: PLC0415

    if flags.dask and flags.jobs:
        raise UsageError("--jobs and --dask exclude each other: a Dask cluster has its own workers")
    gates = cluster_source.read_gates(flags)
    registry = cluster_source.read_registry(flags)
    variants = _variants(flags)
    for variant in variants:
        cluster_source.check_configuration(variant.text, variant.name, gates, registry)
    payload = _payload(flags)
    seeds = range(flags.seed, flags.seed + flags.seeds)
    results = _results(flags, payload, variants, list(seeds))
    tell(dict.fromkeys(note for each in results for note in each.run.notes))
    said = Sweep(seeds=flags.seeds, variants=summed(results))
    return show(flags, said, lambda console, _top, _wide: sweep_table.show_sweep(console, said))


def _variants(flags: argparse.Namespace) -> list[Variant]:
    from kubesched.simulate import variants  # noqa: PLC0415

    first = variants.read(flags.config) if flags.config else variants.default()
    bases = [first, *(variants.read(path) for path in flags.variant)]
    return variants.combined(bases, flags.settings)


def _payload(flags: argparse.Namespace) -> Payload:
    from kubesched.simulate.simulated_cluster import Delays  # noqa: PLC0415
    from kubesched.simulate.sweeping import Payload, plugin_sources  # noqa: PLC0415

    snapshot = cluster_source.read_snapshot(flags)
    return Payload(
        snapshot=snapshot,
        script=read_script(flags, snapshot) if flags.trace else None,
        feature_gates=flags.feature_gates,
        plugins=plugin_sources(flags.plugin),
        delays=Delays(binding_s=flags.binding_time, termination_s=flags.termination_time),
        everything=flags.all,
        in_line=flags.in_line,
        until_s=flags.until,
    )


def _results(
    flags: argparse.Namespace, payload: Payload, variants: list[Variant], seeds: list[int]
) -> list[Result]:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    from kubesched.simulate.sweeping import Task  # noqa: PLC0415

    tasks: list[Task] = [
        Task(number=number, variant=variant, seed=seed)
        for number, variant in enumerate(variants)
        for seed in seeds
    ]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        shown = bar.add_task(f"{len(variants)} variants, {len(seeds)} seeds", total=len(tasks))
        return _carry_out(flags, payload, tasks, lambda: bar.advance(shown))


def _carry_out(
    flags: argparse.Namespace, payload: Payload, tasks: list[Task], progress: Callable[[], None]
) -> list[Result]:
    if flags.dask:
        from kubesched.simulate import dask_sweep  # noqa: PLC0415

        return dask_sweep.carry_out(payload, tasks, address=flags.dask, progress=progress)
    from kubesched.simulate.sweeping import carry_out  # noqa: PLC0415

    return carry_out(payload, tasks, jobs=flags.jobs, progress=progress)
