"""An attempt: Filter, its own nomination, PreScore, Score, with plugins made for the purpose.

The plugins here are cluster-wide and do what a test tells them; what the in-tree ones do is in
tests of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework import status_book
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.evaluation import Evaluator
from kubesched.framework.plugin import (
    NODE,
    REQUESTS,
    Filter,
    Normalize,
    PreScore,
    RowFilter,
    RowScore,
    Score,
)
from kubesched.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from kubesched.framework.verdict import Verdict, reject
from tests.support.given_plugins import filters, scores
from tests.support.objects import named, node, pod, requires
from tests.support.scheduling import Lab

from .attempts import NODES, Attempt, restricts

# --- node names -------------------------------------------------------------------------------


def test_named_nodes_are_looked_at_in_the_cluster_s_order() -> None:
    assert Attempt(restricts("A", "c", "a")).find() == ["a", "c"]


def test_named_nodes_that_do_not_exist() -> None:
    diagnosis = Attempt(restricts("A", "x")).diagnosis()
    assert diagnosis.message() == (
        "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [A]."
    )
    assert diagnosis.unschedulable_plugins == {"A"}


def test_named_nodes_that_are_turned_away_and_the_others() -> None:
    attempt = Attempt(
        restricts("B", "a", "b"), restricts("A", "a"), filters("F", {"a": unschedulable("full")})
    )
    diagnosis = attempt.diagnosis()
    assert diagnosis.message() == (
        "0/3 nodes are available: 1 full, 2 node(s) didn't satisfy plugin(s) [A B]."
    )
    assert diagnosis.unschedulable_plugins == {"A", "B", "F"}
    assert diagnosis.status_of(0) == unschedulable("full").by("F")
    assert diagnosis.status_of(1).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_row_local_filters_count_on_named_nodes_too() -> None:
    attempt = Attempt(restricts("A", "a", "b"), only=["NodeUnschedulable"])
    attempt.lab.cluster.put_node(node("a", unschedulable=True))
    assert attempt.find() == ["b"]


# --- Filter -----------------------------------------------------------------------------------


def test_the_first_filter_that_turns_a_node_away_is_named() -> None:
    attempt = Attempt(
        filters("F", {"a": unschedulable("f")}),
        filters("G", {"a": unschedulable("g"), "b": unresolvable("g"), "c": unschedulable("h")}),
    )
    diagnosis = attempt.diagnosis()
    assert diagnosis.message() == "0/3 nodes are available: 1 f, 1 g, 1 h."
    assert [diagnosis.status_of(row).plugin for row in range(3)] == ["F", "G", "G"]
    assert diagnosis.unschedulable_plugins == {"F", "G"}


def test_row_local_and_cluster_wide_filters_keep_the_order_of_the_profile() -> None:
    everywhere = {name: unschedulable("late") for name in "abc"}
    attempt = Attempt(filters("Late", everywhere), only=["NodeUnschedulable"])
    attempt.lab.cluster.put_node(node("b", unschedulable=True))
    diagnosis = attempt.diagnosis()
    assert [diagnosis.status_of(row).plugin for row in range(3)] == [
        "Late",
        "NodeUnschedulable",
        "Late",
    ]


def test_pending_is_a_rejection_that_is_remembered() -> None:
    waiting = Status(Code.PENDING, ("a device is being prepared",))
    rejected = {"a": waiting, "b": unschedulable("f"), "c": unschedulable("f")}
    diagnosis = Attempt(filters("F", rejected)).diagnosis()
    assert diagnosis.unschedulable_plugins == {"F"}
    assert diagnosis.pending_plugins == {"F"}


def test_an_error_on_one_node_ends_the_attempt() -> None:
    attempt = Attempt(filters("F", {"b": error("disk on fire")}))
    with pytest.raises(AttemptError) as raised:
        attempt.find()
    assert str(raised.value) == 'running "F" filter plugin: disk on fire'
    assert raised.value.status.plugin == "F"
    assert raised.value.status.code is Code.ERROR


def test_an_error_behind_a_rejection_is_never_met() -> None:
    attempt = Attempt(
        filters("F", {"b": unschedulable("no")}), filters("G", {"b": error("disk on fire")})
    )
    assert attempt.find() == ["a", "c"]


def test_an_error_of_another_attempt_does_not_count_in_this_one() -> None:
    rejected = {"b": error("disk on fire")}
    attempt = Attempt(filters("F", rejected))
    with pytest.raises(AttemptError):
        attempt.find()
    rejected.clear()
    assert attempt.find() == ["a", "b", "c"]


class ErrorOnCordoned(RowFilter):
    """A row-local filter that cannot make up its mind about cordoned nodes."""

    name = "ErrorOnCordoned"
    reads = NODE | REQUESTS

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        return reject(nodes.unschedulable, error("cordoned?"))


def test_an_error_of_a_row_local_filter_ends_every_attempt_while_it_lasts() -> None:
    attempt = Attempt(ErrorOnCordoned)
    assert attempt.find() == ["a", "b", "c"]
    attempt.lab.cluster.put_node(node("b", unschedulable=True))
    for _ in range(2):
        with pytest.raises(AttemptError, match='running "ErrorOnCordoned" filter plugin'):
            attempt.find()
    attempt.lab.cluster.put_node(node("b"))
    assert attempt.find() == ["a", "b", "c"]


def test_an_error_of_long_ago_costs_later_attempts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rejected = {"b": error("disk on fire")}
    attempt = Attempt(filters("F", rejected))
    with pytest.raises(AttemptError):
        attempt.find()
    rejected["b"] = unschedulable("no")
    looked: list[object] = []
    monkeypatch.setattr(
        Evaluator, "_raise_error", lambda _self, numbers, _nodes: looked.append(numbers)
    )
    assert attempt.find() == ["a", "c"]
    assert not looked
    rejected["b"] = error("disk on fire")
    attempt.find()
    assert looked


class NamesPods(Filter):
    """A filter that has something to say about each pod in particular."""

    name = "NamesPods"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        everywhere = np.ones(len(nodes), dtype=np.bool_)
        return reject(everywhere, unresolvable(f"{pod.pod.metadata.name} is not welcome"))


def test_what_was_said_about_pods_that_are_gone_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status_book, "STATUSES", 20)
    lab = Lab(*NODES, plugins=[NamesPods], only=["NodeUnschedulable"])
    lab.cluster.put_node(node("b", unschedulable=True))
    book, sizes = lab.framework.evaluator.book, []
    diagnoses = {}
    for number in range(100):
        diagnoses[f"p{number}"] = lab.diagnosis(pod(f"p{number}"))
        sizes.append(len(book.statuses))
    assert sizes.count(3) > 1, "with no more than the newest two, time and again"
    assert max(sizes) <= 20 + status_book.STATUSES_PER_ROW * len(NODES) + 1
    for name, diagnosis in diagnoses.items():
        assert diagnosis.status_of(1).plugin == "NodeUnschedulable"
        assert diagnosis.message() == (
            f"0/3 nodes are available: 1 node(s) were unschedulable, 2 {name} is not welcome."
        )


def test_what_a_row_without_a_node_would_say_does_not_count() -> None:
    lab = Lab(node("a"), node("b", unschedulable=True), plugins=[ErrorOnCordoned], only=[])
    lab.cluster.remove_node("b")
    assert lab.feasible(pod()) == ["a"]


def test_nobody_filters() -> None:
    assert Attempt().find() == ["a", "b", "c"]


def test_a_cluster_without_nodes() -> None:
    diagnosis = Lab().diagnosis(pod())
    assert diagnosis.message() == "no nodes available to schedule pods"
    assert diagnosis.unschedulable_plugins == set()


# --- nominations ------------------------------------------------------------------------------


def test_the_nominated_node_is_taken_if_it_fits() -> None:
    lab = Lab(*NODES)
    assert lab.feasible(pod(nominated="b")) == ["b"]


def test_all_nodes_are_looked_at_if_the_nominated_one_does_not_fit() -> None:
    lab = Lab(*NODES)
    lab.cluster.put_node(node("b", unschedulable=True))
    assert lab.feasible(pod(nominated="b")) == ["a", "c"]


def test_a_nominated_node_that_is_gone_is_no_obstacle() -> None:
    assert Lab(*NODES).feasible(pod(nominated="x")) == ["a", "b", "c"]


def test_a_nomination_does_not_get_around_pre_filter() -> None:
    lab = Lab(*NODES, only=["NodeAffinity"])
    conflict = pod(nominated="b", node_selector={"no": "such"})
    assert lab.feasible(conflict) == []


@pytest.mark.parametrize("nominated", ["b", "c"])
def test_whoever_rejects_the_nominated_node_joins_the_plugins_that_restricted_the_nodes(
    nominated: str,
) -> None:
    """And the node keeps its own reason, whether it is one of those nodes or not."""
    full = pod("there", node=nominated, cpu="4")
    lab = Lab(*NODES, full, only=["NodeAffinity", "NodeResourcesFit"])
    only_b = requires(named("b"))
    asking = pod(
        "me", cpu="1" if nominated == "b" else "5", node_affinity=only_b, nominated=nominated
    )
    diagnosis = lab.diagnosis(asking)
    counts = {
        "b": "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) "
        "[NodeAffinity NodeResourcesFit]",
        "c": "1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) didn't satisfy plugin(s) [NodeAffinity]",
    }
    assert diagnosis.message() == f"0/3 nodes are available: {counts[nominated]}."
    assert diagnosis.unschedulable_plugins == {"NodeAffinity", "NodeResourcesFit"}


def test_a_plugin_that_fails_on_a_nominated_node_outside_the_set_does_not_end_the_attempt() -> None:
    fails = filters("Bad", {"c": error("disk on fire")})
    lab = Lab(*NODES, plugins=[fails], only=["NodeAffinity"])
    assert lab.feasible(pod(node_affinity=requires(named("b")), nominated="c")) == ["b"]
    with pytest.raises(AttemptError, match="disk on fire"):
        lab.find(pod(node_affinity=requires(named("b"), named("c")), nominated="c"))


# --- scores -----------------------------------------------------------------------------------


def _constant(value: int) -> Callable[[NodeRows], Int64Array]:
    return lambda nodes: np.full(len(nodes), value, dtype=np.int64)


def test_scores_are_weighted_and_summed() -> None:
    lab = Lab(
        node("a", cpu="2", labels={"disk": "ssd"}),
        node("b", cpu="4", taints=["old:PreferNoSchedule"]),
        only=["TaintToleration", "NodeResourcesFit"],
    )
    found = lab.plugin_scores(pod(cpu="1", memory="4Gi"))
    assert {name: each.weight for name, each in found.items()} == {
        "TaintToleration": 1,
        "NodeResourcesFit": 1,
    }
    # a: (50 + 50) / 2, b: (75 + 50) / 2; a has no disliked taint, b has the most.
    assert found["NodeResourcesFit"].normalized.tolist() == [50, 62]
    assert found["TaintToleration"].raw.tolist() == [0, 1]
    assert found["TaintToleration"].normalized.tolist() == [100, 0]
    assert lab.totals(pod(cpu="1", memory="4Gi")) == {"a": 150, "b": 62}


def test_the_default_profile_s_weights() -> None:
    lab = Lab(*NODES)
    prefer_nothing = pod(cpu="1", memory="2Gi")
    weights = {name: each.weight for name, each in lab.plugin_scores(prefer_nothing).items()}
    assert weights == {
        "TaintToleration": 3,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    # 3 x 100 + 75 + 75 + 0: three quarters free, balance unchanged, no image.
    assert lab.totals(prefer_nothing) == dict.fromkeys("abc", 450)


def test_only_feasible_rows_are_scored() -> None:
    asked: list[list[int]] = []

    def give(nodes: NodeRows) -> Int64Array:
        asked.append(nodes.row_numbers().tolist())
        return nodes.row_numbers().astype(np.int64)

    lab = Lab(
        *NODES,
        plugins=[scores("S", give), filters("F", {"b": unschedulable("no")})],
        only=[],
    )
    assert lab.totals(pod()) == {"a": 0, "c": 2}
    assert asked
    assert all(each == [0, 2] for each in asked)


@pytest.mark.parametrize("wrong", [-1, 101])
def test_a_score_out_of_range_is_an_error(wrong: int) -> None:
    lab = Lab(*NODES, plugins=[scores("S", _constant(wrong))], only=[])
    with pytest.raises(AttemptError) as raised:
        lab.totals(pod())
    assert str(raised.value) == (
        'applying score defaultWeights on Score plugins: plugin "S" returns an invalid score '
        f"{wrong}, it should in the range of [0, 100] after normalizing"
    )
    assert raised.value.status.code is Code.ERROR


@pytest.mark.parametrize("fine", [0, 100])
def test_the_ends_of_the_range_are_in_it(fine: int) -> None:
    lab = Lab(*NODES, plugins=[scores("S", _constant(fine))], only=[])
    assert lab.totals(pod()) == dict.fromkeys("abc", fine)


class Halved(Score, Normalize):
    """Scores that are out of range until they are normalised."""

    name = "Halved"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int64Array:
        return np.full(len(nodes), 200, dtype=np.int64)

    def normalize(self, scores: Int64Array) -> Int64Array:
        return scores // 2


def test_the_range_counts_after_normalising() -> None:
    lab = Lab(*NODES, plugins=[Halved], only=[])
    found = lab.plugin_scores(pod())["Halved"]
    assert found.raw.tolist() == [200, 200, 200]
    assert found.normalized.tolist() == [100, 100, 100]


class Prepared(PreScore, Score):
    """A score whose PreScore says what the test wants."""

    name = "Prepared"
    answer: ClassVar[Status] = SUCCESS

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Status:
        state.write("prepared for", nodes.row_numbers().tolist())
        return self.answer

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int64Array:
        assert state.read("prepared for") == nodes.row_numbers().tolist()
        return np.full(len(nodes), 7, dtype=np.int64)


def _prepared(status: Status) -> Lab:
    class Answering(Prepared):
        answer = status

    return Lab(*NODES, plugins=[Answering], only=[])


def test_pre_score_prepares_the_score() -> None:
    assert _prepared(SUCCESS).totals(pod()) == dict.fromkeys("abc", 7)


def test_a_pre_score_that_skips_leaves_the_score_out() -> None:
    lab = _prepared(SKIP)
    assert lab.plugin_scores(pod()) == {}
    assert lab.totals(pod()) == dict.fromkeys("abc", 0)


@pytest.mark.parametrize(
    "status", [error("boom"), unschedulable("boom")], ids=lambda status: status.code.label
)
def test_a_pre_score_that_fails_ends_the_attempt(status: Status) -> None:
    with pytest.raises(AttemptError) as raised:
        _prepared(status).totals(pod())
    assert str(raised.value) == 'running PreScore plugin "Prepared": boom'


class Epochal(RowScore):
    """A row-local score that depends on something common to all rows."""

    name = "Epochal"
    reads = NODE | REQUESTS
    common: ClassVar[int] = 1

    def epoch(self, signature: PodSignature, table: object) -> int:
        return self.common

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        return np.full(len(nodes), self.common, dtype=np.int64)


def test_a_row_local_score_follows_its_epoch() -> None:
    lab = Lab(*NODES, plugins=[Epochal], only=[])
    assert lab.totals(pod()) == dict.fromkeys("abc", 1)
    Epochal.common = 2
    try:
        assert lab.totals(pod()) == dict.fromkeys("abc", 2)
    finally:
        Epochal.common = 1
