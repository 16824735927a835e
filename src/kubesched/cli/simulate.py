"""``kubesched simulate``: headroom, node changes, another configuration."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kubesched import garbage
from kubesched.cli import cluster_source, simulate_apply, simulate_run, sweep
from kubesched.cli.parsing import Parser, positive
from kubesched.cli.printing import node_names, pod_names, show
from kubesched.cli.simulating import Kinds, add_kind, tell
from kubesched.errors import UsageError

if TYPE_CHECKING:
    from kubesched.api.core import Pod
    from kubesched.api.scheduling import PodGroup
    from kubesched.simulate.report import Displacement, Losses
    from kubesched.snapshot.contents import Snapshot
    from kubesched.snapshot.world import World

#: What a target begins with that is a group.
_GROUP = "podgroup/"
_EXAMPLES = """\
examples:
  kubesched simulate apply -f web.yaml                do the pods of this manifest fit?
  kubesched simulate apply -f web.yaml --replicas=+40   do 40 more fit?
  kubesched simulate headroom -f pod.yaml             how many more of this pod fit
  kubesched simulate headroom shop/web-1              how many more like this one
  kubesched simulate headroom podgroup/ml/train       how many more gangs like this one, and where
  kubesched simulate add 5 --like node-7              would 5 more nodes place what is pending?
  kubesched simulate drain node-7 node-8              where would their pods go?
  kubesched simulate loss --each zone                 which zones can be lost?
  kubesched simulate config --to new.yaml --all       what would another configuration change?
  kubesched simulate run day.yaml                     a day of arrivals and departures, in seconds
  kubesched simulate sweep day.yaml --seeds 10 --set NodeResourcesFit.weight=1,5,20
"""


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command and its own commands to a parser's."""
    parser = commands.add_parser(
        "simulate",
        help="how much more fits, and what if",
        description="Plays through what would happen, with the scheduler's own plugins on the "
        "state of a cluster. Never writes to it.",
        epilog=_EXAMPLES,
    )
    kinds = parser.add_subparsers(title="what", metavar="WHAT", required=True)
    simulate_apply.add_kind_of_simulation(kinds)
    _add_headroom(kinds)
    _add_nodes(kinds)
    _add_config(kinds)
    simulate_run.add_kind_of_simulation(kinds)
    sweep.add_kind_of_simulation(kinds)


def _add_headroom(kinds: Kinds) -> None:
    parser = add_kind(kinds, "headroom", "count how many more of a pod fit", _headroom)
    parser.add_argument(
        "pod", nargs="?", metavar="NAMESPACE/NAME", help="a pod or podgroup that is there"
    )
    parser.add_argument(
        "-f", "--file", type=Path, metavar="FILE", help="manifest of a pod, or gang"
    )
    parser.add_argument("-n", "--namespace", metavar="NAME", help="namespace of the pod")
    parser.add_argument(
        "--limit", type=positive, default=10_000, metavar="N", help="count no further"
    )


def _add_nodes(kinds: Kinds) -> None:
    add = add_kind(kinds, "add", "place what is pending with more nodes", _add_some)
    add.add_argument("count", type=positive, metavar="N", help="how many nodes")
    add.add_argument("--like", required=True, metavar="NODE", help="a node that they are like")
    drain = add_kind(kinds, "drain", "find other nodes for the pods of some", _drain)
    drain.add_argument("nodes", nargs="+", metavar="NODE", help="a node to drain")
    loss = add_kind(kinds, "loss", "find out what the loss of nodes would mean", _loss)
    which = loss.add_mutually_exclusive_group(required=True)
    which.add_argument("--each", choices=("node", "zone"), help="lose each of them in turn")
    which.add_argument("--node", action="append", metavar="NODE", help="lose it; may be repeated")
    which.add_argument("--zone", metavar="ZONE", help="lose all its nodes")


def _add_config(kinds: Kinds) -> None:
    parser = add_kind(kinds, "config", "place pods under another configuration", _config)
    parser.add_argument(
        "--to",
        type=Path,
        required=True,
        metavar="FILE",
        help="the other KubeSchedulerConfiguration",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="place all pods anew that may move, not only pending ones",
    )


# --- running ----------------------------------------------------------------------------------


def _world(flags: argparse.Namespace, file: Path | None = None) -> tuple[World, Snapshot]:
    from kubesched.snapshot.world import World  # noqa: PLC0415 (costs time to import)

    gates = cluster_source.read_gates(flags)
    registry = cluster_source.read_registry(flags)
    config = cluster_source.read_configuration(flags.config, gates, registry)
    snapshot = cluster_source.read_snapshot_with(flags, file)
    world = World.of_snapshot(snapshot, config, gates, registry=registry)
    tell(world.notes)
    # The loaded objects stay alive: exclude them from garbage collection.
    garbage.freeze()
    return world, snapshot


