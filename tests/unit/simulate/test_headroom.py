"""Headroom is what repeated placement comes to, however it is counted."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.simulate import headroom as module
from kubesched.simulate.headroom import _placed, headroom
from kubesched.simulate.placing import SequentialPlacer
from tests.support.drawn_clusters import clusters
from tests.support.objects import node, pod, spread_over
from tests.support.worlds import world_of

ZONE = "topology.kubernetes.io/zone"


def test_each_node_takes_as_many_as_its_scarcest_resource_allows() -> None:
    world = world_of(
        node("cpu", cpu="4", memory="64Gi", zone="a"),
        node("memory", cpu="64", memory="5Gi", zone="b"),
        node("pods", cpu="64", memory="64Gi", pods=3, zone="b"),
        node("full", cpu="1", memory="1Gi", zone="a"),
        pod("other", node="full", cpu="1"),
        pod("another", node="pods"),
    )

    found = headroom(world, pod("p", cpu="1", memory="1Gi"))

    assert found.by_node == {"cpu": 4, "memory": 5, "pods": 2}
    assert (found.pods, found.nodes, found.at_least) == (11, 3, False)
    assert found.by_zone == {"a": 4, "b": 7}


def test_pods_that_ask_for_nothing_fill_the_places() -> None:
    assert headroom(world_of(node("n1", pods=7)), pod("p")).pods == 7


def test_a_pod_that_fits_nowhere_has_none_and_is_told_why() -> None:
    found = headroom(world_of(node("n1", cpu="1")), pod("p", cpu="2"))

    assert found.pods == 0
    assert found.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_spread_constraints_end_it_before_room_does() -> None:
    world = world_of(
        node("a", cpu="16", labels={ZONE: "a"}), node("b", cpu="2", labels={ZONE: "b"})
    )
    wanted = pod("p", cpu="1", labels={"app": "x"}, spread=[spread_over(ZONE, app="x")])

    found = headroom(world, wanted)

    assert found.by_node == {"a": 3, "b": 2}
    assert found.message == (
        f"a domain of {ZONE} is full, and no other may have more than 1 pods more than it"
    )
    world.cluster.validate()
    assert world.cluster.pod_count == 0


def test_a_host_port_is_taken_once_on_each_node() -> None:
    assert headroom(world_of(node("a"), node("b")), pod("p", ports=[80])).pods == 2


def test_counting_ends_at_the_limit() -> None:
    found = headroom(world_of(node("n1")), pod("p", spread=[spread_over(ZONE)]), limit=0)

    assert (found.pods, found.at_least) == (0, True)


@given(clusters(), st.integers(0, 3), st.integers(0, 2))
@settings(max_examples=40)
def test_counting_all_nodes_at_once_is_placing_one_by_one(
    drawn: tuple[list[Node | Pod], Pod], cpu: int, memory: int
) -> None:
    objects, _ = drawn
    wanted = pod("p", cpu=str(cpu), memory=f"{memory}Gi")
    counted, placed = world_of(*objects), world_of(*objects)

    found = headroom(counted, wanted)
    with patch.object(module, "_counted", return_value=None):
        one_by_one = headroom(placed, wanted)

    assert one_by_one.by_node == found.by_node
    placed.cluster.validate()


_SIZES = st.integers(min_value=0, max_value=6)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    nodes=st.lists(st.tuples(st.sampled_from("abc"), _SIZES), min_size=1, max_size=6),
    there=st.lists(st.tuples(_SIZES, st.booleans()), max_size=6),
    max_skew=st.integers(min_value=1, max_value=3),
    min_domains=st.sampled_from([None, 1, 3]),
    counts_itself=st.booleans(),
)
def test_counting_by_domain_is_placing_one_by_one(
    nodes: list[tuple[str, int]],
    there: list[tuple[int, bool]],
    max_skew: int,
    min_domains: int | None,
    counts_itself: bool,
) -> None:
    objects: list[Node | Pod] = [
        node(f"n{number}", cpu=str(cpu), labels={ZONE: zone})
        for number, (zone, cpu) in enumerate(nodes)
    ]
    for number, (on, alike) in enumerate(there):
        if on < len(nodes):
            labels = {"app": "x" if alike else "y"}
            objects.append(pod(f"there-{number}", node=f"n{on}", labels=labels))
    constraint = replace(spread_over(ZONE, app="x"), max_skew=max_skew, min_domains=min_domains)
    labels = {"app": "x" if counts_itself else "z"}
    wanted = pod("p", cpu="1", labels=labels, spread=[constraint])

    counted = headroom(world_of(*objects), wanted)
    world = world_of(*objects)
    placed = _placed(world, SequentialPlacer(world), wanted, limit=100)

    assert counted.pods == placed.pods
    if counts_itself:
        assert counted.by_zone == placed.by_zone
    assert all(counted.by_node.values())
