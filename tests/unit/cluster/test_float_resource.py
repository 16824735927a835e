"""Resources in floats follow the table, and say when they may be used."""

from __future__ import annotations

import pytest

from kubesched.cluster.float_resource import SMALL
from kubesched.cluster.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from tests.support.objects import node, on_node, pod
from tests.support.scheduling import cluster_of


def test_amounts_follow_pods_and_nodes() -> None:
    cluster = cluster_of(node("a", cpu="4"), node("b", cpu="8"))
    table = cluster.table
    assert table.float_resource(CPU).allocatable.tolist() == [4000, 8000]
    assert table.float_resource(CPU).requested.tolist() == [0, 0]

    cluster.put_pod(on_node(pod("p", cpu="3"), "b"))
    assert table.float_resource(CPU).requested.tolist() == [0, 3000]
    cluster.put_node(node("a", cpu="2"))
    cluster.put_node(node("c", cpu="1"))
    assert table.float_resource(CPU).allocatable.tolist() == [2000, 8000, 1000]
    cluster.remove_pod("p")
    assert table.float_resource(CPU).requested.tolist() == [0, 0, 0]
    table.validate()


def test_pods_that_request_nothing_take_a_little_if_asked_for() -> None:
    table = cluster_of(node("a"), pod("p", node="a")).table
    assert table.float_resource(CPU).requested.tolist() == [0]
    assert table.float_resource(CPU).non_zero_requested.tolist() == [100]


def test_of_other_resources_pods_count_with_what_they_request() -> None:
    table = cluster_of(
        node("a", resources={"ephemeral-storage": "5"}),
        pod("p", node="a", requests={"ephemeral-storage": "2"}),
    ).table
    storage = table.float_resource(EPHEMERAL_STORAGE)
    assert storage.non_zero_requested.tolist() == storage.requested.tolist() == [2]


def test_rows_without_any_are_divided_by_one() -> None:
    table = cluster_of(node("a", resources={"ephemeral-storage": "5"}), node("b")).table
    storage = table.float_resource(EPHEMERAL_STORAGE)
    assert storage.allocatable.tolist() == [5, 0]
    assert storage.divisor.tolist() == [5, 1]
    assert not storage.is_everywhere
    assert table.float_resource(CPU).is_everywhere


@pytest.mark.parametrize("large", [SMALL, 1 << 60])
def test_amounts_that_floats_may_not_hold_are_not_small(large: int) -> None:
    cluster = cluster_of(node("a"), node("b", memory=str(SMALL - 1)))
    table = cluster.table
    assert table.float_resource(MEMORY).is_small

    cluster.put_pod(on_node(pod("p", memory=str(large)), "a"))
    assert not table.float_resource(MEMORY).is_small
    assert table.float_resource(CPU).is_small
    cluster.remove_pod("p")
    assert table.float_resource(MEMORY).is_small
    assert table.float_resource(MEMORY).requested.tolist() == [0, 0]

    cluster.put_node(node("b", memory=str(large)))
    assert not table.float_resource(MEMORY).is_small
    table.validate()


def test_a_node_that_comes_or_is_resized_is_read_alone() -> None:
    cluster = cluster_of(*(node(name, cpu="4") for name in "abcdefgh"))
    cluster.remove_node("h")
    cpu = cluster.table.float_resource(CPU)
    assert not cpu.is_everywhere
    of_all = cpu.requested

    cluster.put_node(node("a", cpu="2"))
    assert cluster.table.float_resource(CPU).divisor.tolist() == [2000, *[4000] * 6, 1]
    assert cpu.requested is of_all
    cluster.put_node(node("h", cpu="1"))
    assert cluster.table.float_resource(CPU).is_everywhere
    cluster.table.validate()


def test_the_table_may_grow_while_a_row_has_none() -> None:
    cluster = cluster_of(*map(node, "abcdef"), node("g", resources={"ephemeral-storage": "5"}))
    table = cluster.table
    assert table.float_resource(EPHEMERAL_STORAGE).divisor.tolist() == [1] * 6 + [5]
    cluster.put_node(node("h", resources={"ephemeral-storage": "7"}))
    cluster.put_node(node("i"))
    assert table.float_resource(EPHEMERAL_STORAGE).divisor.tolist() == [1] * 6 + [5, 7, 1]
    table.validate()
