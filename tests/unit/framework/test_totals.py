"""Cached totals: the best rows while some are lost, and normalizers that depend on min and max."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cluster.node_order import NodeOrder
from kubesched.framework.node_by_node import HighestWins, LowestWins
from kubesched.framework.plugin import Normalize, is_by_min_max
from kubesched.framework.totals import MOST_REMOVED, BestRows, best_of
from tests.support.objects import node
from tests.support.scheduling import Lab

# --- best rows --------------------------------------------------------------------------------


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
    size = 3 * MOST_REMOVED
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


# --- normalizers ------------------------------------------------------------------------------

scores = st.lists(st.integers(0, 1000), min_size=1, max_size=20)


def promising() -> Iterator[Normalize]:
    """Every plugin of the tree that promises to look at nothing but the extremes."""
    for plugin in Lab(node("n")).framework.plugins.instances.values():
        if isinstance(plugin, Normalize) and is_by_min_max(plugin):
            yield plugin
    yield from (HighestWins(), LowestWins())


def test_who_promises() -> None:
    names = {type(each).__name__ for each in promising()}
    assert names == {"TaintToleration", "NodeAffinityPlugin", "HighestWins", "LowestWins"}


@pytest.mark.parametrize("plugin", list(promising()), ids=lambda each: type(each).__name__)
@given(data=st.data(), drawn=scores)
def test_the_promise_is_kept(plugin: Normalize, data: st.DataObject, drawn: list[int]) -> None:
    extremes = [min(drawn), max(drawn)]
    fewer = data.draw(st.lists(st.sampled_from(drawn), max_size=5))

    def normalized(values: list[int]) -> dict[int, int]:
        found = plugin.normalize(np.array(values, dtype=np.int64))
        assert found is not None
        return dict(zip(values, found.tolist(), strict=True))

    everywhere, here = normalized(drawn), normalized([*fewer, *extremes])
    assert here.items() <= everywhere.items()
