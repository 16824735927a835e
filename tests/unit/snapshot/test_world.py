"""A world is the cluster of its snapshot, and is so again after every what-if."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.core import PodStatus
from kubesched.errors import ObjectError
from kubesched.snapshot.world import World
from tests.support.group_objects import key, member, pod_group
from tests.support.objects import node, on_node, pod
from tests.support.worlds import world_of


def _requested(world: World) -> dict[str, int]:
    return {
        name: int(world.table.requested[0, row])
        for name in world.table.names()
        if (row := world.table.row_of(name)) is not None
    }


def test_pods_are_on_their_nodes_pending_or_over() -> None:
    over = replace(pod("over", node="n1", cpu="3"), status=PodStatus(phase="Succeeded"))
    world = world_of(node("n1"), pod("a", node="n1", cpu="1"), pod("b"), over)

    assert _requested(world) == {"n1": 1000}
    assert (list(world.placed), list(world.pending)) == ([("default", "a")], [("default", "b")])
    assert world.find_pod("default", "over") is None


def test_an_unreadable_object_costs_itself_and_is_noted() -> None:
    world = world_of(node("n1", cpu="x"), node("n2"), pod("p", node="n2", cpu="y"))

    assert list(world.table.names()) == ["n2"]
    assert world.notes[0].startswith("node n1 left out: ")
    assert world.notes[1].startswith("pod default/p left out: ")


def test_pending_members_are_known_to_their_group() -> None:
    world = world_of(node("n1"), pod_group(gang=2), member("a"), member("b", node="n1"))

    members = world.cluster.groups.members(key())
    assert (list(members.pending), list(members.placed)) == (["a"], ["b"])


def test_nominated_pods_keep_their_room() -> None:
    world = world_of(node("n1"), pod("a", nominated="n1"))

    assert world.cluster.nominator.node_of("a") == "n1"


def test_a_pod_with_a_node_is_compiled_as_one_that_wants_one() -> None:
    world = world_of(node("n1"))

    assert world.compile(on_node(pod("a"), "n1")).signature.node_name == ""


def test_a_node_that_is_not_there_is_answered_with_similar_names() -> None:
    world = world_of(node("big"), node("small"))

    assert world.node_row("small") == world.table.row_of("small")
    with pytest.raises(ObjectError, match=r"^node bigg not found; there is big$"):
        world.node_row("bigg")
    with pytest.raises(ObjectError, match=r"^node x not found; there is big, small$"):
        world.node_row("x")
    with pytest.raises(ObjectError, match=r"^node x not found$"):
        world_of().node_row("x")
