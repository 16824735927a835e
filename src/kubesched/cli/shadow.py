"""``kubesched shadow``: what ours would decide beside the active scheduler."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from kubesched import output_file
from kubesched.cli import cluster_source
from kubesched.cli.parsing import Parser, add_output
from kubesched.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from kubesched.shadow.shadowing import Shadow

_EXAMPLES = """\
examples:
  kubesched shadow                                     every scheduler's pods, until Ctrl-C
  kubesched shadow --duration 10m --only-differences   what differs within ten minutes
  kubesched shadow --config mine.yaml -o json          what if ours were configured like this
  kubesched shadow --scheduler-name default-scheduler  the pods of one scheduler
"""


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "shadow",
        help="compare our decisions with those of the active scheduler",
        description="Watches a cluster and decides for every pod that another scheduler binds or "
        "rejects, on the state just before that. Shows where both differ, by how much and "
        "because of which plugin. Never writes to the cluster: it sends nothing but GET.",
        epilog=_EXAMPLES,
    )
    cluster_source.add_access(parser)
    parser.add_argument(
        "--scheduler-name",
        action="append",
        default=[],
        metavar="NAME",
        help="only pods of this scheduler (default: all); may be repeated",
    )
    parser.add_argument(
        "--duration", default="", metavar="TIME", help="for how long, such as 90s or 2h"
    )
    parser.add_argument("--only-differences", action="store_true", help="do not list agreement")
    add_output(parser, "text", "json")
    cluster_source.add_configuration(parser)
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE[:CLASS]",
        help="Python file with plugins that the configuration may enable; may be repeated",
    )
    parser.set_defaults(run=run)


def run(flags: argparse.Namespace) -> int:
    """Run the command; return the exit code: 0 whether or not there are differences."""
    from kubesched.cli import running  # noqa: PLC0415 (costs time to import, as do the others)
    from kubesched.cli.found_plugins import found_plugins  # noqa: PLC0415
    from kubesched.plugin_loading import check_arguments  # noqa: PLC0415
    from kubesched.shadow.lines import JsonLines, TextLines  # noqa: PLC0415
    from kubesched.shadow.shadowing import Shadow, ShadowOptions  # noqa: PLC0415

    options = ShadowOptions(
        scheduler_names=frozenset(flags.scheduler_name),
        only_differences=flags.only_differences,
        duration_s=_duration_s(flags.duration),
    )
    gates = cluster_source.read_gates(flags)
    registry = found_plugins(tuple(flags.plugin))
    config = cluster_source.read_configuration(flags.config, gates)
    check_arguments(config.profiles, registry)
    access = cluster_source.access(flags)
    lines = (JsonLines if flags.output == "json" else TextLines)(sys.stdout)

    async def watch() -> None:
        shadow = Shadow(access, config, gates, registry=registry, lines=lines, options=options)
        await shadow.run(on_ready=lambda: _begin(shadow))

    try:
        return running.run(watch)
    except BrokenPipeError:
        # The reader has closed the pipe.
        output_file.discard_stdout()
        return 0


def _begin(shadow: Shadow) -> None:
    cluster = shadow.watched.cluster
    print(
        f"watching {shadow.watched.client.access.server.url}: {len(cluster.table)} nodes, "
        f"{cluster.pod_count} pods on nodes, {len(shadow.watched.queue)} without; "
        "Ctrl-C ends it with a summary",
        file=sys.stderr,
        flush=True,
    )
    for note in shadow.watched.notes:
        print(f"Note: {note}", file=sys.stderr, flush=True)


def _duration_s(text: str) -> float | None:
    """Parse a duration to seconds, None for no end."""
    from kubesched.config.durations import Duration  # noqa: PLC0415

    if not text:
        return None
    try:
        seconds = Duration.parse(text).seconds
    except ConfigError as wrong:
        raise UsageError(f"--duration {text}: {wrong}; write it as 90s, 10m or 2h") from None
    if seconds <= 0:
        raise UsageError(f"--duration {text}: must be more than nothing")
    return seconds
