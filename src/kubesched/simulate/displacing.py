"""Nodes that are lost or drained, and where their pods would go.

    nodes removed ──> their pods, by priority and age ──> placed elsewhere, or left ──> undone

Pods of DaemonSets, and static pods, end with their node. No pod is preempted: a pod is left over if
it does not fit as things are. Pods of a group are placed together; their devices, and those of all
others, are free for the pods that are placed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.cluster.node_order import zone_of
from kubesched.cluster.pod_groups import named_group
from kubesched.cluster.pod_info import PodInfo
from kubesched.errors import ObjectError
from kubesched.simulate.placing import SequentialPlacer, in_order
from kubesched.simulate.report import (
    BlockingBudget,
    BrokenGang,
    DisplacedPod,
    Displacement,
    Left,
    Losses,
)
from kubesched.simulate.spreading import workload_of
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
    return {node.metadata.name: [node.metadata.name] for node in _all_nodes(world)}


def by_zone(world: World) -> dict[str, list[str]]:
    """Return the nodes of each zone."""
    zones: dict[str, list[str]] = {}
    for node in _all_nodes(world):
        zones.setdefault("/".join(filter(None, zone_of(node))), []).append(node.metadata.name)
    if set(zones) == {""}:
        raise ObjectError("no node says which zone it is in (label topology.kubernetes.io/zone)")
    return dict(sorted(zones.items()))


def _all_nodes(world: World) -> list[Node]:
    found = _nodes(world, list(world.table.names()))
    if not found:
        raise ObjectError("there is no node to lose: the cluster has none")
    return found


def _nodes(world: World, node_names: Sequence[str]) -> list[Node]:
    return [world.table.node_at(world.node_row(name)) for name in node_names]


def _displace(world: World, name: str, nodes: list[Node], *, seed: int, gone: bool) -> Displacement:
    pods = [pod for node in nodes for pod in world.pods_on(node.metadata.name)]
    moving = {pod.uid: pod for pod in pods if not is_bound_to_its_node(pod.pod)}
    budgets = () if gone else _blocking_budgets(world, moving)
    placer = SequentialPlacer(world, seed=seed)
    moved: list[DisplacedPod] = []
    left: list[Left] = []
    with _out_of_use(world, nodes, pods if gone else list(moving.values()), gone=gone):
        try:
            ordered = [_unplaced(moving[pod.metadata.uid]) for pod in _in_order(moving)]
            for pod, outcome in zip(ordered, placer.place_all(ordered), strict=True):
                info, workload = moving[pod.metadata.uid], workload_of(pod)
                if outcome.node:
                    before = info.pod.spec.node_name
                    moved.append(DisplacedPod(info.full_name, before, outcome.node, workload))
                else:
                    left.append(Left(info.full_name, info.priority, outcome.message, workload))
            gangs = _broken_gangs(world, moving.values())
        finally:
            placer.take_all_back()
    return Displacement(
        name=name,
        nodes=len(nodes),
        displaced=len(moving),
        ended=len(pods) - len(moving) if gone else 0,
        placed=len(moved),
        left=tuple(left),
        against_budgets=tuple(name for each in budgets for name in each.pods),
        budgets=budgets,
        moves={each.pod: each.after for each in moved},
        moved=tuple(moved),
        gangs=gangs,
    )


def _blocking_budgets(world: World, moving: Mapping[str, PodInfo]) -> tuple[BlockingBudget, ...]:
    """Return the budgets that allow fewer evictions than there would be, in this order."""
    store = world.cluster.budgets
    found: dict[tuple[str, str], list[str]] = {}
    for uid, name in store.overdrawn(moving.values()).items():
        pod = moving[uid]
        found.setdefault((pod.pod.metadata.namespace, name), []).append(pod.full_name)
    return tuple(
        BlockingBudget(
            budget=f"{namespace}/{name}",
            allowed=0 if budget is None else budget.status.disruptions_allowed,
            pods=tuple(pods),
        )
        for (namespace, name), pods in found.items()
        for budget in [store.get(namespace, name)]
    )


def _in_order(moving: Mapping[str, PodInfo]) -> list[Pod]:
    return in_order(each.pod for each in moving.values())


def _broken_gangs(world: World, moved: Iterable[PodInfo]) -> tuple[BrokenGang, ...]:
    """Return the gangs that have fewer pods on nodes now than they need."""
    groups = world.cluster.groups
    if world.engine.groups is None:
        return ()
    found = []
    for key in dict.fromkeys(named_group(pod.pod) for pod in moved):
        group = None if key is None else groups.objects.get(key.namespace, key.name)
        if key is None or group is None:
            continue
        running = groups.members(key).placed_count
        if running < group.min_count:
            found.append(BrokenGang(key.full_name, running=running, needed=group.min_count))
    return tuple(found)


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
    """Remove or cordon nodes, without some pods, which give their devices back."""
    with world.cluster.transaction() as tx:
        for pod in pods:
            tx.remove(pod.uid)
            tx.release(pod.pod)
        for node in nodes:
            if gone:
                tx.remove_node(node.metadata.name)
            else:
                tx.put_node(replace(node, spec=replace(node.spec, unschedulable=True)))
        yield
