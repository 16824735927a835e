"""``kubesched ui``: the web page for a live cluster, a snapshot, manifests or a recording."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kubesched import logs
from kubesched.cli import cluster_source, running
from kubesched.cli.parsing import Parser, port
from kubesched.errors import UsageError

if TYPE_CHECKING:
    from kubesched.web.living_world import Rules
    from kubesched.web.source import Source

_EXAMPLES = """\
examples:
  kubesched ui                                  the current cluster, as it goes
  kubesched ui --snapshot cluster.gz            a cluster as it was
  kubesched ui --manifests cluster/             a cluster that is nothing but files
  kubesched ui --recording run.rec              a scheduler's recording, at any moment of it
"""


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "ui",
        help="show a cluster, a snapshot or a recording in a browser",
        description="Serves a web page on this machine: nodes, pods that wait and why, what would "
        "help, and what if. Only users with the printed address can see it. Never writes to the "
        "cluster.",
        epilog=_EXAMPLES,
    )
    cluster_source.add_source(parser)
    parser.add_argument(
        "--recording", type=Path, metavar="FILE", help="a file that 'kube-scheduler --record' wrote"
    )
    cluster_source.add_configuration(parser)
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE[:CLASS]",
        help="Python file with plugins that the configuration may enable; may be repeated",
    )
    parser.add_argument(
        "--port", type=port, default=0, help="port of the page (default: any free one)"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.set_defaults(run=run)


def run(flags: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    logs.configure(logs.LoggingOptions(verbosity=logs.ERRORS_ONLY))
    named = flags.snapshot or flags.manifests or cluster_source.names_access(flags)
    if flags.recording and named:
        raise UsageError("--recording and other sources exclude each other: name one")
    if flags.recording:
        return running.run(lambda: _serve(flags, _recorded(flags)))
    source = None if _is_live(flags) else _still(flags)
    return running.run(lambda: _serve(flags, source))


def _recorded(flags: argparse.Namespace) -> Source:
    """Return a recording; its own configuration counts unless another one is given."""
    from kubesched.cli.found_plugins import found_plugins  # noqa: PLC0415
    from kubesched.recording.reader import Recording  # noqa: PLC0415
    from kubesched.web.recording_source import RecordingSource  # noqa: PLC0415

    recording = Recording.open(flags.recording)
    config = _rules(flags).config if flags.config else None
    registry = found_plugins(tuple(flags.plugin))
    return RecordingSource(recording, registry=registry, config=config)


def _is_live(flags: argparse.Namespace) -> bool:
    return not (flags.snapshot or flags.manifests)


def _rules(flags: argparse.Namespace) -> Rules:
    from kubesched.cli.found_plugins import found_plugins  # noqa: PLC0415 (costs time to import)
    from kubesched.plugin_loading import check_arguments  # noqa: PLC0415
    from kubesched.web.living_world import Rules  # noqa: PLC0415

    gates = cluster_source.read_gates(flags)
    registry = found_plugins(tuple(flags.plugin))
    config = cluster_source.read_configuration(flags.config, gates)
    check_arguments(config.profiles, registry)
    return Rules(config, gates, registry)


def _still(flags: argparse.Namespace) -> Source:
    """Return a snapshot or manifests."""
    from kubesched.snapshot.world import World  # noqa: PLC0415
    from kubesched.web.source import SnapshotSource  # noqa: PLC0415
    from kubesched.web.world_state import WorldState  # noqa: PLC0415

    rules = _rules(flags)
    snapshot = cluster_source.read_snapshot(flags)
    world = World.of_snapshot(snapshot, rules.config, rules.gates, registry=rules.registry)
    taken = flags.snapshot.stat().st_mtime if flags.snapshot else datetime.now(UTC).timestamp()
    return SnapshotSource(
        WorldState(world, snapshot.priority_classes),
        title=snapshot.source,
        taken_at=taken,
        scheduler_names=world.frameworks,
    )


async def _serve(flags: argparse.Namespace, source: Source | None) -> None:
    from kubesched.web.local import LocalServer  # noqa: PLC0415
    from kubesched.web.page import WebPage  # noqa: PLC0415

    async with contextlib.AsyncExitStack() as open_until_the_end:
        if source is None:
            source = await open_until_the_end.enter_async_context(_watched(flags))
        server = LocalServer(WebPage(source), port=flags.port)
        await open_until_the_end.enter_async_context(server)
        print(f"The page is at\n\n  {server.url}\n\nEnd it with Ctrl-C.", flush=True)
        if not flags.no_browser and _has_screen():
            open_until_the_end.enter_context(_browser(server.url))
        await asyncio.Event().wait()


@asynccontextmanager
async def _watched(flags: argparse.Namespace) -> AsyncIterator[Source]:
    """Watch a live cluster; yields once it was listed."""
    from kubesched.clock import RealClock  # noqa: PLC0415
    from kubesched.web.watched_source import watched_source  # noqa: PLC0415

    access = cluster_source.access(flags)
    watched, source = watched_source(access, _rules(flags), clock=RealClock())
    print(f"Listing {access.server.url} …", file=sys.stderr, flush=True)
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watched.run())
        # If it cannot be watched, the task group raises the error here.
        await watched.synced.wait()
        yield source
        watching.cancel()


def _has_screen() -> bool:
    """Tell whether there is a display for a browser."""
    if not sys.stdout.isatty():
        return False
    return sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))


@contextlib.contextmanager
def _browser(url: str) -> Iterator[None]:
    """Open a browser through a file: other users of the machine can read a command line."""
    with tempfile.TemporaryDirectory(prefix="kubesched-ui-") as folder:
        path = Path(folder) / "open.html"
        path.touch(mode=0o600)
        path.write_text(f'<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={url}">')
        webbrowser.open(path.as_uri())
        yield
