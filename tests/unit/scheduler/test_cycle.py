"""One pod, all nodes, one decision."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Filter, PreFilter, PreFilterResult, PreScore, Score
from kubesched.framework.status import SUCCESS, Code, Status, error
from kubesched.framework.verdict import ALL_PASS, Verdict
from kubesched.scheduler.cycle import Decision, SchedulingCycle
from tests.support.given_plugins import filters, scores
from tests.support.objects import must, named, node, pod, pod_term, requires
from tests.support.scheduling import Lab


def schedule(lab: Lab, asking: Pod, *, seed: int = 1) -> Decision:
    return SchedulingCycle(lab.cluster, seed=seed).schedule(lab.framework, lab.pending(asking))


def test_the_best_node_is_chosen() -> None:
    lab = Lab(node("small", cpu="2"), node("large", cpu="64"), node("closed", unschedulable=True))
    decision = schedule(lab, pod(cpu="1"))
    assert (decision.node_name, decision.status.ok) == ("large", True)
    assert (decision.evaluated_nodes, decision.feasible_nodes) == (3, 2)


def test_the_only_feasible_node_is_not_scored() -> None:
    broken: type[Score] = scores("Broken", lambda nodes: np.full(len(nodes), -7))
    lab = Lab(node("a"), node("b", cpu="0"), plugins=[broken], only=["NodeResourcesFit"])
    assert schedule(lab, pod(cpu="1")).node_name == "a"
    lab.cluster.put_node(node("b"))
    assert schedule(lab, pod(cpu="1")).status.code is Code.ERROR


def test_ties_are_settled_by_the_seed_and_all_nodes_get_their_turn() -> None:
    lab = Lab(*(node(f"n{number}") for number in range(8)))
    chosen = {seed: schedule(lab, pod(), seed=seed).node_name for seed in range(40)}
    assert len(set(chosen.values())) > 4
    assert chosen == {seed: schedule(lab, pod(), seed=seed).node_name for seed in range(40)}


def test_no_nodes_at_all() -> None:
    decision = schedule(Lab(), pod())
    assert decision.status.message == "no nodes available to schedule pods"
    assert (decision.node_name, decision.nominated_node) == ("", "")
    assert decision.diagnosis is None


def test_an_error_has_no_diagnosis_and_takes_the_nomination_back() -> None:
    lab = Lab(node("a"), plugins=[filters("Bad", {"a": error("disk on fire")})], only=[])
    decision = schedule(lab, pod())
    assert decision.status.code is Code.ERROR
    assert decision.status.message == 'running "Bad" filter plugin: disk on fire'
    assert (decision.diagnosis, decision.nominated_node) == (None, "")


def test_a_pod_that_fits_nowhere_may_make_room() -> None:
    lab = Lab(node("n1", cpu="1"), pod("a", node="n1", cpu="1"))
    decision = schedule(lab, pod("p", cpu="1", priority=5))
    assert (decision.node_name, decision.nominated_node) == ("", "n1")
    assert decision.status.message == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement for "
        "pod on node n1, preempting 1 victims"
    )
    assert decision.diagnosis is not None
    assert decision.diagnosis.unschedulable_plugins == {"NodeResourcesFit"}
    assert lab.evictor.evicted == [("p", "n1", ["a"])]


def test_a_polite_pod_keeps_its_nomination() -> None:
    lab = Lab(node("n1", cpu="1"), pod("a", node="n1", cpu="1"))
    asking = pod("p", cpu="1", priority=5)
    polite = replace(asking, spec=replace(asking.spec, preemption_policy="Never"))
    assert schedule(lab, polite).nominated_node is None


def test_without_anybody_to_make_room_a_nomination_is_taken_back() -> None:
    lab = Lab(node("n1", cpu="1"), only=["NodeResourcesFit"])
    decision = schedule(lab, pod(cpu="2"))
    assert decision.status.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert decision.nominated_node == ""


def test_without_scores_one_feasible_node_is_enough() -> None:
    lab = Lab(*(node(f"n{number}") for number in range(8)), only=["NodeResourcesFit"])
    lab.framework.plugins.score.clear()
    decision = schedule(lab, pod())
    assert (decision.feasible_nodes, decision.evaluated_nodes) == (1, 1)


def test_a_profile_that_asks_for_some_nodes_only_gets_others_each_time() -> None:
    lab = Lab(*(node(f"n{number:03d}") for number in range(300)))
    lab.framework.percentage_of_nodes_to_score = 5
    cycle = SchedulingCycle(lab.cluster, seed=1)

    decisions = [cycle.schedule(lab.framework, lab.pending(pod())) for _ in range(3)]

    assert [each.feasible_nodes for each in decisions] == [100, 100, 100]
    assert [each.evaluated_nodes for each in decisions] == [100, 100, 100]
    assert [int(each.node_name[1:]) // 100 for each in decisions] == [0, 1, 2]


def test_a_profile_that_does_not_ask_for_some_gets_all_nodes() -> None:
    lab = Lab(*(node(f"n{number:03d}") for number in range(300)))

    decision = schedule(lab, pod())

    assert (decision.feasible_nodes, decision.evaluated_nodes) == (300, 300)


class Counting(PreFilter, Filter, PreScore, Score):
    """Takes note of how often each point asks it in one attempt."""

    name = "Counting"
    asked: ClassVar[Counter[str]] = Counter()

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:
        Counting.asked["PreFilter"] += 1
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        return ALL_PASS

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Status:
        Counting.asked["PreScore"] += 1
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int64Array:
        Counting.asked["Score"] += 1
        return np.zeros(len(nodes), dtype=np.int64)


@pytest.mark.parametrize(
    ("asking", "points"),
    [
        pytest.param({"cpu": "1"}, {"PreFilter", "PreScore", "Score"}, id="fits"),
        pytest.param({"cpu": "9"}, {"PreFilter"}, id="fits nowhere"),
        pytest.param({"node_affinity": requires(named("a"))}, {"PreFilter"}, id="one node only"),
        pytest.param({"nominated": "a"}, {"PreFilter"}, id="nominated"),
        pytest.param(
            {"cpu": "1", "near": must(pod_term("zone", app="none"))}, {"PreFilter"}, id="no company"
        ),
    ],
)
def test_a_plugin_is_asked_once_at_each_point(asking: dict[str, Any], points: set[str]) -> None:
    """However often pods of the kind came before, which decides what is known of them."""
    lab = Lab(node("a"), node("b"), plugins=[Counting])
    for _ in range(20):
        Counting.asked.clear()
        schedule(lab, pod(**asking))
        assert Counting.asked == dict.fromkeys(points, 1)
