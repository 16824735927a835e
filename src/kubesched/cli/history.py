"""``kubesched history``: what happened to a pod, and what the scheduler knew, from a recording."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kubesched.cli.parsing import Parser, add_output
from kubesched.cli.printing import encoded
from kubesched.errors import UsageError

if TYPE_CHECKING:
    from kubesched.history.report import PodHistory

_EXAMPLES = """\
examples:
  kube-scheduler --record /var/lib/kubesched/run …        record
  kubesched history shop/web-1 --recording run            what happened to it, and why
  kubesched history web-1 -n shop --recording run -o json for programs
"""


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "history",
        help="tell what happened to a pod in a recording, and what was known then",
        description="Reads a recording that kube-scheduler --record made, with the files of the "
        "same process beside it (FILE.1, …), and prints every attempt, move between queues, "
        "preemption and binding of a pod: the nodes that were rejected and why, the scores of the "
        "chosen node and of the next one, claims and groups, as they were then.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("pod", nargs="+", metavar="pod NAMESPACE/NAME", help="which pod")
    parser.add_argument(
        "-n", "--namespace", default="default", metavar="NAME", help="its namespace"
    )
    parser.add_argument(
        "--recording",
        type=Path,
        required=True,
        metavar="FILE",
        help="a file that 'kube-scheduler --record' wrote",
    )
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE[:CLASS]",
        help="Python file with plugins, instead of those that the scheduler was given",
    )
    add_output(parser, "table", "json", "yaml")
    parser.set_defaults(run=run)


def run(flags: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    namespace, name = _target(flags)
    said = _tell(flags, namespace, name)
    if flags.output != "table":
        sys.stdout.write(encoded(said, flags.output))
        return 0
    from kubesched.cli.console import stdout_console  # noqa: PLC0415 (costs time to import)
    from kubesched.history import table  # noqa: PLC0415

    table.show(stdout_console(), said)
    return 0


def _target(flags: argparse.Namespace) -> tuple[str, str]:
    """Return namespace and name."""
    words = flags.pod[1:] if flags.pod[0] in ("pod", "pods", "po") else flags.pod
    if len(words) != 1:
        raise UsageError("name one pod, as in 'kubesched history NAMESPACE/NAME'")
    namespace, slash, name = str(words[0]).removeprefix("pod/").partition("/")
    return (namespace, name) if slash else (flags.namespace, namespace)


def _tell(flags: argparse.Namespace, namespace: str, name: str) -> PodHistory:
    from rich.console import Console  # noqa: PLC0415 (costs time to import)
    from rich.progress import Progress  # noqa: PLC0415

    from kubesched.cli.found_plugins import found_plugins  # noqa: PLC0415
    from kubesched.history import mentions  # noqa: PLC0415
    from kubesched.history.telling import PodHistorian  # noqa: PLC0415
    from kubesched.recording.reader import Recording  # noqa: PLC0415

    given = found_plugins(tuple(flags.plugin)) if flags.plugin else None
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        opening = bar.add_task("opening", total=None)
        recording = Recording.open(flags.recording)
        bar.update(opening, total=1, completed=1)
        searching = bar.add_task("searching", total=recording.entries)
        found = mentions.find(
            recording, namespace, name, progress=lambda done: bar.update(searching, completed=done)
        )
        bar.update(searching, completed=recording.entries)
        following = bar.add_task("following", total=found.last)
        return PodHistorian(
            recording,
            found,
            registry=given or found_plugins(recording.header.plugin_files),
            progress=lambda done: bar.update(following, completed=done),
        ).tell(namespace, name)
