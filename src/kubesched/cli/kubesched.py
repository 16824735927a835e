"""The ``kubesched`` command: everything that kube-scheduler does not have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final

from kubesched import KUBERNETES_VERSION, __version__
from kubesched.cli import (
    bench,
    completion,
    config,
    demo,
    explain,
    history,
    replay,
    shadow,
    simulate,
    snapshot,
    ui,
    version,
)
from kubesched.cli.parsing import Parser
from kubesched.errors import KubeschedError

PROGRAM: Final = "kubesched"
#: As kubectl's users call it.
KUBECTL_PLUGIN: Final = "kubectl kubesched"


def make_parser(program: str = PROGRAM) -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog=program,
        description="kube-scheduler in Python. The scheduler itself is the kube-scheduler command.",
    )
    installed = f"kubesched {__version__} (Kubernetes {KUBERNETES_VERSION})"
    parser.add_argument(
        "--version", action="version", version=installed, help="print the version and exit"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo.add_command(commands)
    bench.add_command(commands)
    config.add_command(commands)
    explain.add_command(commands)
    history.add_command(commands)
    replay.add_command(commands)
    simulate.add_command(commands)
    snapshot.add_command(commands)
    shadow.add_command(commands)
    ui.add_command(commands)
    completion.add_command(commands)
    version.add_command(commands)
    return parser


def kubectl_plugin() -> int:
    """Run ``kubectl kubesched …``."""
    return main(program=KUBECTL_PLUGIN)


def kubectl_completion() -> int:
    """Complete the words of ``kubectl kubesched …``."""
    completion.complete_for_kubectl(make_parser(PROGRAM), sys.argv[1:])
    return 0


def main(arguments: Sequence[str] | None = None, *, program: str = PROGRAM) -> int:
    """Run the command; return its exit code."""
    parser = make_parser(program)
    completion.complete(parser)
    try:
        flags = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
        run: Callable[[argparse.Namespace], int] = flags.run
        return run(flags)
    except KubeschedError as refused:
        print(f"Error: {refused}", file=sys.stderr)
        return refused.exit_code
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
