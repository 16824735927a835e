"""``kubesched explain``: why a pod is pending, and what would help."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kubesched.cli import cluster_source
from kubesched.cli.parsing import Parser, positive
from kubesched.errors import UsageError

if TYPE_CHECKING:
    from kubesched.api.core import Pod
    from kubesched.explain.report import Explanation
    from kubesched.snapshot.contents import Snapshot
    from kubesched.snapshot.world import World

_EXAMPLES = """\
examples:
  kubesched explain pod shop/web-1                    a pod of the current cluster
  kubesched explain -f pod.yaml                       a pod, or a deployment, that is not there yet
  kubesched explain pod shop/web-1 -o json            for programs
  kubesched snapshot -o cluster.gz; kubesched explain pod shop/web-1 --snapshot cluster.gz
  kubesched explain -f pod.yaml --manifests cluster/  a cluster that is nothing but files
  kubesched explain -f pod.yaml --config scheduler.yaml --plugin mine.py   with own plugins
"""


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "explain",
        help="say why a pod is pending, and what would help",
        description="Evaluates a pod on all nodes with the scheduler's own plugins: every reason "
        "of every node, all scores, what preemption would do, and the smallest changes that would "
        "place the pod. Never writes to the cluster.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pod", nargs="*", metavar="pod NAMESPACE/NAME", help="which pod")
    parser.add_argument(
        "-f", "--file", type=Path, metavar="FILE", help="manifest of a pod, or with a pod template"
    )
    parser.add_argument("-n", "--namespace", metavar="NAME", help="namespace of the pod")
    parser.add_argument("--profile", default="", metavar="NAME", help="profile to evaluate it with")
    parser.add_argument("--all", action="store_true", help="list every node, and all scores")
    parser.add_argument("--top", type=positive, default=10, metavar="N", help="rows to show (10)")
    parser.add_argument("--no-changes", action="store_true", help="do not look for what would help")
    parser.add_argument("-o", "--output", choices=("table", "json", "yaml"), default="table")
    cluster_source.add_source(parser)
    cluster_source.add_configuration(parser)
    cluster_source.add_plugins(parser)
    parser.set_defaults(run=run)


def run(flags: argparse.Namespace) -> int:
    """Run the command; return the exit code: 0 whether or not the pod fits."""
    from kubesched.explain.explaining import ExplainOptions, explain  # noqa: PLC0415 (costs time)
    from kubesched.snapshot.world import World  # noqa: PLC0415

    target = _target(flags)
    gates = cluster_source.read_gates(flags)
    registry = cluster_source.read_registry(flags)
    config = cluster_source.read_configuration(flags.config, gates, registry)
    snapshot = cluster_source.read_snapshot(flags)
    world = World.of_snapshot(snapshot, config, gates, registry=registry)
    pod = _pod(flags, target, world, snapshot)
    options = ExplainOptions(changes=not flags.no_changes, profile=flags.profile)
    _show(flags, explain(world, pod, options))
    return 0


def _target(flags: argparse.Namespace) -> str:
    """Return the name of the pod, "" if it comes from a file."""
    words = flags.pod[1:] if flags.pod[:1] in (["pod"], ["pods"], ["po"]) else flags.pod
    if flags.file and words:
        raise UsageError("a name and --file exclude each other: name one pod")
    if len(words) > 1 or (not words and not flags.file):
        raise UsageError("name one pod, as in 'kubesched explain pod NAMESPACE/NAME', or a --file")
    return str(words[0]).removeprefix("pod/") if words else ""


def _pod(flags: argparse.Namespace, target: str, world: World, snapshot: Snapshot) -> Pod:
    from kubesched.explain.explaining import find_pod  # noqa: PLC0415
    from kubesched.snapshot import manifests  # noqa: PLC0415

    if flags.file:
        namespace = cluster_source.namespace_of(flags)
        return manifests.read_pod(flags.file, snapshot.priority_classes, namespace=namespace)
    namespace, slash, name = target.partition("/")
    if not slash:
        namespace, name = cluster_source.namespace_of(flags), target
    return find_pod(world, namespace, name)


def _show(flags: argparse.Namespace, said: Explanation) -> None:
    if flags.output == "table":
        from rich.console import Console  # noqa: PLC0415 (costs time to import)

        from kubesched.explain import table  # noqa: PLC0415

        table.show(Console(highlight=False), said, top=flags.top, every_node=flags.all)
        return
    sys.stdout.write(encoded(said, flags.output))


def encoded(said: object, output: str) -> str:
    """Return structs as JSON or YAML."""
    import msgspec  # noqa: PLC0415

    if output == "json":
        return msgspec.json.format(msgspec.json.encode(said), indent=2).decode() + "\n"
    return msgspec.yaml.encode(said).decode()
