"""Nodes that are lost or drained, and where their pods would go.

    nodes removed ──> their pods, by priority and age ──> placed elsewhere, or left ──> undone

Pods of DaemonSets, and static pods, end with their node. No pod is preempted: a pod is left over if
it does not fit as things are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.cluster.node_order import zone_of
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ObjectError
from kubesched.simulate.placing import SequentialPlacer, in_order
from kubesched.simulate.report import Displacement, Left, Losses
from kubesched.snapshot.world import World, is_bound_to_its_node


def lose(world: World, name: str, node_names: Sequence[str], *, seed: int = 0) -> Displacement:
    """Lose nodes at once."""
    return _displace(world, name, _nodes(world, node_names), seed=seed, gone=True)


def drain(world: World, node_names: Sequence[str], *, seed: int = 0) -> Displacement:
    """Cordon nodes and evict their pods."""
    nodes = _nodes(world, node_names)
    return _displace(world, ", ".join(node_names), nodes, seed=seed, gone=False)


def lose_each(
    world: World,
    domains: dict[str, list[str]],
    *,
    seed: int = 0,
    progress: Callable[[], None] = lambda: None,
) -> Losses:
    """Lose each of several domains, given by the names of their nodes, in turn."""
    found = []
    for name, node_names in domains.items():
        found.append(lose(world, name, node_names, seed=seed))
        progress()
    return Losses(domains=tuple(found))


def by_node(world: World) -> dict[str, list[str]]:
    """Return each node as a domain of its own."""
    return {name: [name] for name in world.table.names()}


def by_zone(world: World) -> dict[str, list[str]]:
    """Return the nodes of each zone."""
    zones: dict[str, list[str]] = {}
    for node in _nodes(world, list(world.table.names())):
        zones.setdefault("/".join(filter(None, zone_of(node))), []).append(node.metadata.name)
    if set(zones) == {""}:
        raise ObjectError("no node says which zone it is in (label topology.kubernetes.io/zone)")
    return dict(sorted(zones.items()))


def _nodes(world: World, node_names: Sequence[str]) -> list[Node]:
    found = []
    for name in node_names:
        row = world.table.row_of(name)
        if row is None:
            raise ObjectError(f"node {name} not found")
        found.append(world.table.node_at(row))
    return found


def _displace(world: World, name: str, nodes: list[Node], *, seed: int, gone: bool) -> Displacement:
    pods = [pod for node in nodes for pod in world.pods_on(node.metadata.name)]
    moving = {pod.uid: pod for pod in pods if not is_bound_to_its_node(pod.pod)}
    overdrawing, _ = world.cluster.budgets.split(moving.values())
    placer = SequentialPlacer(world, seed=seed)
    moves: dict[str, str] = {}
    left: list[Left] = []
    with _out_of_use(world, nodes, pods if gone else list(moving.values()), gone=gone):
        try:
            for pod in in_order(each.pod for each in moving.values()):
                outcome = placer.place(_unplaced(moving[pod.metadata.uid]))
                full_name = moving[pod.metadata.uid].full_name
                if outcome.node:
                    moves[full_name] = outcome.node
                else:
                    left.append(Left(full_name, pod.spec.priority or 0, outcome.message))
        finally:
            placer.take_all_back()
    return Displacement(
        name=name,
        nodes=len(nodes),
        displaced=len(moving),
        ended=len(pods) - len(moving) if gone else 0,
        placed=len(moves),
        left=tuple(left),
        against_budgets=() if gone else tuple(each.full_name for each in overdrawing),
        moves=moves,
    )


def _unplaced(info: PodInfo) -> Pod:
    return replace(
        info.pod,
        spec=replace(info.pod.spec, node_name=""),
        status=replace(info.pod.status, nominated_node_name=""),
    )


@contextmanager
def _out_of_use(
    world: World, nodes: list[Node], pods: list[PodInfo], *, gone: bool
) -> Iterator[None]:
    """Remove or cordon nodes, without some pods."""
    with world.cluster.transaction() as tx:
        for pod in pods:
            tx.remove(pod.uid)
        for node in nodes:
            if gone:
                tx.remove_node(node.metadata.name)
            else:
                tx.put_node(replace(node, spec=replace(node.spec, unschedulable=True)))
        yield
