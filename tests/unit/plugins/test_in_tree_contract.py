"""What holds for every in-tree plugin.

Row-local plugins promise that a row's answer depends on that row alone; plugins with a proven
range promise that nobody need look whether their scores are within 0 and 100. Both promises are
tried on random clusters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.cluster.node_rows import NodeRows
from kubesched.config.args import (
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import Plugin, RowFilter, RowScore, extension_points
from kubesched.framework.runtime import Framework
from kubesched.plugins.in_tree import IN_TREE
from tests.support.evaluating import feasible_rows, total_scores
from tests.support.objects import node, pod
from tests.support.random_cluster import ASKING, EVENTS, FIRST_NODES, Event, grown_from
from tests.support.scheduling import cluster_of, framework_of

ROW_FILTERS = sorted(name for name, each in IN_TREE.items() if issubclass(each, RowFilter))
ROW_SCORES = sorted(name for name, each in IN_TREE.items() if issubclass(each, RowScore))


# --- formalities ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(IN_TREE))
def test_a_plugin_is_known_by_its_class_name_and_implements_something(name: str) -> None:
    plugin: type[Plugin] = IN_TREE[name]
    assert plugin.__name__ == name
    assert extension_points(plugin)
    assert plugin.__doc__


def test_there_are_row_local_plugins_to_try() -> None:
    assert set(ROW_FILTERS) >= {"NodeName", "NodePorts", "NodeAffinity", "NodeResourcesFit"}
    assert set(ROW_SCORES) >= {"ImageLocality", "TaintToleration", "NodeResourcesFit"}


# --- row-local --------------------------------------------------------------------------------


def _row_local(framework: Framework) -> tuple[list[RowFilter], list[RowScore]]:
    instances = framework.plugins.instances.values()
    filters = [each for each in instances if isinstance(each, RowFilter)]
    scores = [each for each in instances if isinstance(each, RowScore)]
    assert [sorted(each.name for each in some) for some in (filters, scores)] == [
        ROW_FILTERS,
        ROW_SCORES,
    ], "the default profile has all of them"
    return filters, scores


@given(nodes=FIRST_NODES, events=st.lists(EVENTS, max_size=10), data=st.data())
@settings(max_examples=60)
def test_rows_one_by_one_answer_as_all_rows_at_once(
    nodes: list[Node], events: list[Event], data: st.DataObject
) -> None:
    cluster = grown_from(nodes, events)
    filters, scores = _row_local(framework_of(cluster))
    table = cluster.table
    rows = st.lists(st.sampled_from(range(table.size)), unique=True)
    subsets = [*([row] for row in range(table.size)), data.draw(rows, label="rows")]
    askers = data.draw(st.lists(st.sampled_from(ASKING), min_size=1, max_size=4), label="pods")
    for shape in (cluster.compiler.pending(asking).shape for asking in askers):
        for each in filters:
            together = each.filter(shape, NodeRows.all_of(table))
            for some in subsets:
                alone = each.filter(shape, NodeRows(table, np.array(some, dtype=np.intp)))
                assert [alone.status_of(element) for element in range(len(some))] == [
                    together.status_of(row) for row in some
                ], each.name
            in_numbers = each.row_filter(shape, table)
            if in_numbers is not None:
                assert [in_numbers(row) for row in range(table.size)] == [
                    together.status_of(row) for row in range(table.size)
                ], each.name
        for one in scores:
            all_scores = one.score(shape, NodeRows.all_of(table))
            for some in subsets:
                few_scores = one.score(shape, NodeRows(table, np.array(some, dtype=np.intp)))
                assert few_scores.tolist() == all_scores[some].tolist(), one.name


@given(nodes=FIRST_NODES, asking=st.sampled_from(ASKING))
@settings(max_examples=20)
def test_nobody_writes_into_the_table(nodes: list[Node], asking: Pod) -> None:
    cluster = grown_from(nodes, [])
    filters, scores = _row_local(framework_of(cluster))
    table, shape = cluster.table, cluster.compiler.pending(asking).shape
    for each in filters:
        each.filter(shape, NodeRows.all_of(table))
    for one in scores:
        before = one.score(shape, NodeRows.all_of(table))
        before += 1000  # whoever gets scores may keep and change them
        again = one.score(shape, NodeRows.all_of(table))
        assert (again + 1000).tolist() == before.tolist(), one.name
    cluster.validate()


# --- scores within range ----------------------------------------------------------------------

#: Nearly the most that can be multiplied by 100 in 64 bits.
HUGE_MEMORY, HUGE_CPU = "80Pi", "90T"

_SHAPES = [((0, 0), (100, 10)), ((0, 10), (100, 0)), ((10, 3), (50, 10), (99, 1))]


def _strategy(kind: str, points: Sequence[tuple[int, int]]) -> ScoringStrategy:
    shape = tuple(UtilizationShapePoint(utilization=at, score=score) for at, score in points)
    ratio = RequestedToCapacityRatioParam(shape=shape)
    return ScoringStrategy(type=kind, requested_to_capacity_ratio=ratio)


STRATEGIES = [
    ScoringStrategy(),
    ScoringStrategy(type=MOST_ALLOCATED),
    *(_strategy(REQUESTED_TO_CAPACITY_RATIO, points) for points in _SHAPES),
]

HUGE_NODES = st.lists(
    st.builds(
        node,
        st.sampled_from([f"n{number}" for number in range(6)]),
        cpu=st.sampled_from(["0", "1m", "3", HUGE_CPU]),
        memory=st.sampled_from(["0", "1", "7Gi", HUGE_MEMORY]),
        labels=st.sampled_from([None, {"disk": "ssd", "gen": "3"}]),
        taints=st.sampled_from([(), ("old:PreferNoSchedule", "slow:PreferNoSchedule")]),
        images=st.sampled_from([None, {"web:latest": 1}, {"web:latest": 2**62}]),
    ),
    min_size=2,
    max_size=6,
    unique_by=lambda each: each.metadata.name,
)
HUGE_PODS = st.builds(
    pod,
    st.sampled_from([f"p{number}" for number in range(6)]),
    node=st.sampled_from([f"n{number}" for number in range(6)]),
    cpu=st.sampled_from([None, "1m", HUGE_CPU]),
    memory=st.sampled_from([None, "1", HUGE_MEMORY]),
)
HUGE_ASKING = [
    *ASKING,
    pod("huge", cpu=HUGE_CPU, memory=HUGE_MEMORY),
    pod("lopsided", cpu="1m", memory=HUGE_MEMORY),
]


@given(
    nodes=HUGE_NODES,
    placed=st.lists(HUGE_PODS, max_size=6),
    asking=st.sampled_from(HUGE_ASKING),
    strategy=st.sampled_from(STRATEGIES),
)
@settings(max_examples=150)
def test_scores_of_plugins_with_a_proven_range_are_in_it(
    nodes: list[Node], placed: list[Pod], asking: Pod, strategy: ScoringStrategy
) -> None:
    cluster = cluster_of(*nodes, *placed)
    args = {"NodeResourcesFit": NodeResourcesFitArgs(scoring_strategy=strategy)}
    evaluator = framework_of(cluster, args=args).evaluator
    info = cluster.compiler.pending(asking)
    # All nodes, feasible or not: what is proven is proven for any of them.
    rows = cluster.table.order.rows()
    for scores in evaluator.plugin_scores(CycleState(), info, rows):
        if getattr(IN_TREE[scores.plugin], "proven_range", False):
            assert scores.normalized.min() >= 0, scores.plugin
            assert scores.normalized.max() <= 100, scores.plugin


@given(nodes=FIRST_NODES, events=st.lists(EVENTS, max_size=8), asking=st.sampled_from(ASKING))
@settings(max_examples=60)
def test_totals_are_the_weighted_sums_of_what_is_in_range(
    nodes: list[Node], events: list[Event], asking: Pod
) -> None:
    cluster = grown_from(nodes, events)
    evaluator = framework_of(cluster).evaluator
    info, state = cluster.compiler.pending(asking), CycleState()
    rows = feasible_rows(evaluator, state, info)
    if isinstance(rows, Diagnosis):
        return
    scores = evaluator.plugin_scores(state, info, rows)
    for each in scores:
        assert each.normalized.min() >= 0
        assert each.normalized.max() <= 100
    want = [
        sum(int(each.normalized[element]) * each.weight for each in scores)
        for element in range(len(rows))
    ]
    assert total_scores(evaluator, CycleState(), info, rows).tolist() == want
