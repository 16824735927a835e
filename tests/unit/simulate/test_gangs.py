"""How many more gangs fit, and what becomes of gangs whose nodes go."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.core import Pod
from kubesched.errors import ObjectError, UsageError
from kubesched.explain.groups import find_group
from kubesched.simulate import displacing
from kubesched.simulate.comparing import add_nodes
from kubesched.simulate.gangs import gang_headroom, members_of
from kubesched.simulate.report import GangHeadroom
from kubesched.snapshot.world import World
from tests.support.group_objects import GROUPS, TOPOLOGY, member, pod_group
from tests.support.objects import node, pod
from tests.support.worlds import world_of


def _gangs(world: World, **options: Any) -> GangHeadroom:
    group = find_group(world, "default", "g")
    said = gang_headroom(world, group, members_of(world, group), **options)
    world.cluster.validate()
    return said


def _members(count: int, **options: Any) -> list[Pod]:
    return [member(f"m{number}", **options) for number in range(count)]


def test_gangs_are_counted_as_a_whole_and_told_where_they_go() -> None:
    racks = [node(f"{rack}-{n}", cpu="2", labels={"rack": rack}) for rack in "ab" for n in (1, 2)]
    world = world_of(
        *racks,
        pod("here", node="b-1", cpu="1"),
        pod_group(gang=2, topology="rack"),
        *_members(2, cpu="1"),
        gates=TOPOLOGY,
    )

    said = _gangs(world)

    # Four cpus in a; three in b, of which two are a gang and one is left.
    assert (said.gangs, said.pods_each, said.at_least) == (3, 2, False)
    assert sorted(each.domain for each in said.placements) == ["a", "a", "b"]
    assert all(sum(each.nodes.values()) == 2 for each in said.placements)
    assert "minCount (2) cannot be satisfied" in said.message
    assert len(world.cluster.groups.objects) == 1


def test_a_gang_with_members_missing_is_filled_up() -> None:
    world = world_of(node("n1", cpu="4"), pod_group(gang=2), *_members(1, cpu="1"), gates=GROUPS)

    assert _gangs(world).gangs == 2
    assert _gangs(world, limit=1).at_least


def test_gangs_need_their_gate_and_a_member() -> None:
    with pytest.raises(UsageError, match="GenericWorkload"):
        _gangs(world_of(node("n1"), pod_group(gang=1), *_members(1)))
    with pytest.raises(ObjectError, match="podgroup default/g has no pods"):
        _gangs(world_of(node("n1"), pod_group(gang=1), gates=GROUPS))


def test_a_gang_moves_as_a_whole_or_not_at_all() -> None:
    running = [member(f"m{number}", node="n1", cpu="1") for number in range(2)]
    objects: list[Any] = [node("n1"), pod_group(gang=2), *running]

    fits = displacing.drain(world_of(*objects, node("n2", cpu="2"), gates=GROUPS), ["n1"])
    assert sorted(fits.moves.values()) == ["n2", "n2"]
    assert fits.gangs == ()

    lost = displacing.lose(world_of(*objects, node("n2", cpu="1"), gates=GROUPS), "n1", ["n1"])
    assert lost.moves == {}
    assert [each.pod for each in lost.left] == ["default/m0", "default/m1"]
    assert [(each.group, each.running, each.needed) for each in lost.gangs] == [("default/g", 0, 2)]


def test_members_that_stay_count_for_those_that_move() -> None:
    stays, moves = member("stays", node="n2", cpu="1"), member("moves", node="n1", cpu="1")
    world = world_of(node("n1"), node("n2"), pod_group(gang=2), stays, moves, gates=GROUPS)

    said = displacing.lose(world, "n1", ["n1"])

    assert said.moves == {"default/moves": "n2"}
    assert said.gangs == ()
    world.cluster.validate()


def test_more_nodes_place_a_pending_gang_as_a_whole() -> None:
    world = world_of(node("n1", cpu="1"), pod_group(gang=3), *_members(3, cpu="1"), gates=GROUPS)

    assert add_nodes(world, 1, "n1").placed_after == 0
    assert add_nodes(world, 2, "n1").placed_after == 3
