"""The decision path, with all its caches, chooses the node that the full evaluation chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from kubesched.api import names
from kubesched.api.core import Pod, Toleration
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework import status_book
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.node_by_node import CachedNodeScore, HighestWins, NodeView, SignatureView
from kubesched.framework.plugin import (
    NODE,
    REQUESTS,
    Normalize,
    Plugin,
    RowFilter,
    RowScore,
    Score,
    depends_on_min_max,
)
from kubesched.framework.status import error, unschedulable
from kubesched.framework.verdict import Verdict, reject
from kubesched.plugins.taint_toleration import TaintToleration
from kubesched.scheduler.cycle import Decision, SchedulingCycle
from kubesched.testing.full_evaluation import decide_fully
from tests.support.objects import (
    must,
    node,
    on_node,
    pod,
    pod_term,
    prefers,
    requirement,
    should,
    spread_over,
    term,
)
from tests.support.scheduling import Lab, framework_of

NODES = [f"n{number}" for number in range(6)]
ZONE, HOST = names.LABEL_ZONE, names.LABEL_HOSTNAME
TAINT = "slow=yes:PreferNoSchedule"
PREFERS_SSD = prefers(
    (30, term(requirement("disk", "In", "ssd"))), (12, term(requirement(ZONE, "In", "a")))
)
KINDS: list[dict[str, Any]] = [
    {"cpu": "1"},
    {"cpu": "1", "memory": "1Gi"},
    {"cpu": "2", "node_selector": {"disk": "ssd"}},
    {"labels": {"app": "web"}},
    {"cpu": "64"},
    {"cpu": "1", "node_affinity": PREFERS_SSD},
    {"memory": "1Gi", "tolerations": [Toleration(key="slow", operator="Exists")]},
    {"labels": {"app": "web"}, "spread": [spread_over(ZONE, app="web")]},
    {"labels": {"app": "web"}, "spread": [spread_over(HOST, soft=True, app="web")]},
    {
        "labels": {"app": "db"},
        "spread": [spread_over(ZONE, app="db"), spread_over(HOST, max_skew=2, app="db")],
        "node_selector": {"disk": "ssd"},
    },
    {
        "labels": {"app": "web"},
        "spread": [spread_over(ZONE, app="web")],
        "node_affinity": PREFERS_SSD,
    },
    {"labels": {"app": "db"}, "near": must(pod_term(ZONE, app="web"))},
    {"labels": {"app": "db"}, "away_from": must(pod_term(HOST, app="db"))},
    {"labels": {"app": "web"}, "near": should((5, pod_term(ZONE, app="db")))},
    {
        "labels": {"app": "db"},
        "away_from": should((9, pod_term(HOST, app="web"))),
        "spread": [spread_over(ZONE, soft=True, app="db")],
    },
]


class Roomiest(HighestWins, CachedNodeScore):
    """Prefers nodes that have much, whoever is there: scaled by the highest and the lowest."""

    name = "Roomiest"
    reads = NODE | REQUESTS

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        return node.allocatable("cpu")


class LargestNode(Roomiest):
    """The same; by what it declares, pods that differ only in requests share its scores."""

    name = "LargestNode"
    reads = NODE


class DecisionMachine(RuleBasedStateMachine):
    """Nodes and pods come and go; every pod gets the node that the full evaluation chooses."""

    plugin: type[Plugin] = Roomiest

    def __init__(self) -> None:
        super().__init__()
        self.lab = Lab(plugins=[self.plugin])
        self.serial = 0
        self.placed: list[str] = []
        self.seed = 0

    @rule(
        name=st.sampled_from(NODES),
        cpu=st.sampled_from(["2", "4", "8"]),
        zone=st.sampled_from("ab"),
        ssd=st.booleans(),
        spoiled=st.sampled_from(["", "tainted", "cordoned"]),
    )
    def put_node(self, name: str, cpu: str, zone: str, ssd: bool, spoiled: str) -> None:
        self.lab.cluster.put_node(
            node(
                name,
                cpu=cpu,
                zone=zone,
                labels={"disk": "ssd"} if ssd else None,
                taints=[TAINT] if spoiled == "tainted" else (),
                unschedulable=spoiled == "cordoned",
            )
        )

    @rule(name=st.sampled_from(NODES))
    def remove_node(self, name: str) -> None:
        if self.lab.cluster.table.row_of(name) is not None:
            self.lab.cluster.remove_node(name)

    @rule(kind=st.sampled_from(KINDS), priority=st.sampled_from([0, 5]))
    def schedule(self, kind: dict[str, Any], priority: int) -> None:
        self.serial += 1
        asking = pod(f"p{self.serial}", priority=priority, **kind)
        decision = self.both_ways(asking)
        if decision.node_name:
            self.lab.cluster.put_pod(on_node(asking, decision.node_name))
            self.placed.append(asking.metadata.uid)

    @rule(
        sizes=st.lists(st.integers(1, 3000), min_size=2, max_size=4),
        kind=st.sampled_from(KINDS),
    )
    def schedule_sizes(self, sizes: list[int], kind: dict[str, Any]) -> None:
        for milli_cpu in sizes:
            self.schedule({**kind, "cpu": f"{milli_cpu}m"}, priority=0)

    @rule(
        kind=st.sampled_from(KINDS),
        name=st.sampled_from(NODES),
        priority=st.sampled_from([0, 5]),
        number=st.integers(0, 2),
    )
    def nominate(self, kind: dict[str, Any], name: str, priority: int, number: int) -> None:
        promised = pod(f"promised-{number}", priority=priority, **kind)
        self.lab.cluster.nominator.nominate(self.lab.pending(promised), name)

    @rule(number=st.integers(0, 2))
    def take_back(self, number: int) -> None:
        self.lab.cluster.nominator.clear(pod(f"promised-{number}").metadata.uid)

    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        if self.placed:
            uid = data.draw(st.sampled_from(self.placed))
            self.placed.remove(uid)
            self.lab.cluster.remove_pod(uid)

    def teardown(self) -> None:
        self.lab.cluster.validate()

    def both_ways(self, asking: Pod) -> Decision:
        self.seed += 1
        lab, info = self.lab, self.lab.pending(asking)
        decision = SchedulingCycle(lab.cluster, seed=self.seed).schedule(lab.framework, info)
        # A framework of its own, which has cached nothing.
        oracle = framework_of(lab.cluster, plugins=[self.plugin])
        expected = decide_fully(oracle, lab.cluster, info, seed=self.seed)
        assert (decision.node_name, decision.feasible_nodes) == expected
        return decision


class DecisionMachineOfSizes(DecisionMachine):
    """The same, where plans are handed from one size to the next."""

    plugin = LargestNode

    @initialize(cpus=st.lists(st.sampled_from(["1", "2", "3"]), min_size=6, max_size=6))
    def put_nodes(self, cpus: list[str]) -> None:
        for name, cpu in zip(NODES, cpus, strict=True):
            self.put_node(name, cpu, "a", ssd=False, spoiled="")


TestDecisionMachine = DecisionMachine.TestCase
TestDecisionMachine.settings = settings(max_examples=60, stateful_step_count=30)
TestDecisionMachineOfSizes = DecisionMachineOfSizes.TestCase
TestDecisionMachineOfSizes.settings = settings(max_examples=60, stateful_step_count=30)


def totals(lab: Lab, asking: Pod) -> dict[str, int]:
    """What cached totals and other scores come to, by node; {} if the pod fits nowhere."""
    evaluator, state, info = lab.framework.evaluator, CycleState(), lab.pending(asking)
    found = evaluator.filter(state, info)
    if isinstance(found, Diagnosis):
        return {}
    scored = evaluator.score(state, info, found).totals()
    rows = found.nodes.row_numbers().tolist()
    return dict(zip(map(lab.cluster.table.name_at, rows), scored.tolist(), strict=True))


def test_rows_that_cannot_take_the_pod_have_no_total() -> None:
    lab = Lab(node("small", cpu="1"), node("large", cpu="4"))
    ranked = totals(lab, pod("p", cpu="2"))
    assert ranked.keys() == {"large"}
    assert ranked["large"] > 0


def test_scores_that_are_compared_among_rows_are_added_where_they_differ() -> None:
    lab = Lab(node("n1", taints=[TAINT]), node("n2"))
    uneven = totals(lab, pod("p"))
    assert uneven["n2"] - uneven["n1"] == 3 * 100  # all of what TaintToleration has to give

    lab = Lab(node("n1", taints=[TAINT]), node("n2", taints=[TAINT]))
    even = totals(lab, pod("p"))
    assert even["n2"] == even["n1"]


def test_what_is_best_among_rows_is_found_again_when_the_best_is_full() -> None:
    likes = prefers(
        (10, term(requirement("disk", "Exists"))), (10, term(requirement("os", "Exists")))
    )
    labels = [{"disk": "x", "os": "y"}, {"disk": "x"}, None]
    lab = Lab(*(node(f"n{number}", cpu="4", labels=each) for number, each in enumerate(labels)))

    def preference(one: str, other: str) -> int:
        """By how much the one is preferred to the other, which is as good in all other respects."""
        ranked = totals(lab, pod("p", cpu="1", node_affinity=likes))
        return (ranked[one] - ranked[other]) // 2

    assert preference("n0", "n1") == 50
    assert preference("n1", "n2") == 50
    lab.cluster.put_pod(pod("full", cpu="4", node="n0"))
    assert preference("n1", "n2") == 100
    lab.cluster.remove_pod("full")
    assert preference("n1", "n2") == 50


def test_totals_are_others_if_only_rows_are_left_that_compare_otherwise() -> None:
    labels = {"app": "web"}
    likes = prefers(
        (10, term(requirement("disk", "Exists"))), (10, term(requirement("os", "Exists")))
    )
    alone = pod("p", labels=labels, node_affinity=likes, away_from=must(pod_term(HOST, app="web")))
    nodes = [
        node(f"n{number}", labels={HOST: f"n{number}"} | each)
        for number, each in enumerate(({"disk": "x", "os": "y"}, {"disk": "x"}, {}))
    ]
    lab = Lab(*nodes)
    before = totals(lab, alone)
    assert (before["n0"] - before["n1"], before["n1"] - before["n2"]) == (100, 100)
    # The one that is liked best can take pods, but not this one.
    lab.cluster.put_pod(pod("there", labels=labels, node="n0"))
    after = totals(lab, alone)
    assert after["n1"] - after["n2"] == 200


class Rank(RowScore, Normalize):
    """Scores rows by their number, and normalizes by how many have less: all of them matter."""

    name = "Rank"
    reads = NODE | REQUESTS

    def score(self, signature: Any, nodes: NodeRows) -> Any:
        return nodes.row_numbers()

    def normalize(self, scores: Any) -> Any:
        return np.searchsorted(np.sort(scores), scores)


class RankOfTaints(TaintToleration):
    """Inherits a promise along with a function, and has another function."""

    name = "RankOfTaints"

    def normalize(self, scores: Any) -> Any:
        return np.searchsorted(np.sort(scores), scores)


@pytest.mark.parametrize("plugin", [Rank, RankOfTaints])
def test_scores_that_depend_on_more_than_the_extremes_are_normalized_in_each_attempt(
    plugin: type[Plugin],
) -> None:
    lab = Lab(node("n1"), node("n2"), plugins=[plugin])
    plain = Lab(node("n1"), node("n2"))

    def added() -> dict[str, int]:
        asking, without = totals(lab, pod("p")), totals(plain, pod("p"))
        return {name: total - without[name] for name, total in asking.items()}

    first = added()
    for each in (lab, plain):
        each.cluster.put_node(node("n1", taints=[TAINT]))
    rank_of_taints = {"n1": 1, "n2": 0}
    assert added() == (first if plugin is Rank else rank_of_taints)
    # The node that is left is ranked anew.
    for each in (lab, plain):
        each.cluster.put_node(node("n2", unschedulable=True))
    assert added() == {"n1": 0}


class Beyond(Rank):
    """Normalizes to more than there is to give, though by the highest and lowest alone."""

    name = "Beyond"

    @depends_on_min_max
    def normalize(self, scores: Any) -> Any:
        return scores + 101


def test_a_normalized_score_out_of_range_is_reported_as_ever() -> None:
    lab = Lab(node("n1"), node("n2"), plugins=[Beyond])
    decision = SchedulingCycle(lab.cluster, seed=1).schedule(lab.framework, lab.pending(pod("p")))
    assert 'plugin "Beyond" returns an invalid score' in decision.status.message


def test_rows_whose_room_is_promised_to_others_are_left_out() -> None:
    lab = Lab(node("n1", cpu="4"), node("n2", cpu="4"))
    lab.cluster.nominator.nominate(lab.pending(pod("promised", cpu="3", priority=5)), "n1")
    ranked = totals(lab, pod("p", cpu="2", priority=5))
    assert ranked.keys() == {"n2"}
    for fits in (pod("small", cpu="1"), pod("important", cpu="2", priority=6)):
        ranked = totals(lab, fits)
        assert ranked.keys() == {"n1", "n2"}


class FailsInACrowd(RowFilter):
    """Reports an error of a row with two pods."""

    name = "FailsInACrowd"

    def filter(self, signature: Any, nodes: NodeRows) -> Verdict:
        return reject(nodes.pod_count > 1, error("too many to think"))


def test_an_error_about_a_row_with_promised_pods_is_reported_as_ever() -> None:
    lab = Lab(node("n1"), node("n2"), pod("there", node="n1"), plugins=[FailsInACrowd])
    lab.cluster.nominator.nominate(lab.pending(pod("promised")), "n1")
    decision = SchedulingCycle(lab.cluster).schedule(lab.framework, lab.pending(pod("p")))
    assert "too many to think" in decision.status.message


class Opinion(Score):
    """Has something to say about every pod."""

    name = "Opinion"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Any:
        return nodes.row_numbers()


def test_what_a_plugin_thinks_that_looks_at_the_whole_cluster_is_added() -> None:
    without, lab = (Lab(node("n1"), node("n2"), plugins=each) for each in ([], [Opinion]))
    plain, ranked = totals(without, pod("p")), totals(lab, pod("p"))
    assert ranked == {"n1": plain["n1"], "n2": plain["n2"] + 1}


class Excessive(RowScore):
    """Gives more than there is to give."""

    name = "Excessive"
    reads = NODE | REQUESTS

    def score(self, signature: Any, nodes: NodeRows) -> Any:
        return nodes.row_numbers() + 101


def test_a_score_out_of_range_is_reported_as_ever() -> None:
    lab = Lab(node("n1"), node("n2"), plugins=[Excessive])
    info = lab.pending(pod("p"))
    decision = SchedulingCycle(lab.cluster, seed=1).schedule(lab.framework, info)
    assert 'plugin "Excessive" returns an invalid score' in decision.status.message


class NamesAmounts(RowFilter):
    """Says of a full node how many pods came to it so far, which is never the same again."""

    name = "NamesAmounts"

    def __init__(self) -> None:
        self.came = 0

    def filter(self, signature: Any, nodes: NodeRows) -> Verdict:
        self.came += 1
        return reject(nodes.pod_count > 0, unschedulable(f"is taken since {self.came}"))


def test_what_is_said_without_end_is_forgotten_though_every_pod_finds_a_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status_book, "STATUSES", 20)
    lab = Lab(node("n1"), node("n2"), plugins=[NamesAmounts])
    sizes = []
    for number in range(100):
        ranked = totals(lab, pod("p"))
        assert ranked.keys() == {"n1", "n2"}
        lab.cluster.put_pod(pod(f"p{number}", node="n1"))
        assert totals(lab, pod("p")).keys() == {"n2"}
        lab.cluster.remove_pod(f"p{number}")
        sizes.append(len(lab.framework.evaluator.book.statuses))
    assert max(sizes) <= 20 + status_book.STATUSES_PER_ROW * 2 + 1