def _headroom(flags: argparse.Namespace) -> int:
    from kubesched.explain.explaining import find_pod  # noqa: PLC0415
    from kubesched.explain.groups import find_group  # noqa: PLC0415
    from kubesched.simulate import table  # noqa: PLC0415
    from kubesched.simulate.gangs import members_of  # noqa: PLC0415
    from kubesched.simulate.headroom import headroom  # noqa: PLC0415
    from kubesched.snapshot import manifests  # noqa: PLC0415

    if bool(flags.pod) == bool(flags.file):
        raise UsageError("name one pod, as in 'kubesched simulate headroom NAMESPACE/NAME' or -f")
    world, snapshot = _world(flags, flags.file)
    if flags.file:
        namespace = cluster_source.namespace_of(flags)
        pod = manifests.read_pod(flags.file, snapshot.priority_classes, namespace=namespace)
        group = _group_in(flags.file, world, pod)
        if group is not None:
            return _gangs(flags, world, group, [pod])
    elif flags.pod.startswith(_GROUP):
        group = find_group(world, *_split(flags, flags.pod.removeprefix(_GROUP)))
        return _gangs(flags, world, group, members_of(world, group))
    else:
        pod = find_pod(world, *_split(flags, flags.pod))
    said = headroom(world, pod, limit=flags.limit, seed=flags.seed)
    return show(
        flags,
        said,
        lambda console, top, _wide: table.show_headroom(console, said, top=top),
        node_names(said.by_node),
    )


def _split(flags: argparse.Namespace, target: str) -> tuple[str, str]:
    """Return namespace and name."""
    namespace, slash, name = target.partition("/")
    return (namespace, name) if slash else (cluster_source.namespace_of(flags), target)


def _group_in(file: Path, world: World, pod: Pod) -> PodGroup | None:
    """Return the group of a pod, if it is in the same file."""
    from kubesched.snapshot import manifests  # noqa: PLC0415

    group = pod.spec.scheduling_group
    name = group.pod_group_name if group is not None else None
    if name is None or name not in manifests.names_in(file, "PodGroup"):
        return None
    return world.cluster.groups.objects.get(pod.metadata.namespace, name)


def _gangs(flags: argparse.Namespace, world: World, group: PodGroup, pods: Sequence[Pod]) -> int:
    from kubesched.simulate import table  # noqa: PLC0415
    from kubesched.simulate.gangs import gang_headroom  # noqa: PLC0415

    said = gang_headroom(world, group, pods, limit=flags.limit, seed=flags.seed)
    return show(
        flags,
        said,
        lambda console, top, _wide: table.show_gang_headroom(console, said, top=top),
        node_names(node for each in said.placements for node in each.nodes),
    )


def _add_some(flags: argparse.Namespace) -> int:
    from kubesched.simulate import table  # noqa: PLC0415
    from kubesched.simulate.comparing import add_nodes  # noqa: PLC0415

    world, _ = _world(flags)
    said = add_nodes(world, flags.count, flags.like, seed=flags.seed)
    return show(
        flags,
        said,
        lambda console, top, wide: table.show_addition(console, said, top=top, wide=wide),
        pod_names(each.pod for each in said.still_left),
    )


def _drain(flags: argparse.Namespace) -> int:
    from kubesched.simulate import displacing  # noqa: PLC0415

    world, _ = _world(flags)
    return _show_displacement(
        flags, displacing.drain(world, flags.nodes, seed=flags.seed), verb="drained"
    )


def _show_displacement(flags: argparse.Namespace, said: Displacement, *, verb: str) -> int:
    from kubesched.simulate import table  # noqa: PLC0415

    return show(
        flags,
        said,
        lambda console, top, wide: table.show_displacement(
            console, said, verb=verb, top=top, wide=wide
        ),
        pod_names([*(each.pod for each in said.moved), *(each.pod for each in said.left)]),
    )


def _loss(flags: argparse.Namespace) -> int:
    from kubesched.simulate import displacing, table  # noqa: PLC0415

    if flags.each == "zone" and flags.output == "name":
        raise UsageError("zones are no objects: -o name is for --each node, --node and --zone")
    world, _ = _world(flags)
    if flags.each:
        domains = displacing.by_node(world) if flags.each == "node" else displacing.by_zone(world)
        losses = _lose_each(flags, world, domains)
        return show(
            flags,
            losses,
            lambda console, top, _wide: table.show_losses(console, losses, top=top),
            node_names(each.name for each in losses.domains if each.left),
        )
    name, nodes = ", ".join(flags.node or ()), flags.node
    if flags.zone:
        zones = displacing.by_zone(world)
        matching = [zone for zone in zones if flags.zone in (zone, zone.rpartition("/")[2])]
        if len(matching) != 1:
            raise UsageError(f"there is no zone {flags.zone}, or more than one: {', '.join(zones)}")
        name, nodes = matching[0], zones[matching[0]]
    return _show_displacement(
        flags, displacing.lose(world, name, nodes, seed=flags.seed), verb="lost"
    )


def _lose_each(flags: argparse.Namespace, world: World, domains: dict[str, list[str]]) -> Losses:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    from kubesched.simulate import displacing  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("losing each in turn", total=len(domains))
        return displacing.lose_each(
            world, domains, seed=flags.seed, progress=lambda: bar.advance(task)
        )


def _config(flags: argparse.Namespace) -> int:
    from kubesched.simulate import table  # noqa: PLC0415
    from kubesched.simulate.comparing import compare  # noqa: PLC0415
    from kubesched.simulate.playing import Conditions  # noqa: PLC0415

    gates = cluster_source.read_gates(flags)
    registry = cluster_source.read_registry(flags)
    configs = [
        cluster_source.read_configuration(path, gates, registry)
        for path in (flags.config, flags.to)
    ]
    snapshot = cluster_source.read_snapshot(flags)
    before, after = (
        Conditions(
            snapshot=snapshot,
            config=config,
            gates=gates,
            registry=registry,
            seed=flags.seed,
            everything=flags.all,
        )
        for config in configs
    )
    said = compare(before, after)
    tell(said.notes)
    return show(
        flags,
        said,
        lambda console, top, wide: table.show_comparison(console, said, top=top, wide=wide),
        pod_names(each.pod for each in said.moves),
    )
