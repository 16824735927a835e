"""The best rows: those with the highest total, in the order of nodes, while some are lost."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cluster.node_order import NodeOrder
from kubesched.framework.best_rows import MOST_GONE, BestRows, best_of
from tests.unit.builders import node


def order_of(zones: list[str]) -> NodeOrder:
    order = NodeOrder()
    for row, zone in enumerate(zones):
        order.place(row, node(f"n{row}", zone=zone))
    return order


def rows_of(best: BestRows, order: NodeOrder) -> list[int]:
    return [best.nth(number, order) for number in range(len(best))]


@given(
    zones=st.lists(st.sampled_from("abc"), min_size=1, max_size=150),
    data=st.data(),
)
def test_those_that_are_left_are_in_order(zones: list[str], data: st.DataObject) -> None:
    order = order_of(zones)
    size = len(zones)
    totals = np.array(data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)))
    best = best_of(totals)
    left = [row for row in order.rows().tolist() if totals[row] == best.total]
    for row in data.draw(st.permutations(left)):
        # Not asked each time: what is taken out before places are known is not skipped but unknown.
        if data.draw(st.booleans()):
            assert rows_of(best, order) == left
        assert len(best) == len(left)
        if not best.remove(row, order):
            assert left == [row]
            return
        left.remove(row)


def test_more_may_be_taken_out_than_are_skipped() -> None:
    size = 3 * MOST_GONE
    order = order_of(["a"] * size)
    best = best_of(np.zeros(size, dtype=np.int64))
    for row in range(size - 1):
        assert rows_of(best, order) == list(range(row, size))
        assert best.remove(row, order)


def test_only_rows_that_may_be_chosen_count() -> None:
    order = order_of(["a", "b", "a", "b"])
    best = best_of(np.array([5, 5, 5, 3]))
    among = best.among(np.array([False, True, True, True]))
    assert among is not None
    assert (among.total, rows_of(among, order)) == (5, [1, 2])
    assert rows_of(best, order) == [0, 1, 2]
    assert best.among(np.array([False, False, False, True])) is None


def test_they_follow_the_order_of_nodes() -> None:
    order = order_of(["a", "a", "b"])
    best = best_of(np.array([5, 5, 5]))
    assert rows_of(best, order) == [0, 2, 1]
    order.place(0, node("n0", zone="b"))
    assert rows_of(best, order) == order.rows().tolist() != [0, 2, 1]
    assert best.remove(2, order)
    assert rows_of(best, order) == [1, 0]
