"""Headroom, drain, loss and new nodes with claims to devices."""

from __future__ import annotations

from typing import Any

from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import ResourceClaimTemplate, ResourceClaimTemplateSpec
from kubesched.simulate import displacing
from kubesched.simulate.comparing import add_nodes
from kubesched.simulate.headroom import headroom
from tests.support.device_objects import (
    allocated,
    claim,
    claiming,
    claiming_from_template,
    device,
    device_class,
    request,
    result,
    slice_of,
)
from tests.support.objects import node, pod
from tests.support.worlds import world_of


def template(count: int = 1) -> ResourceClaimTemplate:
    return ResourceClaimTemplate(
        metadata=ObjectMeta(name="t", namespace="default"),
        spec=ResourceClaimTemplateSpec(spec=claim("c", request("r", count=count)).spec),
    )


def gpus(name: str, count: int) -> Any:
    return slice_of(f"s-{name}", *(device(f"g{number}") for number in range(count)), node=name)


def using(name: str, device_name: str, node_name: str) -> list[Any]:
    made = claiming(pod(name, node=node_name), f"c-{name}")
    owned = claim(f"c-{name}", request())
    return [made, allocated(owned, result(device_name, node_name), users=[made.metadata.uid])]


def test_headroom_counts_pods_that_each_have_a_claim_of_the_template() -> None:
    world = world_of(
        node("n1"), node("n2"), device_class(), gpus("n1", 4), gpus("n2", 3), template(2)
    )

    said = headroom(world, claiming_from_template(pod("p"), "t"))

    assert said.by_node == {"n1": 2, "n2": 1}
    assert said.message == "0/2 nodes are available: 2 cannot allocate all claims."
    assert not len(world.cluster.devices.claims)
    assert not len(world.cluster.devices.uses)
    world.cluster.validate()


def test_headroom_of_a_pod_that_has_a_claim_makes_others_like_it() -> None:
    world = world_of(node("n1"), device_class(), gpus("n1", 3), template(), *using("a", "g0", "n1"))

    said = headroom(world, claiming_from_template(pod("p"), "t", "made-before"))

    assert said.pods == 2


def test_pods_of_a_drained_node_leave_their_devices_and_take_others() -> None:
    world = world_of(
        node("n1"),
        node("n2"),
        device_class(),
        gpus("n1", 2),
        gpus("n2", 1),
        *using("a", "g0", "n1"),
        *using("b", "g1", "n1"),
    )

    said = displacing.drain(world, ["n1"])

    assert said.moves == {"default/a": "n2"}
    assert [each.message for each in said.left] == [
        "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) were unschedulable."
    ]
    assert len(world.cluster.devices.uses) == 2
    world.cluster.validate()


def test_devices_of_a_lost_node_are_lost() -> None:
    world = world_of(node("n1"), node("n2"), device_class(), gpus("n1", 1), *using("a", "g0", "n1"))

    said = displacing.lose(world, "n1", ["n1"])

    assert (said.placed, len(said.left)) == (0, 1)


def test_a_new_node_comes_with_devices() -> None:
    waiting = [claiming(pod(f"p{number}"), f"c{number}") for number in range(3)]
    world = world_of(
        node("n1"),
        device_class(),
        gpus("n1", 1),
        *waiting,
        *(claim(f"c{number}", request()) for number in range(3)),
    )

    said = add_nodes(world, 1, "n1")

    assert (said.placed_before, said.placed_after) == (1, 2)
    assert len(world.cluster.devices.table) == 1
