"""``kubesched replay``: repeats recorded decisions, and compares."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kubesched.cli import cluster_source
from kubesched.cli.parsing import Parser, add_output, positive
from kubesched.cli.printing import encoded
from kubesched.errors import ObjectError, UsageError

if TYPE_CHECKING:
    from kubesched.recording.reader import Recording
    from kubesched.replay.replaying import ReplayOptions
    from kubesched.replay.report import Replayed

_EXAMPLES = """\
examples:
  kube-scheduler --record /var/lib/kubesched/run …           record
  kubesched replay /var/lib/kubesched/run                    decide all of it again: the same?
  kubesched replay run --until 5000                          … up to an entry
  kubesched replay run --config new.yaml                     what would have been decided otherwise?
  kubesched replay run --config new.yaml --follow own        … and where would that have led?
"""


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "replay",
        help="decide again what was recorded, and compare",
        description="Goes through a recording that kube-scheduler --record made, with the files "
        "of the same process beside it (FILE.1, …), and makes every decision again. Ends with 0 "
        "if all are the same, and with 1 if not.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the recording")
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="decide under this KubeSchedulerConfiguration instead of the recorded one",
    )
    parser.add_argument(
        "--follow",
        choices=("recorded", "own"),
        default="recorded",
        help="with --config: pods are where they were then, and each decision is judged for itself "
        "(recorded), or where they are put now (own)",
    )
    parser.add_argument("--until", type=_entry, metavar="ENTRY", help="stop before this entry")
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE[:CLASS]",
        help="Python file with plugins, instead of those that the scheduler was given",
    )
    parser.add_argument("--top", type=positive, default=10, metavar="N", help="rows to show")
    add_output(parser, "table", "json", "yaml")
    parser.set_defaults(run=run)


def _entry(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of an entry")
    return int(text)


def run(flags: argparse.Namespace) -> int:
    """Run the command; return the exit code: 1 if a decision differs."""
    from kubesched.recording.reader import Recording  # noqa: PLC0415 (costs time to import)

    if flags.follow == "own" and flags.config is None:
        raise UsageError("--follow own needs --config: the same decisions lead to the same place")
    recording = Recording.open(flags.file)
    for note in recording.notes:
        print(f"Note: {note}", file=sys.stderr)
    _refuse_damage(flags, recording)
    said = _replay(flags, recording)
    if said.cut_off:
        print(
            f"Note: {flags.file} is cut off, or still being written: "
            f"replayed up to its last whole entry",
            file=sys.stderr,
        )
    _show(flags, said)
    return 1 if said.different else 0


def _refuse_damage(flags: argparse.Namespace, recording: Recording) -> None:
    if recording.damage and (flags.until is None or flags.until > recording.entries):
        raise ObjectError(
            f"{flags.file} is damaged after entry {recording.entries}: {recording.damage}; "
            f"'--until {recording.entries}' replays what comes before"
        )


def _replay(flags: argparse.Namespace, recording: Recording) -> Replayed:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    from kubesched.replay.replaying import Replay  # noqa: PLC0415

    options = _options(flags, recording)
    total = recording.entries if flags.until is None else min(flags.until, recording.entries)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("replaying", total=total)
        return Replay(
            recording, options, progress=lambda entries: bar.update(task, completed=entries)
        ).run()


def _options(flags: argparse.Namespace, recording: Recording) -> ReplayOptions:
    from kubesched.cli.found_plugins import found_plugins  # noqa: PLC0415
    from kubesched.replay.deciding import gates_of  # noqa: PLC0415
    from kubesched.replay.replaying import ReplayOptions  # noqa: PLC0415

    config = None
    if flags.config is not None:
        gates = gates_of(recording.header.gates)
        config = cluster_source.read_configuration(flags.config, gates)
    plugins = tuple(flags.plugin) or recording.header.plugin_files
    return ReplayOptions(
        config=config, follow=flags.follow, registry=found_plugins(plugins), until=flags.until
    )


def _show(flags: argparse.Namespace, said: Replayed) -> None:
    if flags.output != "table":
        sys.stdout.write(encoded(said, flags.output))
        return
    from kubesched.cli.console import stdout_console  # noqa: PLC0415
    from kubesched.replay import table  # noqa: PLC0415

    table.show(stdout_console(), said, top=flags.top)
