"""percentageOfNodesToScore: enough feasible nodes, from where the last search ended."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.scheduler.sampling import NodeSampler, enough_nodes
from tests.support.objects import node
from tests.support.scheduling import cluster_of


@pytest.mark.parametrize(
    ("total", "percentage", "want"),
    [
        pytest.param(50, 10, 50, id="small clusters are looked at as a whole"),
        pytest.param(99, 1, 99, id="just below the floor"),
        pytest.param(1000, 5, 100, id="never fewer than a hundred"),
        pytest.param(1000, 42, 420, id="a share of the nodes"),
        pytest.param(5000, 10, 500, id="a share of more nodes"),
        pytest.param(5000, 0, 5000, id="unset means all"),
        pytest.param(5000, 100, 5000, id="all means all"),
    ],
)
def test_enough_nodes(total: int, percentage: int, want: int) -> None:
    assert enough_nodes(total, percentage) == want


def sampler_of(count: int) -> NodeSampler:
    return NodeSampler(cluster_of(*(node(f"n{number}") for number in range(count))).table)


def test_the_next_search_starts_where_the_last_one_ended() -> None:
    sampler = sampler_of(10)
    everywhere = np.arange(10)

    searches = [sampler.sample(everywhere, 4)[0].tolist() for _ in range(3)]

    assert searches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]


def test_nodes_that_do_not_fit_are_passed_and_count_as_looked_at() -> None:
    sampler = sampler_of(10)

    rows, looked_at = sampler.sample(np.array([1, 5, 8]), 2)
    assert (rows.tolist(), looked_at) == ([1, 5], 6)

    rows, looked_at = sampler.sample(np.array([1, 5, 8]), 2)
    assert (rows.tolist(), looked_at) == ([8, 1], 6)


def test_the_start_stays_when_all_nodes_were_looked_at() -> None:
    sampler = sampler_of(10)
    sampler.sample(np.arange(10), 3)

    rows, looked_at = sampler.sample(np.array([7, 2]), 5)
    assert (rows.tolist(), looked_at) == ([7, 2], 10)

    assert sampler.sample(np.arange(10), 2)[0].tolist() == [3, 4]


def test_the_order_is_one_of_each_zone_in_turn() -> None:
    cluster = cluster_of(*(node(f"n{n}", zone="a" if n < 3 else "b") for n in range(6)))
    sampler = NodeSampler(cluster.table)

    rows, _ = sampler.sample(np.arange(6), 4)

    assert [cluster.table.name_at(row) for row in rows] == ["n0", "n3", "n1", "n4"]
