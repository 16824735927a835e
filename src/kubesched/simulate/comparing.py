"""The same pods under two configurations, and the same pods with more nodes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.errors import ObjectError
from kubesched.explain.surroundings import like
from kubesched.simulate.placing import Placer, in_order
from kubesched.simulate.report import Addition, Comparison, Left, Move, Utilisation
from kubesched.snapshot.world import World, is_bound_to_its_node


def compare(
    make_before: Callable[[], World],
    make_after: Callable[[], World],
    *,
    everything: bool = False,
    seed: int = 0,
) -> Comparison:
    """Place all pods that wait, and if `everything` all that may move, under both configurations.

    The worlds are of the same snapshot; each is used up.
    """
    before, left_before, used_before = _placed_anew(make_before(), everything, seed)
    after, left_after, used_after = _placed_anew(make_after(), everything, seed)
    moves = tuple(
        Move(name, node, after[name]) for name, node in before.items() if after[name] != node
    )
    return Comparison(
        pods=len(before),
        unchanged=len(before) - len(moves),
        moves=moves,
        left_before=left_before,
        left_after=left_after,
        before=used_before,
        after=used_after,
    )


def _placed_anew(
    world: World, everything: bool, seed: int
) -> tuple[dict[str, str], int, Utilisation]:
    pods = list(world.pending.values())
    if everything:
        movable = [each for each in world.placed.values() if not is_bound_to_its_node(each)]
        for pod in movable:
            world.cluster.remove_pod(pod.metadata.uid)
        pods += [replace(each, spec=replace(each.spec, node_name="")) for each in movable]
    placer = Placer(world, seed=seed)
    placed = {_name(pod): placer.place(pod).node for pod in in_order(pods)}
    return placed, sum(not node for node in placed.values()), Utilisation.of(world)


def add_nodes(world: World, count: int, example: str | Node, *, seed: int = 0) -> Addition:
    """Place all pods that wait, with and without more nodes like one that is there, or given."""
    if isinstance(example, str):
        row = world.table.row_of(example)
        if row is None:
            raise ObjectError(f"node {example} not found")
        example = world.table.node_at(row)
    name = example.metadata.name
    before, _, used_before = _place_pending(world, seed)
    nodes = [like(example, f"{name}-added-{number}") for number in range(1, count + 1)]
    with ExitStack() as undo:
        undo.enter_context(world.with_nodes(nodes))
        for node in nodes:
            _bring_daemons(world, name, node.metadata.name, undo)
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


def _bring_daemons(world: World, example: str, node_name: str, undo: ExitStack) -> None:
    """Let the pods that every node gets come to a new one, too."""
    for each in world.pods_on(example):
        if is_bound_to_its_node(each.pod):
            uid = f"{each.uid}/{node_name}"
            meta = replace(each.pod.metadata, uid=uid)
            world.cluster.put_pod(replace(each.object_on(node_name), metadata=meta))
            undo.callback(world.cluster.remove_pod, uid)


def _place_pending(world: World, seed: int) -> tuple[int, tuple[Left, ...], Utilisation]:
    placer = Placer(world, seed=seed)
    try:
        outcomes = [(pod, placer.place(pod)) for pod in in_order(world.pending.values())]
        left = tuple(
            Left(_name(pod), pod.spec.priority or 0, outcome.message)
            for pod, outcome in outcomes
            if not outcome.node
        )
        return len(outcomes) - len(left), left, Utilisation.of(world)
    finally:
        placer.take_all_back()


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
