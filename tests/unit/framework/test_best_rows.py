"""The best rows: those with the highest total, in the order of nodes, while some are lost."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_order import NodeOrder
from kubesched.framework.best_rows import MOST_GONE, BestRows
from tests.unit.builders import node


def order_of(zones: list[str]) -> NodeOrder:
    order = NodeOrder()
    for row, zone in enumerate(zones):
        order.place(row, node(f"n{row}", zone=zone))
    return order


def best_of(totals: Int64Array, order: NodeOrder) -> BestRows:
    most = int(totals.max())
    return BestRows(most, totals == most, order)


def rows_of(best: BestRows) -> list[int]:
    return [best.nth(number) for number in range(len(best))]


@given(
    zones=st.lists(st.sampled_from("abc"), min_size=1, max_size=150),
    data=st.data(),
)
def test_those_that_are_left_are_in_order(zones: list[str], data: st.DataObject) -> None:
    order = order_of(zones)
    size = len(zones)
    totals = np.array(data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)))
    best = best_of(totals, order)
    left = [row for row in order.rows().tolist() if totals[row] == best.total]
    assert rows_of(best) == left
    for row in data.draw(st.permutations(left)):
        if not best.remove(row, order):
            assert len(left) == 1 or size - len(left) >= MOST_GONE
            return
        left.remove(row)
        assert rows_of(best) == left


def test_rows_without_a_node_are_not_among_them() -> None:
    order = order_of(["a", "a", "b"])
    order.remove(1)
    assert rows_of(best_of(np.array([5, 5, 5]), order)) == [0, 2]


def test_another_order_makes_them_worthless() -> None:
    order = order_of(["a", "a", "b"])
    best = best_of(np.array([5, 5, 5]), order)
    assert best.is_of(order)
    order.place(3, node("n3", zone="b"))
    assert not best.is_of(order)
    assert not best.remove(0, order)
