"""Filters beside nominated pods: their room is left to them, and nothing is really placed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api import names
from kubesched.api.core import Pod
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nominated_filter import NominatedFilter
from kubesched.framework.plugin import Filter
from kubesched.framework.status import Code, unschedulable
from kubesched.framework.verdict import Verdict, reject
from tests.support.evaluating import feasible_rows
from tests.support.objects import must, node, pod, pod_term, spread_over
from tests.support.scheduling import Lab

from .attempts import NODES

ZONE, WEB = names.LABEL_ZONE, {"app": "web"}
ZONES = {"a": "x", "b": "x", "c": "y", "d": "z"}
#: name → a pod whose filters take this way
ASKING = {
    "about sums only": lambda cpu, priority: pod("me", cpu=cpu, priority=priority),
    "with a spread": lambda cpu, priority: pod(
        "me", cpu=cpu, priority=priority, labels=WEB, spread=[spread_over(ZONE, app="web")]
    ),
    "with anti-affinity": lambda cpu, priority: pod(
        "me", cpu=cpu, priority=priority, away_from=must(pod_term(ZONE, app="web"))
    ),
    "with affinity": lambda cpu, priority: pod(
        "me", cpu=cpu, priority=priority, near=must(pod_term(ZONE, app="web"))
    ),
    "with a host port": lambda cpu, priority: pod("me", cpu=cpu, priority=priority, ports=[80]),
}


def _with_nominated(priority: int, *, cpu: str = "3", node_name: str = "b") -> Lab:
    lab = Lab(*NODES)
    other = lab.pending(pod("other", cpu=cpu, priority=priority))
    lab.cluster.nominator.nominate(other, node_name)
    return lab


@pytest.mark.parametrize(
    ("priority", "want"),
    [
        pytest.param(4, ["a", "b", "c"], id="not for less important pods"),
        pytest.param(5, ["a", "c"], id="for equally important pods"),
        pytest.param(6, ["a", "c"], id="for more important pods"),
    ],
)
def test_room_is_left_for_nominated_pods(priority: int, want: list[str]) -> None:
    lab = _with_nominated(priority)
    position = lab.cluster.table.row_changes.position
    assert lab.feasible(pod("me", cpu="2", priority=5)) == want
    lab.cluster.validate()
    assert lab.cluster.table.row_changes.position == position, "nothing was really placed"


def test_room_is_left_only_as_far_as_it_is_needed() -> None:
    assert _with_nominated(9).feasible(pod("me", cpu="1")) == ["a", "b", "c"]


def test_the_message_says_what_is_lacking_with_the_nominated_pod_in_place() -> None:
    lab = Lab(node("a"))
    lab.cluster.nominator.nominate(lab.pending(pod("other", cpu="3")), "a")
    diagnosis = lab.diagnosis(pod("me", cpu="2"))
    assert diagnosis.message() == "0/1 nodes are available: 1 Insufficient cpu."
    assert diagnosis.status_of(0).code is Code.UNSCHEDULABLE


def test_room_is_left_on_the_own_nominated_node_too() -> None:
    lab = _with_nominated(9)
    assert lab.feasible(pod("me", cpu="2", nominated="b")) == ["a", "c"]


def test_a_pod_does_not_leave_room_for_itself() -> None:
    lab = Lab(*NODES)
    me = pod("me", cpu="3", nominated="b")
    lab.cluster.nominator.nominate(lab.pending(me), "b")
    assert lab.feasible(me) == ["b"]


def test_a_nomination_to_a_node_that_is_gone_costs_nobody_anything() -> None:
    lab = _with_nominated(9, node_name="x")
    assert lab.feasible(pod("me", cpu="2")) == ["a", "b", "c"]


class Companion(Filter):
    """Only takes nodes that have a pod already: with nominated pods only is not enough."""

    name = "Companion"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        return reject(nodes.pod_count == 0, unschedulable("lonely"))


def test_a_node_must_pass_both_with_and_without_the_nominated_pods() -> None:
    lab = Lab(*NODES, pod("there", node="a"), plugins=[Companion], only=["NodeResourcesFit"])
    for node_name in ("a", "b"):
        other = lab.pending(pod(f"other-{node_name}", cpu="1", priority=1))
        lab.cluster.nominator.nominate(other, node_name)
    assert lab.feasible(pod("me", cpu="1")) == ["a"]
    assert lab.feasible(pod("me", cpu="4")) == []


def test_a_pod_that_is_assumed_and_still_nominated_counts_once() -> None:
    lab = Lab(node("n1"), node("n2"))
    coming = lab.pending(pod("p", cpu="1", nominated="n1"))
    lab.cluster.nominator.nominate(coming, "n1")
    lab.cluster.assume(coming, "n1")
    assert lab.feasible(pod("other", cpu="3")) == ["n1", "n2"]
    assert lab.feasible(pod("larger", cpu="4")) == ["n2"]
    lab.cluster.validate()


def test_host_ports_of_nominated_pods_are_taken() -> None:
    lab = Lab(*NODES)
    lab.cluster.nominator.nominate(lab.pending(pod("other", ports=[80], priority=1)), "b")
    assert lab.feasible(pod("me", ports=[80])) == ["a", "c"]
    assert lab.feasible(pod("me", ports=[81])) == ["a", "b", "c"]


def test_only_rows_that_are_asked_about_and_matter_are_evaluated() -> None:
    """Each row costs a transaction; the others keep the number of no rejection."""
    lab = Lab(*NODES)
    for name in ("a", "b"):
        other = lab.pending(pod(f"other-{name}", ports=[80], priority=1))
        lab.cluster.nominator.nominate(other, name)
    table, me = lab.cluster.table, lab.pending(pod("me", ports=[80]))
    some = NodeRows(table, np.array([1, 2]))

    assert _rejected(lab, me, NodeRows.all_of(table)) == ["a", "b"]
    assert _rejected(lab, me, some) == ["b"]
    assert _rejected(lab, me, some, [False, True]) == []


def _rejected(lab: Lab, me: PodInfo, nodes: NodeRows, mask: list[bool] | None = None) -> list[str]:
    evaluator, state = lab.framework.evaluator, CycleState()
    beside = NominatedFilter(evaluator.filters, lab.cluster, evaluator.book)
    numbers = beside.rejections(
        state,
        me,
        evaluator.plans.plan(me.signature.row_signature),
        nodes,
        None if mask is None else np.array(mask),
    )
    return lab.names(nodes.row_numbers()[numbers > 0])


@given(
    asking=st.sampled_from(sorted(ASKING)),
    nominated=st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(1, 4), st.integers(0, 2), st.booleans()),
        max_size=6,
    ),
    placed=st.lists(st.sampled_from("abcd"), max_size=2),
    cpu=st.integers(1, 5),
    priority=st.integers(0, 2),
)
def test_all_rows_at_once_say_what_each_row_says_by_itself(
    asking: str,
    nominated: list[tuple[str, int, int, bool]],
    placed: list[str],
    cpu: int,
    priority: int,
) -> None:
    lab = Lab(
        *(
            node(name, cpu="4", pods=2, zone=zone)
            for name, zone in zip("abcd", "xxyz", strict=True)
        ),
        *(pod(f"there-{number}", node=name, labels=WEB) for number, name in enumerate(placed)),
    )
    for number, (name, amount, of, is_web) in enumerate(nominated):
        labels = WEB if is_web else {}
        other = pod(f"other-{number}", cpu=str(amount), priority=of, labels=labels, ports=[80])
        lab.cluster.nominator.nominate(lab.pending(other), name)
    me: Pod = ASKING[asking](str(cpu), priority)

    assert _together(lab, me) == _one_by_one(lab, me)


def _together(lab: Lab, me: Pod) -> dict[str, int]:
    evaluator, info, state = lab.framework.evaluator, lab.pending(me), CycleState()
    feasible_rows(evaluator, state, info)
    nodes = NodeRows.all_of(lab.cluster.table)
    plan = evaluator.plans.plan(info.signature.row_signature)
    beside = NominatedFilter(evaluator.filters, lab.cluster, evaluator.book)
    numbers = beside.rejections(state, info, plan, nodes).tolist()
    reserving = lab.cluster.nominated_rows.reserving(info).tolist()
    found = zip(lab.names(nodes.row_numbers()), numbers, reserving, strict=True)
    return {name: number for name, number, is_reserved in found if is_reserved}


def _one_by_one(lab: Lab, me: Pod) -> dict[str, int]:
    """Node with nominated pods → the number of its first rejection once they are placed."""
    evaluator, info, state = lab.framework.evaluator, lab.pending(me), CycleState()
    feasible_rows(evaluator, state, info)
    found = {}
    for name, others in lab.cluster.nominator.nodes_to_leave_room_on(info).items():
        row = lab.cluster.table.row_of(name)
        assert row is not None
        with lab.cluster.transaction() as tx:
            for each in others:
                tx.place(each, name)
            nodes = NodeRows.one(lab.cluster.table, row)
            found[name] = int(evaluator.filters.evaluate(state, info, nodes)[0])
    return found
