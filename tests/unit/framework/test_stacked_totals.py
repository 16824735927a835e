"""What a row would be worth with more pods is what it is worth with them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.cluster.pod_info import PodInfo
from kubesched.config.args import NodeResourcesFitArgs, ResourceSpec, ScoringStrategy
from kubesched.framework.node_by_node import CachedNodeScore, NodeView, SignatureView
from kubesched.framework.plan import SignaturePlan
from kubesched.framework.stacked_totals import MOST_ALONE, OUT_OF_RANGE
from kubesched.framework.totals import INFEASIBLE
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

MOST = NodeResourcesFitArgs(
    scoring_strategy=ScoringStrategy(
        type="MostAllocated", resources=(ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
    )
)
#: by the row alone, and in arrays
STRATEGIES: dict[str, Any] = {"least": {}, "most": {"NodeResourcesFit": MOST}}


class Crowd(CachedNodeScore):
    """A score that leaves its range with the third pod."""

    name = "Crowd"

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        return 100 if node.pod_count < 3 else 101


def plan_of(lab: Lab, info: PodInfo) -> SignaturePlan:
    return lab.framework.evaluator.plans.plan(info.signature.row_signature)


def with_them(lab: Lab, row: int, more: int, **options: Any) -> int:
    """Place pods on a row, and return its total then."""
    table = lab.cluster.table
    with lab.cluster.transaction() as tx:
        for number in range(more):
            tx.place(lab.pending(pod(f"more-{number}", **options)), table.name_at(row))
        plan = plan_of(lab, lab.pending(pod("next", **options)))
        plan.passing.refresh()
        plan.totals.refresh()
        return int(plan.totals.totals[row])


@settings(max_examples=60, deadline=None)
@given(
    strategy=st.sampled_from(sorted(STRATEGIES)),
    cpus=st.lists(st.sampled_from(["1", "2", "3"]), min_size=1, max_size=4),
    requests=st.sampled_from([{"cpu": "1"}, {"cpu": "500m", "memory": "1Gi"}, {}]),
    asked=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=60),
)
def test_totals_are_those_with_the_pods_placed(
    strategy: str,
    cpus: list[str],
    requests: dict[str, Any],
    asked: list[tuple[int, int]],
) -> None:
    nodes = [node(f"n{number}", cpu=cpu, pods=4) for number, cpu in enumerate(cpus)]
    lab = Lab(*nodes, pod("old", node="n0", cpu="500m"), args=STRATEGIES[strategy])
    info = lab.pending(pod("p", **requests))
    stacked = plan_of(lab, info).stacked(info.requests)
    for number, more in asked:
        row = number % len(cpus)
        stacked.refresh()
        assert stacked.total(row, more) == with_them(lab, row, more, **requests), (row, more)
    stacked.validate()


def test_the_cluster_stays_as_it_is() -> None:
    lab = Lab(node("n0"), node("n1"))
    table, info = lab.cluster.table, lab.pending(pod("p", cpu="1"))
    before, position = table.requested.copy(), table.row_changes.position
    stacked = plan_of(lab, info).stacked(info.requests)
    stacked.refresh()
    for more in range(MOST_ALONE + 2):
        stacked.total(0, more)
    assert (table.requested == before).all()
    assert table.row_changes.position == position
    lab.cluster.validate()


def test_a_row_that_changed_is_evaluated_again() -> None:
    lab = Lab(node("n0", cpu="2"), node("n1", cpu="2"))
    info = lab.pending(pod("p", cpu="1"))
    stacked = plan_of(lab, info).stacked(info.requests)
    stacked.refresh()
    assert stacked.total(0, 1) >= 0
    assert stacked.total(1, 1) >= 0
    lab.cluster.assume(lab.pending(pod("other", cpu="1")), "n0")
    stacked.refresh()
    assert stacked.total(0, 1) == INFEASIBLE
    assert stacked.total(1, 1) >= 0


@pytest.mark.parametrize("args", STRATEGIES.values(), ids=STRATEGIES)
def test_a_score_that_would_be_out_of_range_is_told(args: Any) -> None:
    lab = Lab(node("n0"), plugins=[Crowd], args=args)
    info = lab.pending(pod("p", cpu="1"))
    stacked = plan_of(lab, info).stacked(info.requests)
    stacked.refresh()
    assert stacked.total(0, 2) >= 0
    assert stacked.total(0, 3) == OUT_OF_RANGE
