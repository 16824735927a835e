"""The same pods under two configurations, and the same pods with more nodes."""

from __future__ import annotations

from kubesched.api.core import Node, Pod
from kubesched.explain.surroundings import more_like
from kubesched.simulate.placing import SequentialPlacer, in_order
from kubesched.simulate.playing import Conditions, Played, play
from kubesched.simulate.report import Addition, ConfigurationComparison, Left, Move, Utilisation
from kubesched.simulate.spreading import changes, spread_of, summed, workload_of
from kubesched.snapshot.world import World


def compare(before: Conditions, after: Conditions) -> ConfigurationComparison:
    """Place all pods that wait, or all that may move, under two configurations.

    Both are conditions of the same snapshot. Pods are placed by the engine, preemption included;
    victims are placed again.
    """
    was, now = play(before), play(after)
    nodes_before, nodes_after = _nodes(was), _nodes(now)
    concerned = was.pending_at_start | _victims(was) | _victims(now)
    workloads = {_name(pod): workload_of(pod) for pod in now.pods}
    moves = tuple(
        Move(name, nodes_before.get(name, ""), nodes_after.get(name, ""), workloads.get(name, ""))
        for name in sorted(concerned)
        if nodes_before.get(name) != nodes_after.get(name)
    )
    spread_before, spread_after = (spread_of(each.cluster, each.pods) for each in (was, now))
    return ConfigurationComparison(
        pods=len(concerned),
        unchanged=len(concerned) - len(moves),
        moves=moves,
        left_before=sum(not node for node in nodes_before.values()),
        left_after=sum(not node for node in nodes_after.values()),
        before=Utilisation.of(was.cluster.table),
        after=Utilisation.of(now.cluster.table),
        preemptions_before=tuple(was.observations.preemptions),
        preemptions_after=tuple(now.observations.preemptions),
        spread_before=summed(spread_before),
        spread_after=summed(spread_after),
        spread_changes=changes(spread_before, spread_after),
        notes=tuple(dict.fromkeys((*was.notes, *now.notes))),
    )


def _nodes(played: Played) -> dict[str, str]:
    """Return the node of each pod, "" for none."""
    return {_name(pod): pod.spec.node_name for pod in played.pods}


def _victims(played: Played) -> frozenset[str]:
    found = played.observations.preemptions
    return frozenset(victim for each in found for victim in each.victims)


def add_nodes(world: World, count: int, example: str | Node, *, seed: int = 0) -> Addition:
    """Place all pending pods, with and without more nodes like an existing or a given one."""
    if isinstance(example, str):
        example = world.table.node_at(world.node_row(example))
    name = example.metadata.name
    before, _, used_before = _place_pending(world, seed)
    with world.cluster.transaction() as tx:
        for number in range(1, count + 1):
            made = more_like(world, example, f"{name}-added-{number}")
            for piece in made.slices:
                tx.put_object(world.cluster.devices.slices, piece)
            tx.put_node(made.node)
            for pod in made.daemons:
                tx.add(pod)
        after, left, used_after = _place_pending(world, seed)
    return Addition(
        added=count,
        like=name,
        pending=len(world.pending),
        placed_before=before,
        placed_after=after,
        still_left=left,
        before=used_before,
        after=used_after,
    )


def _place_pending(world: World, seed: int) -> tuple[int, tuple[Left, ...], Utilisation]:
    placer = SequentialPlacer(world, seed=seed)
    try:
        ordered = in_order(world.pending.values())
        outcomes = list(zip(ordered, placer.place_all(ordered), strict=True))
        left = tuple(
            Left(_name(pod), pod.spec.priority or 0, outcome.message, workload_of(pod))
            for pod, outcome in outcomes
            if not outcome.node
        )
        return len(outcomes) - len(left), left, Utilisation.of(world.table)
    finally:
        placer.take_all_back()


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
