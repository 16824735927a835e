"""Scores of a profile: PreScore, weights, normalizing, and what is out of range."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.domain_scores import DomainScores
from kubesched.framework.observing import NullObserver
from kubesched.framework.plugin import NODE, Normalize, Plugin, PreScore, RowScore, Score
from kubesched.framework.scoring import Scoring
from kubesched.framework.status import SKIP, SUCCESS, Status, error
from tests.support.given_plugins import scores
from tests.support.objects import node, pod
from tests.support.scheduling import Lab


class Doubled(RowScore, Normalize):
    """A row-local score, doubled by a normalizer that ignores the scores of other nodes."""

    name = "Doubled"
    reads = NODE

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        return nodes.row_numbers() + 1

    def normalize(self, scores: Int64Array) -> Int64Array:
        return scores * 2


class Prepared(PreScore, Score):
    """A cluster-wide score that answers in PreScore what it is told."""

    name = "Prepared"
    answer: ClassVar[Status] = SUCCESS

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Status:
        return self.answer

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int64Array | None:
        return np.full(len(nodes), 5, dtype=np.int64)


class Nothing(Prepared):
    name = "Nothing"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> None:
        return None


class ByDomain(Prepared, Normalize):
    """The same score for all nodes of a domain: the first node is one, the others are another."""

    name = "ByDomain"

    def score(  # type: ignore[override]  # a score by domain is one as well
        self, state: CycleState, pod: PodInfo, nodes: NodeRows
    ) -> DomainScores:
        domains = np.minimum(nodes.row_numbers(), 1)
        return DomainScores(np.array([1, 3], dtype=np.int64), domains, np.array([True, True]))

    def normalize(self, scores: Int64Array) -> Int64Array:
        return scores * 10


class Bench:
    """The scores of a profile with these plugins only, for three nodes."""

    def __init__(self, *plugins: type[Plugin]) -> None:
        self.lab = Lab(*(node(name) for name in "abc"), plugins=plugins, only=[])
        framework = self.lab.framework
        table = self.lab.cluster.table
        self.scoring = Scoring(framework.plugins, table, NullObserver())
        self.state, self.pod = CycleState(), self.lab.pending(pod("p"))
        self.plan = framework.evaluator.plans.plan(self.pod.signature.row_signature)
        self.nodes = NodeRows.all_of(table)

    def prepare(self) -> Bench:
        self.scoring.prepare(self.state, self.pod, self.plan, self.nodes)
        return self

    def by_plugin(self) -> dict[str, tuple[list[int], list[int]]]:
        """Plugin → its raw and its normalized scores."""
        found = self.scoring.by_plugin(self.state, self.pod, self.plan, self.nodes)
        return {each.plugin: (each.raw.tolist(), each.normalized.tolist()) for each in found}

    def total(self) -> list[int]:
        return self.scoring.total(self.state, self.pod, self.plan, self.nodes).tolist()

    def others(self) -> list[int] | None:
        found = self.scoring.others(self.state, self.pod, self.plan, self.nodes)
        return None if found is None else found.tolist()


@pytest.fixture(autouse=True)
def _prepared_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prepared, "answer", SUCCESS)


def test_each_plugin_has_raw_and_normalized_scores() -> None:
    bench = Bench(Doubled, Prepared, Nothing, ByDomain).prepare()

    assert bench.by_plugin() == {
        "Doubled": ([1, 2, 3], [2, 4, 6]),
        "Prepared": ([5, 5, 5], [5, 5, 5]),
        "Nothing": ([0, 0, 0], [0, 0, 0]),
        "ByDomain": ([1, 3, 3], [10, 30, 30]),
    }
    assert bench.total() == [17, 39, 41]


def test_the_others_are_scores_that_are_not_in_the_plan_s_totals() -> None:
    """Those of cluster-wide plugins, and those that have to be normalized in each attempt."""
    assert Bench(Doubled, ByDomain).prepare().others() == [12, 34, 36]
    assert Bench(Prepared, ByDomain).prepare().others() == [15, 35, 35]
    assert Bench(Nothing).prepare().others() is None


def test_a_plugin_that_skips_in_prescore_has_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prepared, "answer", SKIP)
    bench = Bench(Doubled, Prepared).prepare()

    assert bench.state.skip_score == {"Prepared"}
    assert bench.by_plugin().keys() == {"Doubled"}
    assert bench.total() == [2, 4, 6]


def test_an_error_in_prescore_ends_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prepared, "answer", error("boom"))
    bench = Bench(Prepared)

    with pytest.raises(AttemptError) as raised:
        bench.prepare()
    assert raised.value.status == error('running PreScore plugin "Prepared": boom').by("Prepared")


@pytest.mark.parametrize("wrong", [-1, 101])
def test_a_score_out_of_range_ends_the_attempt(wrong: int) -> None:
    given = np.array([0, wrong, 100], dtype=np.int64)
    bench = Bench(scores("Wrong", lambda nodes: given[nodes.rows])).prepare()

    with pytest.raises(AttemptError, match=f'plugin "Wrong" returns an invalid score {wrong}, '):
        bench.total()
    with pytest.raises(AttemptError, match="should in the range of"):
        bench.others()


def test_row_local_scores_decide_alone_unless_a_cluster_wide_plugin_has_a_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_row_local(*plugins: type[Plugin]) -> bool:
        bench = Bench(*plugins).prepare()
        return bench.scoring.is_row_local(bench.state)

    assert is_row_local(Doubled)
    assert not is_row_local(Doubled, Prepared)
    assert is_row_local(Doubled, scores("Volumes", lambda _: _none(), only_with_volumes=True))

    monkeypatch.setattr(Prepared, "answer", SKIP)
    assert is_row_local(Doubled, Prepared)


def test_without_prescore_a_plugin_that_has_nothing_to_filter_has_nothing_to_score() -> None:
    bench = Bench(scores("Given", lambda _: _none())).prepare()
    assert not bench.scoring.is_row_local(bench.state)

    bench.state.skip_filter = frozenset({"Given"})
    assert bench.scoring.is_row_local(bench.state)


def _none() -> Int64Array:
    return np.zeros(3, dtype=np.int64)
