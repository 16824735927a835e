"""Nodes that go: who must move, where to, and who is left; and then all is as before."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.api.meta import LabelSelector, ObjectMeta, OwnerReference
from kubesched.api.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kubesched.errors import ObjectError
from kubesched.simulate.displacing import by_node, by_zone, drain, lose, lose_each
from kubesched.snapshot.world import World
from tests.support.drawn_clusters import clusters
from tests.support.objects import node, pod, spread_over
from tests.support.worlds import world_of

HOST = "kubernetes.io/hostname"


def _daemon(name: str, node_name: str) -> Pod:
    made = pod(name, node=node_name, cpu="1")
    owner = OwnerReference(kind="DaemonSet", name="d")
    return replace(made, metadata=replace(made.metadata, owner_references=(owner,)))


def _places(world: World) -> dict[str, str | None]:
    return {
        pod.metadata.uid: world.cluster.node_of(pod.metadata.uid) for pod in world.placed.values()
    }


def test_pods_of_a_lost_node_go_where_there_is_room_the_important_ones_first() -> None:
    world = world_of(
        node("n1", cpu="4"),
        node("n2", cpu="2"),
        pod("low", node="n1", cpu="2", priority=1),
        pod("high", node="n1", cpu="2", priority=9),
        _daemon("agent", "n1"),
    )

    found = lose(world, "n1", ["n1"])

    assert (found.displaced, found.ended, found.placed) == (2, 1, 1)
    assert found.moves == {"default/high": "n2"}
    [left] = found.left
    assert (left.pod, left.priority) == ("default/low", 1)
    assert left.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_lost_node_is_no_domain_any_more_a_drained_one_is() -> None:
    spread = [spread_over(HOST, app="x")]
    pods = [pod(name, node=name, labels={"app": "x"}, spread=spread) for name in ("n1", "n2")]
    world = world_of(*(node(name, labels={HOST: name}) for name in ("n1", "n2")), *pods)

    assert lose(world, "n1", ["n1"]).moves == {"default/n1": "n2"}
    # The drained node has none of them and counts: one more on the other would be two too many.
    assert [each.pod for each in drain(world, ["n1"]).left] == ["default/n1"]


def test_daemons_stay_on_a_drained_node_and_budgets_are_named() -> None:
    labels = {"app": "x"}
    world = world_of(
        node("n1"), node("n2"), pod("a", node="n1", labels=labels), _daemon("agent", "n1")
    )
    world.cluster.budgets.put(
        PodDisruptionBudget(
            metadata=ObjectMeta(name="b", namespace="default"),
            spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=labels)),
            status=PodDisruptionBudgetStatus(disruptions_allowed=0),
        )
    )

    found = drain(world, ["n1"])

    assert (found.displaced, found.ended, found.moves) == (1, 0, {"default/a": "n2"})
    assert found.against_budgets == ("default/a",)
    [blocking] = found.budgets
    assert (blocking.allowed, blocking.pods) == (0, ("default/a",))


def test_each_zone_is_lost_in_turn() -> None:
    world = world_of(
        node("a1", zone="a"),
        node("a2", zone="a"),
        node("b1", zone="b", cpu="1"),
        pod("p", node="a1", cpu="2"),
        pod("q", node="b1", cpu="1"),
    )
    told: list[None] = []

    found = lose_each(world, by_zone(world), progress=lambda: told.append(None))

    assert [(each.name, each.nodes, len(each.left)) for each in found.domains] == [
        ("a", 2, 1),
        ("b", 1, 0),
    ]
    assert found.harmless == 1
    assert len(told) == 2


def test_a_node_or_zones_that_are_not_there_are_refused() -> None:
    world = world_of(node("n1"))

    with pytest.raises(ObjectError, match="node n2 not found"):
        drain(world, ["n2"])
    with pytest.raises(ObjectError, match="no node says which zone it is in"):
        by_zone(world)
    for domains in (by_node, by_zone):
        with pytest.raises(ObjectError, match="there is no node to lose: the cluster has none"):
            domains(world_of())


@given(clusters())
@settings(max_examples=40)
def test_afterwards_everything_is_as_it_was(drawn: tuple[list[Node | Pod], Pod]) -> None:
    objects, _ = drawn
    world = world_of(*objects)
    before = _places(world)

    found = lose_each(world, by_node(world))
    drain(world, list(world.table.names())[:1])

    assert _places(world) == before
    world.cluster.validate()
    for each in found.domains:
        assert each.placed + len(each.left) == each.displaced
        # What was found for a node does not depend on those that were lost before it.
        alone = lose(world_of(*objects), each.name, [each.name])
        assert {one.pod for one in alone.left} | alone.moves.keys() == (
            {one.pod for one in each.left} | each.moves.keys()
        )
