"""The ``kubesched`` command: everything that kube-scheduler does not have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from kubesched import KUBERNETES_VERSION, __version__
from kubesched.cli import bench, config, demo, explain, replay, shadow, simulate, snapshot, ui
from kubesched.cli.parsing import Parser
from kubesched.errors import KubeschedError


def make_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="kubesched",
        description="kube-scheduler in Python. The scheduler itself is the kube-scheduler command.",
        allow_abbrev=False,
    )
    version = f"kubesched {__version__} (Kubernetes {KUBERNETES_VERSION})"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo.add_command(commands)
    bench.add_command(commands)
    config.add_command(commands)
    explain.add_command(commands)
    replay.add_command(commands)
    simulate.add_command(commands)
    snapshot.add_command(commands)
    shadow.add_command(commands)
    ui.add_command(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    try:
        flags = make_parser().parse_args(sys.argv[1:] if arguments is None else arguments)
        run: Callable[[argparse.Namespace], int] = flags.run
        return run(flags)
    except KubeschedError as refused:
        print(f"Error: {refused}", file=sys.stderr)
        return refused.exit_code
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
