"""``kubesched snapshot``: writes a cluster's state to a file, for explain and simulate."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from kubesched import output_file
from kubesched.cli import cluster_source
from kubesched.cli.parsing import Parser


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "snapshot",
        help="write a cluster's state to a file",
        description="Lists nodes, pods and all other objects that affect scheduling, and writes "
        "them to a file for explain and simulate. Only fields that scheduling reads are kept: "
        "no environment variables, no commands. Never writes to the cluster.",
    )
    cluster_source.add_source(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="where to; - for standard output",
    )
    parser.set_defaults(run=run)


def run(flags: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    from kubesched.snapshot import files  # noqa: PLC0415 (costs time to import)

    found = cluster_source.read_snapshot(flags)
    files.write(found, flags.output, taken_at=datetime.now(UTC).isoformat(timespec="seconds"))
    listed = ", ".join(f"{count} {kind}" for kind, count in found.counts())
    to_stdout = str(flags.output) == output_file.STDOUT
    what = "snapshot" if to_stdout else flags.output
    print(f"{what}: {listed or 'an empty cluster'}", file=sys.stderr if to_stdout else sys.stdout)
    for note in found.notes:
        print(f"Note: {note}", file=sys.stderr)
    return 0
