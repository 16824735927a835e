"""Resources in floats follow the table, and say when they may be used."""

from __future__ import annotations

import pytest

from kubesched.cluster.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from kubesched.cluster.stock import SMALL
from tests.unit.builders import cluster_of, node, on_node, pod


def test_amounts_follow_pods_and_nodes() -> None:
    cluster = cluster_of(node("a", cpu="4"), node("b", cpu="8"))
    table = cluster.table
    assert table.stock(CPU).there.tolist() == [4000, 8000]
    assert table.stock(CPU).taken.tolist() == [0, 0]

    cluster.put_pod(on_node(pod("p", cpu="3"), "b"))
    assert table.stock(CPU).taken.tolist() == [0, 3000]
    cluster.put_node(node("a", cpu="2"))
    cluster.put_node(node("c", cpu="1"))
    assert table.stock(CPU).there.tolist() == [2000, 8000, 1000]
    cluster.remove_pod("p")
    assert table.stock(CPU).taken.tolist() == [0, 0, 0]
    table.validate()


def test_pods_that_request_nothing_take_a_little_if_asked_for() -> None:
    table = cluster_of(node("a"), pod("p", node="a")).table
    assert table.stock(CPU).taken.tolist() == [0]
    assert table.stock(CPU, non_zero=True).taken.tolist() == [100]


def test_rows_without_any_are_divided_by_one() -> None:
    table = cluster_of(node("a", resources={"ephemeral-storage": "5"}), node("b")).table
    stock = table.stock(EPHEMERAL_STORAGE)
    assert stock.there.tolist() == [5, 0]
    assert stock.divisor.tolist() == [5, 1]
    assert not stock.is_everywhere
    assert table.stock(CPU).is_everywhere


@pytest.mark.parametrize("large", [SMALL, 1 << 60])
def test_amounts_that_floats_may_not_hold_are_not_small(large: int) -> None:
    cluster = cluster_of(node("a"), node("b", memory=str(SMALL - 1)))
    table = cluster.table
    assert table.stock(MEMORY).is_small

    cluster.put_pod(on_node(pod("p", memory=str(large)), "a"))
    assert not table.stock(MEMORY).is_small
    assert table.stock(CPU).is_small
    cluster.remove_pod("p")
    assert table.stock(MEMORY).is_small
    assert table.stock(MEMORY).taken.tolist() == [0, 0]

    cluster.put_node(node("b", memory=str(large)))
    assert not table.stock(MEMORY).is_small
    table.validate()
