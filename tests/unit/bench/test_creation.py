"""The objects of an operation, one by one."""

from __future__ import annotations

import asyncio
import time

from kubesched.bench import objects
from kubesched.bench.api_objects import each_of, encoded
from kubesched.bench.creation import claim_of, csi_node_of, node_of, paced, volume_of
from kubesched.bench.operations import (
    AllocateOnNodes,
    CreateNodes,
    LabelNodes,
    LabelNodesUniquely,
    NodePreparation,
)


def nodes(preparation: NodePreparation | None = None, *, count: int = 4) -> CreateNodes:
    return CreateNodes(count=count, template=objects.base_node, preparation=preparation)


def test_a_node_is_named_by_its_number_and_knows_its_host() -> None:
    made = node_of(nodes(), 1, number=11)

    assert made["metadata"] == {
        "name": "node-00011",
        "labels": {"kubernetes.io/hostname": "node-00011"},
    }
    assert "generateName" in objects.base_node(0, 1)["metadata"], "the template is left alone"


def test_a_node_that_has_a_name_keeps_it() -> None:
    operation = CreateNodes(count=1, template=objects.same(objects.node(name="the-one")))

    assert node_of(operation, 0, number=3)["metadata"]["name"] == "the-one"


def test_labels_are_given_in_turn() -> None:
    operation = nodes(LabelNodes(key="zone", values=("a", "b", "c")))

    zones = [node_of(operation, i, number=i)["metadata"]["labels"]["zone"] for i in range(4)]

    assert zones == ["a", "b", "c", "a"]


def test_unique_labels_are_unique() -> None:
    operation = nodes(LabelNodesUniquely(key="id"))

    values = {node_of(operation, i, number=i)["metadata"]["labels"]["id"] for i in range(4)}

    assert len(values) == 4


def test_allocatable_is_added_and_the_drivers_limits_are_in_the_csi_node() -> None:
    preparation = AllocateOnNodes(
        allocatable={"volumes": "39"},
        csi_drivers={"driver": {"count": 39}},
        migrated_plugins=("p", "q"),
    )

    node = node_of(nodes(preparation), 0, number=0)
    csi = csi_node_of(preparation, "n")

    assert node["status"]["allocatable"] == {
        "cpu": "4",
        "memory": "32Gi",
        "pods": "110",
        "volumes": "39",
    }
    assert "volumes" not in objects.base_node(0, 1)["status"]["allocatable"]
    assert csi["metadata"]["annotations"] == {"storage.alpha.kubernetes.io/migrated-plugins": "p,q"}
    assert csi["spec"]["drivers"] == [
        {"name": "driver", "nodeID": "n", "allocatable": {"count": 39}}
    ]


def test_a_claim_and_its_volume_name_each_other() -> None:
    claim = claim_of(objects.claim(), "c", "v")
    volume = volume_of(objects.volume({"csi": {"driver": "d"}}), "v", namespace="ns", claim="c")

    assert claim["spec"]["volumeName"] == volume["metadata"]["name"] == "v"
    reference = volume["spec"]["claimRef"]
    assert (reference["namespace"], reference["name"]) == ("ns", "c")
    assert volume["spec"]["csi"] == {"driver": "d", "volumeHandle": "v"}
    assert claim["metadata"]["annotations"] == {"pv.kubernetes.io/bind-completed": "true"}


def test_an_in_tree_volume_has_an_id_of_its_own() -> None:
    source = {"awsElasticBlockStore": {"volumeID": "?"}}
    volume = volume_of(objects.volume(source), "v", namespace="ns", claim="c")

    assert volume["spec"]["awsElasticBlockStore"] == {"volumeID": "v"}


def test_an_object_that_comes_again_is_encoded_once() -> None:
    one, other = {"a": 1}, {"b": 2}

    bodies = encoded([one, other, one])

    assert bodies == [b'{"a":1}', b'{"b":2}', b'{"a":1}']
    assert bodies[0] is bodies[2]


def test_many_hands_do_everything_once() -> None:
    done: list[int] = []
    counts: list[int] = []
    at_once = most = 0

    async def do(thing: int) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.001)
        at_once -= 1
        done.append(thing)

    asyncio.run(each_of(range(50), do, done=counts.append, hands=8))

    assert sorted(done) == list(range(50))
    assert counts == list(range(1, 51))
    assert most == 8


def test_a_pace_is_kept() -> None:
    done: list[int] = []

    async def do(thing: int) -> None:
        done.append(thing)

    started = time.monotonic()
    asyncio.run(paced([1, 2, 3, 4, 5], do, per_second=100))

    assert done == [1, 2, 3, 4, 5]
    assert time.monotonic() - started >= 0.05
