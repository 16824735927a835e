"""``kubesched bench``: side by side with kube-scheduler, or the engine alone."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kubesched import logs, output_file
from kubesched.cli import running
from kubesched.cli.parsing import Parser, add_output, positive
from kubesched.errors import UsageError

if TYPE_CHECKING:
    from kubesched.bench.operations import BenchWorkload
    from kubesched.bench.results import BenchReport
    from kubesched.bench.runner import Plan, Session

DEFAULT_WORKLOADS = ("SchedulingBasic",)

_EXAMPLES = """\
examples:
  kubesched bench                                     SchedulingBasic, small, all schedulers
  kubesched bench --list                              the workloads
  kubesched bench families --full --rounds 3          scheduler_perf's families at their own sizes
  kubesched bench pending --nodes 5000 --pods 3000 --precreate
  kubesched bench gangs --full                        500 gangs of 8, 20 of 256, on 1,000 nodes
  kubesched bench --config .../misc/performance-config.yaml --test SchedulingBasic --workload 5Nodes
  kubesched bench --schedulers ours,old=/opt/kube-scheduler-1.35
  kubesched bench --decisions --full                  decisions per second of the engine alone
"""


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "bench",
        help="measure schedulers side by side",
        description="Runs schedulers through the same workloads on the same control plane, in "
        "turns, and compares them; kube-scheduler, etcd and kube-apiserver are those of "
        "'make envtest'.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="names, or groups")
    parser.add_argument("--list", action="store_true", help="list the workloads and exit")
    _add_size(parser)
    _add_schedulers(parser)
    _add_files(parser)
    _add_decisions(parser)
    parser.set_defaults(run=run)


def _add_size(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=positive, metavar="N", help="how many nodes")
    parser.add_argument("--pods", type=positive, metavar="N", help="how many pods are measured")
    parser.add_argument(
        "--full", action="store_true", help="at the sizes of scheduler_perf's thresholds"
    )
    parser.add_argument("--rounds", type=positive, default=1, metavar="N", help="how often")
    parser.add_argument(
        "--precreate",
        action="store_true",
        help="create the pods before the scheduler starts, and time from the first one bound",
    )
    parser.add_argument(
        "--timeout", type=positive, default=600, metavar="S", help="longest wait for pods"
    )


def _add_schedulers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--schedulers",
        default="ours,kube-scheduler,null,null-events",
        metavar="LIST",
        help="of ours, kube-scheduler, null, null-events, /path/to/binary, name=/path/to/binary",
    )
    parser.add_argument(
        "--apiserver", choices=("real", "embedded"), default="real", help="which API server"
    )
    parser.add_argument(
        "--qps", type=float, default=5000.0, metavar="N", help="requests a second of each scheduler"
    )
    parser.add_argument(
        "--burst", type=positive, default=10_000, metavar="N", help="requests at once"
    )
    parser.add_argument(
        "--percentage-of-nodes-to-score",
        type=int,
        choices=range(101),
        metavar="0-100",
        help="for all schedulers (default: each one's own: all nodes for ours)",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="a performance-config.yaml of scheduler_perf"
    )
    parser.add_argument("--test", default="*", metavar="NAME", help="test in it, may hold *")
    parser.add_argument("--workload", default="*", metavar="NAME", help="workload, may hold *")
    add_output(parser, "table", "json")
    parser.add_argument(
        "--results", type=Path, metavar="DIR", help="write the report (JSON) and a chart (SVG) here"
    )


def _add_decisions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--decisions", action="store_true", help="the engine alone: no API server, one process"
    )
    parser.add_argument(
        "--existing", type=int, metavar="N", help="pods on the nodes already (default: ten a node)"
    )


def run(flags: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    if flags.list:
        return _list(flags)
    if flags.results:
        # Fail early on what would otherwise fail after an hour.
        output_file.make_folder(flags.results)
    if flags.decisions:
        try:
            return _decisions(flags)
        except KeyboardInterrupt:
            print("Interrupted: nothing is reported.", file=sys.stderr)
            return 130
    logs.configure(logs.LoggingOptions(verbosity=logs.ERRORS_ONLY))
    from kubesched.bench.runner import Session  # noqa: PLC0415  costs time to import

    session = Session(_plan(flags))
    finished = False

    async def measure() -> None:
        nonlocal finished
        await _measure(session)
        finished = True

    code = running.run(measure)
    report = session.report
    if report.runs:
        _show(report, flags)
    if not finished and not code:
        what = "the report has what was over" if report.runs else "nothing is reported"
        print(f"Interrupted: every process was ended, {what}.", file=sys.stderr)
        return 130
    return code or (1 if report.failures else 0)


async def _measure(session: Session) -> None:
    from rich.console import Console  # noqa: PLC0415

    from kubesched.bench.progress import ConsoleProgress  # noqa: PLC0415

    with ConsoleProgress(Console(stderr=True)) as progress:
        await session.run(progress)


def _show(report: BenchReport, flags: argparse.Namespace) -> None:
    from kubesched.bench import report as reporting  # noqa: PLC0415
    from kubesched.cli.console import stdout_console  # noqa: PLC0415

    if flags.output == "json":
        sys.stdout.write(report.to_json().decode())
    else:
        console = stdout_console()
        console.width = max(console.width, reporting.width_of(report))
        reporting.show(console, report)
    if flags.results:
        for path in reporting.write(report, flags.results):
            print(f"written: {path}", file=sys.stderr)


def _plan(flags: argparse.Namespace) -> Plan:
    from kubesched.bench import assets, schedulers  # noqa: PLC0415
    from kubesched.bench.runner import Plan  # noqa: PLC0415

    if flags.qps <= 0:
        raise UsageError("--qps: without a limit there is nothing to set alike; say a large one")
    binaries = assets.folder()
    if flags.apiserver == "real":
        assets.require(assets.CONTROL_PLANE, binaries)
    percentage = flags.percentage_of_nodes_to_score
    return Plan(
        workloads=_workloads(flags),
        candidates=schedulers.parse(flags.schedulers, binaries, percentage),
        settings=schedulers.Settings(
            qps=flags.qps, burst=flags.burst, percentage_of_nodes_to_score=percentage
        ),
        apiserver=flags.apiserver,
        binaries=binaries,
        rounds=flags.rounds,
        precreate=flags.precreate,
        timeout_s=flags.timeout,
    )


def _workloads(flags: argparse.Namespace) -> list[BenchWorkload]:
    from kubesched.bench import performance_config, workloads  # noqa: PLC0415

    if flags.config is None:
        if flags.test != "*" or flags.workload != "*":
            raise UsageError("--test and --workload choose from a file: say which with --config")
        found = workloads.named(flags.workloads or list(DEFAULT_WORKLOADS))
        if flags.full:
            return [each.workload(flags.nodes, flags.pods) for each in found]
        return [each.quick(flags.nodes, flags.pods) for each in found]
    if flags.workloads:
        raise UsageError("with --config, choose with --test and --workload instead of by name")
    overrides = {
        name: value
        for name, value in (
            (performance_config.NODES, flags.nodes),
            (performance_config.PODS, flags.pods),
        )
        if value is not None
    }
    cases = performance_config.read(flags.config)
    return performance_config.select(
        cases, test=flags.test, workload=flags.workload, overrides=overrides
    )


def _list(flags: argparse.Namespace) -> int:
    from kubesched.bench import performance_config, workloads  # noqa: PLC0415

    if flags.config is not None:
        for case in performance_config.read(flags.config):
            for entry in case.entries:
                labels = f"  ({', '.join(sorted(entry.labels))})" if entry.labels else ""
                print(f"{case.name}/{entry.name}{labels}")
        return 0
    width = max(map(len, workloads.BUILT_IN))
    for each in workloads.BUILT_IN.values():
        size = f"{each.nodes} nodes, {each.pods} pods"
        print(f"{each.name:<{width}}  {size:<24}  {each.summary}")
    for name, members in workloads.GROUPS.items():
        print(f"{name:<{width}}  {len(members)} workloads")
    return 0


def _decisions(flags: argparse.Namespace) -> int:
    from kubesched.bench import decisions_report  # noqa: PLC0415

    logs.configure(logs.LoggingOptions(verbosity=logs.ERRORS_ONLY))
    return decisions_report.run(
        nodes=flags.nodes,
        existing=flags.existing,
        pods=flags.pods,
        rounds=flags.rounds,
        full=flags.full,
        names=flags.workloads,
        as_json=flags.output == "json",
        results=flags.results,
    )
