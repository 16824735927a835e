"""The message that tells people why a pod fits nowhere."""

from __future__ import annotations

import numpy as np

from kubesched.framework.diagnosis import Diagnosis, refused_by_chosen_node
from kubesched.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from tests.support.objects import node, pod
from tests.support.scheduling import Lab, cluster_of


def _diagnosis(*answers: Status | None, absent: Status | None = None) -> Diagnosis:
    """A diagnosis of as many nodes as there are answers; None: the node was not looked at."""
    cluster = cluster_of(*(node(f"n{number}") for number in range(len(answers))))
    statuses = [SUCCESS, *(each for each in answers if each is not None)]
    given = iter(range(1, len(statuses)))
    numbers = np.array([0 if each is None else next(given) for each in answers], dtype=np.int32)
    return Diagnosis(cluster.table, numbers=numbers, statuses=statuses, absent=absent)


def test_reasons_are_counted_and_sorted_as_text() -> None:
    answers = [unschedulable("Insufficient cpu")] * 10 + [unresolvable("zoned out")] * 2
    assert _diagnosis(*answers).message() == (
        "0/12 nodes are available: 10 Insufficient cpu, 2 zoned out."
    )
    answers = [unschedulable("b")] * 2 + [unschedulable("a")] * 10 + [unschedulable("c")] * 9
    assert _diagnosis(*answers).message() == "0/21 nodes are available: 10 a, 2 b, 9 c."


def test_a_node_with_several_reasons_counts_for_each() -> None:
    both = unschedulable("Insufficient cpu", "Insufficient memory")
    one = unresolvable("Insufficient cpu")
    assert _diagnosis(both, one).message() == (
        "0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu."
    )


def test_nodes_that_were_not_looked_at_count_with_what_was_said_of_them() -> None:
    absent = unresolvable("node(s) didn't satisfy plugin(s) [A B]")
    diagnosis = _diagnosis(unschedulable("full"), None, None, absent=absent)
    assert diagnosis.message() == (
        "0/3 nodes are available: 1 full, 2 node(s) didn't satisfy plugin(s) [A B]."
    )
    assert diagnosis.status_of(0) == unschedulable("full")
    assert diagnosis.status_of(1) == absent


def test_nodes_that_were_not_looked_at_for_no_stated_reason_are_unresolvable_in_silence() -> None:
    diagnosis = _diagnosis(unschedulable("full"), None)
    assert diagnosis.message() == "0/2 nodes are available: 1 full."
    assert diagnosis.status_of(1) == unresolvable()


def test_rows_by_the_code_of_their_answer() -> None:
    full, gone = unschedulable("full"), unresolvable("gone")
    diagnosis = _diagnosis(full, gone, None, full)
    assert diagnosis.rows_with(Code.UNSCHEDULABLE).tolist() == [0, 3]
    assert diagnosis.rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).tolist() == [1, 2]
    assert diagnosis.rows_with(Code.PENDING).tolist() == []
    open_to_all = _diagnosis(gone, None, absent=unschedulable("not asked"))
    assert open_to_all.rows_with(Code.UNSCHEDULABLE).tolist() == [1]


def test_rows_by_code_where_all_nodes_got_the_same_answer() -> None:
    table = cluster_of(node("a"), node("b")).table
    early = Diagnosis(table, pre_filter=unschedulable("early"))
    assert early.rows_with(Code.UNSCHEDULABLE).tolist() == [0, 1]
    assert early.rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).tolist() == []
    unseen = Diagnosis(table)
    assert unseen.rows_with(Code.UNSCHEDULABLE).tolist() == []
    assert unseen.rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).tolist() == [0, 1]
    assert _diagnosis().rows_with(Code.UNSCHEDULABLE).tolist() == []


def test_a_rejection_before_any_node_was_looked_at() -> None:
    table = cluster_of(node("a"), node("b")).table
    status = unresolvable("volume is gone", "claim too").by("Volumes")
    diagnosis = Diagnosis(table, pre_filter=status)
    assert diagnosis.message() == "0/2 nodes are available: volume is gone, claim too."
    assert diagnosis.status_of(1) == status


def test_a_rejection_without_a_reason_before_any_node_was_looked_at() -> None:
    diagnosis = Diagnosis(cluster_of(node("a")).table, pre_filter=unschedulable())
    assert diagnosis.message() == "0/1 nodes are available:"
    diagnosis.post_filter_message = "preemption: no pod to evict"
    assert diagnosis.message() == "0/1 nodes are available: preemption: no pod to evict"


def test_a_rejection_by_the_chosen_node() -> None:
    both = refused_by_chosen_node(unschedulable("b", "a").by("Permits"))
    assert both == unschedulable("0/1 nodes are available: 1 a, 1 b.").by("Permits")
    silent = refused_by_chosen_node(unschedulable().by("Permits"))
    assert silent == unschedulable("0/1 nodes are available:").by("Permits")


def test_what_post_filter_says_is_added_as_it_is() -> None:
    diagnosis = _diagnosis(unschedulable("full"))
    diagnosis.post_filter_message = "preemption: no pod to evict"
    assert diagnosis.message() == "0/1 nodes are available: 1 full. preemption: no pod to evict"


def test_a_cluster_without_nodes() -> None:
    assert Diagnosis(cluster_of().table).message() == "no nodes available to schedule pods"


def test_rows_that_are_free_do_not_count() -> None:
    lab = Lab(node("a", cpu="1"), node("b", cpu="1"), node("c", cpu="1"))
    lab.cluster.remove_node("b")
    assert lab.message(pod(cpu="2")) == "0/2 nodes are available: 2 Insufficient cpu."


def test_the_example_of_the_default_profile() -> None:
    lab = Lab(
        node("a", taints=["x=y:NoSchedule"]), node("b", cpu="1"), node("c", cpu="1"), node("d")
    )
    lab.cluster.put_node(node("d", unschedulable=True))
    diagnosis = lab.diagnosis(pod(cpu="2"))
    assert diagnosis.message() == (
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable,"
        " 2 Insufficient cpu."
    )
    assert diagnosis.unschedulable_plugins == {
        "NodeUnschedulable",
        "TaintToleration",
        "NodeResourcesFit",
    }
    assert diagnosis.pending_plugins == set()


def test_nodes_that_came_since_are_counted_and_said_nothing_of() -> None:
    lab = Lab(node("n1", cpu="1"))
    diagnosis = lab.diagnosis(pod("p", cpu="2"))
    lab.cluster.put_node(node("n2"))
    assert diagnosis.message() == "0/2 nodes are available: 1 Insufficient cpu."
    new = lab.cluster.table.row_of("n2")
    assert new is not None
    assert diagnosis.status_of(new).reasons == ()
    assert diagnosis.rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).tolist() == [0]
