"""What holds for every in-tree plugin.

Each keeps the promises that `kubesched.testing.check_plugin` tries on random clusters. Scores with
a proven range are within 0 and 100 for any strategy, and for amounts near the limit of 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
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
from kubesched.framework.plugin import Plugin, extension_points
from kubesched.plugins.in_tree import IN_TREE
from kubesched.testing import plugin_checks
from tests.support.evaluating import feasible_rows, total_scores
from tests.support.objects import node, pod
from tests.support.random_cluster import ASKING, EVENTS, FIRST_NODES, Event, grown_from
from tests.support.scheduling import cluster_of, framework_of

# --- formalities ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(IN_TREE))
def test_a_plugin_is_known_by_its_class_name_and_implements_something(name: str) -> None:
    plugin: type[Plugin] = IN_TREE[name]
    # The suffix tells a plugin from an API struct of the same name.
    assert plugin.__name__.removesuffix("Plugin") == name
    assert extension_points(plugin)
    assert plugin.__doc__


# --- promises ---------------------------------------------------------------------------------

CHECKS = [
    pytest.param(check, id=f"{plugin.name}-{name}")
    for plugin in IN_TREE.values()
    for name, check in plugin_checks(plugin)
]


@pytest.mark.parametrize("check", CHECKS)
def test_a_plugin_keeps_its_promises(check: Callable[[], None]) -> None:
    check()


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
