"""``kubesched explain``: why pods are pending, and what would help."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kubesched.cli import cluster_source
from kubesched.cli.parsing import Parser, add_output, positive
from kubesched.cli.printing import node_names, pod_names, show
from kubesched.errors import UsageError

if TYPE_CHECKING:
    from kubesched.api.core import Pod
    from kubesched.explain.report import Explanation, WaitingCause
    from kubesched.explain.targets import ExplainTarget
    from kubesched.snapshot.contents import Snapshot
    from kubesched.snapshot.world import World

_EXAMPLES = """\
examples:
  kubesched explain                                   every pod that waits for a node, by cause
  kubesched explain pod shop/web-1                    a pod: why it waits, and what would help
  kubesched explain pod shop/web-1 --node worker-3    why not there, or what it lost points for
  kubesched explain deploy/web -n shop                the pods of a workload; also rs, sts, ds, job
  kubesched explain podgroup/ml/train                 a group: how much of it fits where
  kubesched explain -f pod.yaml                       a pod, or a deployment, that is not there yet
  kubesched explain pod shop/web-1 -o wide            every node, in lines that are not broken
  kubesched explain -o name                           the pods that wait, one a line
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
    )
    named = parser.add_argument(
        "target",
        nargs="*",
        metavar="KIND NAME",
        help="pod, podgroup, deploy, rs, sts, ds or job; NAME or NAMESPACE/NAME (default: all pods "
        "that wait for a node)",
    )
    named.completer = _complete_kind  # type: ignore[attr-defined]
    parser.add_argument(
        "-f", "--file", type=Path, metavar="FILE", help="manifest of a pod, or with a pod template"
    )
    parser.add_argument("-n", "--namespace", metavar="NAME", help="namespace of what is named")
    parser.add_argument("--node", metavar="NAME", help="explain why the pod is not on this node")
    parser.add_argument("--profile", default="", metavar="NAME", help="profile to evaluate it with")
    parser.add_argument("--all", action="store_true", help="list every node, and all scores")
    parser.add_argument("--top", type=positive, default=10, metavar="N", help="rows to show")
    parser.add_argument("--no-changes", action="store_true", help="do not look for what would help")
    add_output(parser, "table", "wide", "name", "json", "yaml")
    cluster_source.add_source(parser)
    cluster_source.add_configuration(parser)
    cluster_source.add_plugins(parser)
    parser.set_defaults(run=run)


def _complete_kind(prefix: str, **_: object) -> list[str]:
    """Return the kinds that a word may become."""
    from kubesched.explain.targets import KIND_NAMES  # noqa: PLC0415 (costs time to import)

    return [name for name in KIND_NAMES if name.startswith(prefix)]


def run(flags: argparse.Namespace) -> int:
    """Run the command; return the exit code: 0 whether or not the pod fits."""
    from kubesched.explain.targets import POD, POD_GROUP, read_target  # noqa: PLC0415
    from kubesched.snapshot.world import World  # noqa: PLC0415

    target = read_target(flags.target)
    if flags.file and target.kind:
        raise UsageError("a name and --file exclude each other: name one pod")
    if flags.node and target.kind != POD and not flags.file:
        raise UsageError(
            "--node is for one pod: 'kubesched explain pod NAMESPACE/NAME --node NAME'"
        )
    gates = cluster_source.read_gates(flags)
    registry = cluster_source.read_registry(flags)
    config = cluster_source.read_configuration(flags.config, gates, registry)
    snapshot = cluster_source.read_snapshot_with(flags, flags.file)
    world = World.of_snapshot(snapshot, config, gates, registry=registry)
    if target.kind == POD_GROUP:
        _show_group(flags, target, world)
    elif target.is_workload:
        _show_workload(flags, target, world)
    elif target.kind == POD or flags.file:
        _show_pod(flags, _pod(flags, target, world, snapshot), world)
    else:
        _show_waiting(flags, world)
    return 0


def _namespace(flags: argparse.Namespace, target: ExplainTarget) -> str:
    return target.namespace or cluster_source.namespace_of(flags)


def _show_group(flags: argparse.Namespace, target: ExplainTarget, world: World) -> None:
    from kubesched.explain import group_table  # noqa: PLC0415
    from kubesched.explain.groups import explain_group, find_group  # noqa: PLC0415

    group = find_group(world, _namespace(flags, target), target.name)
    said = explain_group(world, group, changes=not flags.no_changes)
    show(
        flags,
        said,
        lambda console, top, wide: group_table.show(console, said, top=top, wide=wide),
        pod_names(each.pod for each in said.pods if not each.placed),
    )


def _show_workload(flags: argparse.Namespace, target: ExplainTarget, world: World) -> None:
    from kubesched.explain.waiting import explain_workload, find_workload  # noqa: PLC0415
    from kubesched.explain.waiting_table import show_workload  # noqa: PLC0415

    workload = find_workload(world, target.kind, _namespace(flags, target), target.name)
    said = explain_workload(world, workload)
    show(
        flags,
        said,
        lambda console, top, wide: show_workload(console, said, top=top, wide=wide),
        _names_of(said.causes),
    )


def _show_waiting(flags: argparse.Namespace, world: World) -> None:
    from kubesched.explain.waiting import waiting_pods  # noqa: PLC0415
    from kubesched.explain.waiting_table import show_waiting  # noqa: PLC0415

    said = waiting_pods(world, flags.namespace or "")
    show(
        flags,
        said,
        lambda console, top, wide: show_waiting(console, said, top=top, wide=wide),
        _names_of(said.causes),
    )


def _names_of(causes: Iterable[WaitingCause]) -> list[str]:
    return pod_names(name for cause in causes for name in cause.names)


def _show_pod(flags: argparse.Namespace, pod: Pod, world: World) -> None:
    from kubesched.explain import table  # noqa: PLC0415
    from kubesched.explain.explaining import ExplainOptions, explain  # noqa: PLC0415
    from kubesched.explain.on_node import on_node  # noqa: PLC0415
    from kubesched.explain.on_node_table import show_on_node  # noqa: PLC0415

    if flags.node:
        world.node_row(flags.node)
    changes = not flags.no_changes and not flags.node
    said = explain(world, pod, ExplainOptions(changes=changes, profile=flags.profile))
    if flags.node:
        there = on_node(said, flags.node)
        takes_it = node_names([flags.node] if there.outcome != "Rejected" else [])
        show(flags, there, lambda console, *_: show_on_node(console, there), takes_it)
        return
    show(
        flags,
        said,
        lambda console, top, wide: table.show(console, said, top=top, every_node=flags.all or wide),
        node_names(_feasible(said)),
    )


def _feasible(said: Explanation) -> list[str]:
    """Return the nodes that a pod fits on, the best first if they were scored."""
    scored = [each.node for each in said.scores]
    return scored or [each.node for each in said.nodes if each.feasible]


def _pod(flags: argparse.Namespace, target: ExplainTarget, world: World, snapshot: Snapshot) -> Pod:
    from kubesched.explain.explaining import find_pod  # noqa: PLC0415
    from kubesched.snapshot import manifests  # noqa: PLC0415

    if flags.file:
        namespace = cluster_source.namespace_of(flags)
        return manifests.read_pod(flags.file, snapshot.priority_classes, namespace=namespace)
    return find_pod(world, _namespace(flags, target), target.name)
