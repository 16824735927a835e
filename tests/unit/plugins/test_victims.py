"""Whom to evict: by hand on small nodes, and both ways of searching against each other."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Node, Pod
from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.evaluation import Evaluator
from kubesched.framework.profile_filters import ProfileFilters
from kubesched.framework.status import Status, unresolvable, unschedulable
from kubesched.plugins.lower_pods import importance
from kubesched.plugins.verdicts import Candidate, Found, choose
from kubesched.plugins.victims import VictimSearch
from tests.support.evaluating import feasible_rows
from tests.support.objects import host_port, must, node, pod, pod_term, spread_over
from tests.support.scheduling import Lab

GPU = "example.com/gpu"


def placed(
    name: str,
    *,
    on: str = "n1",
    cpu: str = "1",
    priority: int = 0,
    minute: int | None = 0,
    app: str = "",
    **more: Any,
) -> Pod:
    """A pod that runs since some minute; None: it has not started."""
    labels = {"app": app} if app else None
    made = pod(name, node=on, cpu=cpu, priority=priority, labels=labels, **more)
    start = None if minute is None else f"2026-01-01T00:{minute:02}:00Z"
    return replace(made, status=replace(made.status, start_time=start))


def budget(app: str, *, allowed: int, name: str = "", disrupted: Sequence[str] = ()) -> Any:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name or f"{app}-{allowed}", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": app})),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, "then")
        ),
    )


class Result:
    """What a search came to, by name."""

    def __init__(self, lab: Lab, found: Found) -> None:
        name = lab.cluster.table.name_at
        self.victims = {
            name(each.row): [victim.uid for victim in each.victims] for each in found.candidates
        }
        self.violations = {name(each.row): each.violations for each in found.candidates}
        self.refusals: dict[str, Status] = {
            name(row): status for row, status in found.refusals.items()
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and vars(self) == vars(other)

    def __hash__(self) -> int:
        raise TypeError

    def __repr__(self) -> str:
        return f"Result({vars(self)})"


def search(lab: Lab, preemptor: Pod, *, rows: Sequence[int] | None = None, enough: int = 99) -> Any:
    """Search all nodes, or some rows, for victims."""
    info, state = lab.pending(preemptor), CycleState()
    evaluator = lab.framework.evaluator
    diagnosis = feasible_rows(evaluator, state, info)
    assert isinstance(diagnosis, Diagnosis) or rows is not None
    order = np.array(rows, dtype=np.intp) if rows is not None else lab.cluster.table.order.rows()
    found = VictimSearch(lab.cluster).search(evaluator, state, info, order, enough=enough)
    return Result(lab, found)


@pytest.fixture(params=["together", "one by one"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rule holds on all paths."""
    if request.param == "one by one":
        monkeypatch.setattr(ProfileFilters, "is_arithmetic", lambda self, state: False)


every_way = pytest.mark.usefixtures("path")


# --- one node ---------------------------------------------------------------------------------


@every_way
def test_only_pods_of_lower_priority_are_victims() -> None:
    lab = Lab(
        node("n1", cpu="3"),
        placed("same", priority=5),
        placed("lower", priority=4),
        placed("higher", priority=6),
    )
    assert search(lab, pod("p", cpu="1", priority=5)).victims == {"n1": ["lower"]}


@every_way
def test_the_most_important_come_back_first() -> None:
    """2 of 4 CPUs are needed: priority 3 and the older of the two with priority 2 stay."""
    lab = Lab(
        node("n1", cpu="4"),
        placed("young-2", priority=2, minute=9),
        placed("low", priority=1, minute=0),
        placed("old-2", priority=2, minute=3),
        placed("high", priority=3, minute=30),
    )
    assert search(lab, pod("p", cpu="2", priority=9)).victims == {"n1": ["young-2", "low"]}


@every_way
def test_a_pod_that_has_not_started_is_the_least_important_of_its_priority() -> None:
    lab = Lab(node("n1", cpu="2"), placed("not-yet", minute=None), placed("runs", minute=59))
    assert search(lab, pod("p", cpu="1", priority=1)).victims == {"n1": ["not-yet"]}


@every_way
def test_a_small_pod_comes_back_even_if_a_more_important_one_could_not() -> None:
    lab = Lab(
        node("n1", cpu="4"),
        placed("large", cpu="3", priority=3),
        placed("small", cpu="1", priority=1),
    )
    assert search(lab, pod("p", cpu="3", priority=9)).victims == {"n1": ["large"]}


@every_way
def test_victims_are_listed_by_importance() -> None:
    lab = Lab(
        node("n1", cpu="3"),
        placed("c", priority=1, minute=2),
        placed("a", priority=2, minute=5),
        placed("b", priority=1, minute=1),
    )
    assert search(lab, pod("p", cpu="3", priority=9)).victims == {"n1": ["a", "b", "c"]}


@every_way
def test_the_number_of_pods_counts_as_well() -> None:
    lab = Lab(node("n1", pods=2), placed("a", priority=1), placed("b", priority=2))
    assert search(lab, pod("p", priority=9)).victims == {"n1": ["a"]}


@every_way
def test_what_only_some_pods_have_is_given_back_by_them_alone() -> None:
    lab = Lab(
        node("n1", cpu="4", resources={GPU: "1"}),
        placed("gpu", priority=5, requests={GPU: "1"}),
        placed("cpu", priority=1),
    )
    asking = pod("p", requests={GPU: "1"}, priority=9)
    assert search(lab, asking).victims == {"n1": ["gpu"]}


@every_way
def test_a_node_without_lower_pods_has_no_victims_to_offer() -> None:
    lab = Lab(node("n1", cpu="1"), node("n2", cpu="1"), placed("same", priority=5))
    assert search(lab, pod("p", cpu="2", priority=5)).refusals == dict.fromkeys(
        ["n1", "n2"], unresolvable("No preemption victims found for incoming pod")
    )


@every_way
def test_a_node_that_stays_too_small_says_why() -> None:
    lab = Lab(
        node("n1", cpu="2"), placed("stays", priority=9, cpu="1500m"), placed("goes", cpu="500m")
    )
    found = search(lab, pod("p", cpu="1", priority=5))
    assert found.victims == {}
    assert found.refusals == {"n1": unschedulable("Insufficient cpu").by("NodeResourcesFit")}


@every_way
@pytest.mark.parametrize(
    ("ports", "victims"),
    [
        ((80,), ["web"]),
        ((443,), ["tls"]),
        ((80, 443), ["web", "tls"]),
    ],
)
def test_whoever_holds_a_wanted_host_port_goes(ports: tuple[int, ...], victims: list[str]) -> None:
    lab = Lab(
        node("n1"),
        placed("web", priority=2, ports=(80,)),
        placed("tls", priority=1, ports=(443,)),
        placed("other", priority=0, ports=(8080,)),
    )
    assert search(lab, pod("p", ports=ports, priority=9)).victims == {"n1": victims}


# --- disruption budgets -----------------------------------------------------------------------


@every_way
def test_pods_that_would_overdraw_a_budget_come_back_before_more_important_ones() -> None:
    lab = Lab(
        node("n1", cpu="2"),
        placed("important", priority=5, app="free"),
        placed("guarded", priority=1, app="db"),
    )
    lab.cluster.budgets.put(budget("db", allowed=0))
    found = search(lab, pod("p", cpu="1", priority=9))
    assert found.victims == {"n1": ["important"]}
    assert found.violations == {"n1": 0}


@every_way
def test_victims_beyond_what_the_budget_allows_are_violations() -> None:
    """One of three may go without harm: the most important is the first to draw on the budget."""
    lab = Lab(node("n1", cpu="3"), *(placed(f"db-{i}", minute=i, app="db") for i in range(3)))
    lab.cluster.budgets.put(budget("db", allowed=1))
    found = search(lab, pod("p", cpu="3", priority=9))
    assert found.victims == {"n1": ["db-0", "db-1", "db-2"]}
    assert found.violations == {"n1": 2}


@every_way
def test_the_one_that_the_budget_allows_to_go_is_the_one_that_goes() -> None:
    lab = Lab(node("n1", cpu="3"), *(placed(f"db-{i}", minute=i, app="db") for i in range(3)))
    lab.cluster.budgets.put(budget("db", allowed=1))
    found = search(lab, pod("p", cpu="1", priority=9))
    assert found.victims == {"n1": ["db-0"]}
    assert found.violations == {"n1": 0}


# --- pods nominated to the node ---------------------------------------------------------------


@every_way
def test_room_is_left_for_a_nominated_pod_of_the_same_priority() -> None:
    lab = Lab(node("n1", cpu="2"), placed("a", priority=1), placed("b", priority=0))
    lab.cluster.nominator.nominate(lab.pending(pod("promised", cpu="1", priority=5)), "n1")
    assert search(lab, pod("p", cpu="1", priority=5)).victims == {"n1": ["a", "b"]}
    assert search(lab, pod("p", cpu="2", priority=5)).victims == {}
    assert search(lab, pod("p", cpu="1", priority=6)).victims == {"n1": ["b"]}


# --- several nodes ----------------------------------------------------------------------------


@every_way
def test_the_search_ends_when_there_are_enough_candidates_and_one_is_harmless() -> None:
    nodes = [node(f"n{i}", cpu="1") for i in range(4)]
    pods = [placed(f"p{i}", on=f"n{i}", app="db" if i < 2 else "free") for i in range(4)]
    lab = Lab(*nodes, *pods)
    lab.cluster.budgets.put(budget("db", allowed=0))
    rows = list(range(4))
    found = search(lab, pod("p", cpu="1", priority=9), rows=rows, enough=1)
    assert found.violations == {"n0": 1, "n1": 1, "n2": 0}


@every_way
def test_pods_on_other_nodes_matter_to_pods_that_keep_away_from_them() -> None:
    """Evicting what is on a node helps only if nothing else in the zone is in the way."""
    lab = Lab(
        node("a1", zone="a"),
        node("a2", zone="a"),
        node("b1", zone="b"),
        placed("web-a1", on="a1", app="web"),
        placed("web-a2", on="a2", app="web", priority=9),
        placed("web-b1", on="b1", app="web"),
    )
    away = must(pod_term(names.LABEL_ZONE, app="web"))
    found = search(lab, pod("p", priority=5, away_from=away))
    assert found.victims == {"b1": ["web-b1"]}
    refused = unschedulable("node(s) didn't match pod anti-affinity rules").by("InterPodAffinity")
    assert found.refusals["a1"] == refused


def test_pods_alike_share_a_search_until_something_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even where each node has its own transaction: many may wait that no eviction helps."""
    monkeypatch.setattr(ProfileFilters, "is_arithmetic", lambda self, state: False)
    asked: list[str] = []
    evaluate = Evaluator.number_on

    def counted(self: Evaluator, state: CycleState, info: PodInfo, row: int) -> int:
        asked.append(info.uid)
        return evaluate(self, state, info, row)

    monkeypatch.setattr(Evaluator, "number_on", counted)
    lab = Lab(
        node("a1", zone="a"), node("b1", zone="b"), placed("web", on="a1", app="web", priority=9)
    )
    lab.cluster.put_pod(placed("low", on="a1"))
    victims, away = VictimSearch(lab.cluster), must(pod_term(names.LABEL_ZONE, app="web"))

    def refused(name: str) -> None:
        info, state = lab.pending(pod(name, cpu="1", priority=5, away_from=away)), CycleState()
        evaluator = lab.framework.evaluator
        feasible_rows(evaluator, state, info)
        row = np.array([lab.cluster.table.row_of("a1")], dtype=np.intp)
        assert not victims.search(evaluator, state, info, row, enough=1)

    refused("p")
    refused("q")
    assert set(asked) == {"p"}
    lab.cluster.put_pod(placed("other", on="b1"))
    refused("r")
    assert set(asked) == {"p", "r"}


@every_way
def test_spreading_pods_come_back_as_far_as_the_skew_allows() -> None:
    lab = Lab(
        node("a", zone="a"),
        node("b", zone="b"),
        placed("a-1", on="a", app="web", minute=1),
        placed("a-2", on="a", app="web", minute=2),
        placed("b-1", on="b", app="web", priority=9),
    )
    constraint = spread_over(names.LABEL_ZONE, app="web")
    asking = pod("p", priority=5, labels={"app": "web"}, node_selector=None, spread=[constraint])
    row = lab.cluster.table.row_of("a")
    assert row is not None
    # Zone a may have 2, the pod included, while zone b has 1.
    assert search(lab, asking, rows=[row]).victims == {"a": ["a-2"]}


# --- which node -------------------------------------------------------------------------------


def candidate(row: int, *victims: Pod, violations: int = 0) -> Candidate:
    compiler = Lab().cluster.compiler
    infos = sorted((compiler.placed(each) for each in victims), key=importance)
    return Candidate(row, tuple(infos), violations)


CHOICES: dict[str, tuple[list[Candidate], list[int]]] = {
    "fewest violations, whatever else": (
        [
            candidate(0, placed("a", priority=1), violations=1),
            candidate(1, placed("b", priority=9), placed("c", priority=9)),
        ],
        [1],
    ),
    "lowest of the highest priorities": (
        [
            candidate(0, placed("a", priority=5)),
            candidate(1, placed("b", priority=4), placed("c", priority=4), placed("d")),
        ],
        [1],
    ),
    "smallest sum of priorities": (
        [
            candidate(0, placed("a", priority=5), placed("b", priority=3)),
            candidate(1, placed("c", priority=5), placed("d", priority=2)),
        ],
        [1],
    ),
    "one victim more costs more than any negative priority saves": (
        [
            candidate(0, placed("a", priority=-1), placed("b", priority=-2_000_000_000)),
            candidate(1, placed("c", priority=-1)),
        ],
        [1],
    ),
    "fewest victims of the same sum": (
        [
            candidate(0, placed("a", priority=0), placed("b", priority=-(2**31))),
            candidate(1, placed("c", priority=0)),
        ],
        [1],
    ),
    "latest start of the most important": (
        [
            candidate(0, placed("a", priority=5, minute=10), placed("b", priority=1, minute=50)),
            candidate(1, placed("c", priority=5, minute=11), placed("d", priority=1, minute=0)),
        ],
        [1],
    ),
    "the earliest of several that are the most important": (
        [
            candidate(0, placed("a", minute=10), placed("b", minute=50)),
            candidate(1, placed("c", minute=20), placed("d", minute=20)),
        ],
        [1],
    ),
    "a victim that has not started started last": (
        [candidate(0, placed("a", minute=59)), candidate(1, placed("b", minute=None))],
        [1],
    ),
    "nothing tells them apart": (
        [candidate(0, placed("a")), candidate(1, placed("b")), candidate(2, placed("c"))],
        [0, 1, 2],
    ),
}


@pytest.mark.parametrize(("candidates", "best"), CHOICES.values(), ids=CHOICES.keys())
def test_the_node_where_it_hurts_least(candidates: list[Candidate], best: list[int]) -> None:
    assert [each.row for each in choose(candidates)] == best
    assert [each.row for each in choose(candidates[::-1])] == best[::-1]


# --- both paths -------------------------------------------------------------------------------

NODE_NAMES = [f"n{number}" for number in range(5)]
NODES = st.lists(
    st.builds(
        node,
        st.sampled_from(NODE_NAMES),
        cpu=st.sampled_from(["1", "2", "4"]),
        pods=st.sampled_from([1, 3, 110]),
        resources=st.sampled_from([None, {GPU: "1"}, {GPU: "2"}]),
        labels=st.sampled_from(
            [None, {"disk": "ssd"}, {names.LABEL_HOSTNAME: "x"}, {names.LABEL_HOSTNAME: "y"}]
        ),
        zone=st.sampled_from(["a", "a", "b", "b", None]),
        taints=st.sampled_from([(), (), ("dedicated:NoSchedule",)]),
        unschedulable=st.sampled_from([False, False, False, True]),
    ),
    min_size=2,
    max_size=5,
    unique_by=lambda each: each.metadata.name,
)
PRIORITIES = st.sampled_from([-5, 0, 1, 5, 10])
#: what a pod is but for its name
PLACED = st.fixed_dictionaries(
    {
        "on": st.sampled_from(NODE_NAMES),
        "cpu": st.sampled_from(["0", "100m", "500m", "1", "2"]),
        "requests": st.sampled_from([None, None, {GPU: "1"}, {"example.com/unknown": "1"}]),
        "priority": PRIORITIES,
        "minute": st.sampled_from([None, 0, 1, 2]),
        "app": st.sampled_from(["", "web", "db"]),
        "ports": st.sampled_from([(), (), (80,), (host_port(80, address="10.0.0.1"),)]),
    }
)
BUDGETS = st.lists(
    st.builds(
        budget,
        st.sampled_from(["web", "db"]),
        allowed=st.integers(-1, 2),
        name=st.sampled_from(["x", "y"]),
        disrupted=st.sampled_from([(), ("p0",)]),
    ),
    max_size=2,
)
NOMINATED = st.lists(
    st.tuples(
        st.sampled_from(NODE_NAMES),
        st.sampled_from(["500m", "1", "2"]),
        st.sampled_from([0, 10, 20]),
    ),
    max_size=4,
)
ASKING = st.builds(
    pod,
    st.just("preemptor"),
    cpu=st.sampled_from(["100m", "1", "2", "4"]),
    requests=st.sampled_from([None, None, {GPU: "1"}]),
    priority=st.sampled_from([1, 5, 10, 20]),
    ports=st.sampled_from([(), (), (80,)]),
    node_selector=st.sampled_from([None, None, {"disk": "ssd"}]),
)
ZONE_OR_HOST = st.sampled_from([names.LABEL_ZONE, names.LABEL_HOSTNAME])
TERMS = st.builds(
    lambda key, app: pod_term(key, app=app), ZONE_OR_HOST, st.sampled_from(["web", "db"])
)
#: what a pod requires of other pods, or of where they are
RELATIONS = st.fixed_dictionaries(
    {
        "away_from": st.none() | st.builds(must, TERMS),
        "near": st.none() | st.none() | st.builds(must, TERMS) | st.builds(must, TERMS, TERMS),
        "spread": st.lists(
            st.builds(
                lambda key, app, skew, **more: replace(
                    spread_over(key, max_skew=skew, app=app), **more
                ),
                ZONE_OR_HOST,
                st.sampled_from(["web", "db"]),
                skew=st.integers(1, 2),
                min_domains=st.sampled_from([None, None, 2, 3]),
                node_affinity_policy=st.sampled_from(["Honor", "Ignore"]),
                node_taints_policy=st.sampled_from(["Honor", "Ignore"]),
            ),
            max_size=2,
        ),
    }
)
#: a pod that other nodes matter to
SOCIABLE = st.builds(
    lambda app, relations, **more: pod("preemptor", labels={"app": app}, **relations, **more),
    st.sampled_from(["web", "db", "other"]),
    RELATIONS,
    cpu=st.sampled_from(["100m", "1", "2"]),
    priority=st.sampled_from([1, 5, 10]),
    node_selector=st.sampled_from([None, None, None, {"disk": "ssd"}]),
)
#: pods with relations, on a node or nominated to it
RELATED = st.lists(
    st.tuples(
        st.sampled_from(NODE_NAMES),
        st.sampled_from(["web", "db"]),
        st.sampled_from([0, 5, 10]),
        RELATIONS,
    ),
    max_size=5,
)


def lab_of(
    nodes: list[Node],
    pods: list[dict[str, Any]],
    budgets: list[PodDisruptionBudget],
    nominated: list[tuple[str, str, int]],
) -> Lab:
    lab = Lab(*nodes, *(placed(f"p{number}", **each) for number, each in enumerate(pods)))
    for each in budgets:
        lab.cluster.budgets.put(each)
    for number, (on, cpu, priority) in enumerate(nominated):
        promised = lab.pending(pod(f"promised-{number}", cpu=cpu, priority=priority))
        lab.cluster.nominator.nominate(promised, on)
    return lab


def traces(lab: Lab) -> tuple[Any, ...]:
    """What a search might leave behind."""
    table = lab.cluster.table
    lab.cluster.validate()
    return (
        [list(pods) for pods in table.pods],
        table.row_changes.position,
        table.node_changes.position,
        table.requested.tolist(),
        table.ports.snapshot(),
        dict(table.ports._supposed_free),
    )


@given(
    nodes=NODES,
    pods=st.lists(PLACED, max_size=14),
    budgets=BUDGETS,
    nominated=NOMINATED,
    asking=ASKING,
)
@settings(max_examples=150)
def test_all_rows_together_find_what_rows_one_by_one_find(
    nodes: list[Node],
    pods: list[dict[str, Any]],
    budgets: list[PodDisruptionBudget],
    nominated: list[tuple[str, str, int]],
    asking: Pod,
) -> None:
    lab = lab_of(nodes, pods, budgets, nominated)
    rows = lab.cluster.table.order.rows().tolist()
    lab.feasible(asking)  # plans and counters that the search may use are there
    before = traces(lab)
    together = search(lab, asking, rows=rows)
    assert traces(lab) == before
    each_alone = [search(lab, asking, rows=[row]) for row in rows]
    assert traces(lab) == before
    with patch.object(ProfileFilters, "is_arithmetic", lambda self, state: False):
        alone = search(lab, asking, rows=rows)
        assert traces(lab) == before

    assert together == alone
    for one in each_alone:
        assert one.victims.items() <= alone.victims.items()
        assert one.refusals.items() <= alone.refusals.items()
    assert {*together.victims, *together.refusals} == {each.metadata.name for each in nodes}


@given(
    nodes=NODES,
    pods=st.lists(PLACED, max_size=10),
    budgets=BUDGETS,
    related=st.tuples(RELATED, RELATED),
    asking=SOCIABLE,
)
@settings(max_examples=300)
def test_counts_find_what_transactions_find(
    nodes: list[Node],
    pods: list[dict[str, Any]],
    budgets: list[PodDisruptionBudget],
    related: tuple[list[Any], list[Any]],
    asking: Pod,
) -> None:
    lab, (placed_with, nominated_with) = lab_of(nodes, pods, budgets, []), related
    for number, (on, app, priority, relations) in enumerate(placed_with):
        lab.cluster.put_pod(placed(f"r{number}", on=on, app=app, priority=priority, **relations))
    for number, (on, app, priority, relations) in enumerate(nominated_with):
        promised = pod(f"n{number}", cpu="1", priority=priority, labels={"app": app}, **relations)
        lab.cluster.nominator.nominate(lab.pending(promised), on)
    lab.feasible(asking)
    before, rows = traces(lab), lab.cluster.table.order.rows().tolist()
    with patch.object(ProfileFilters, "is_arithmetic", lambda self, state: False):
        expected, why = search(lab, asking, rows=rows), diagnosed(lab, asking)
    assert traces(lab) == before

    assert search(lab, asking, rows=rows) == expected
    assert diagnosed(lab, asking) == why
    assert traces(lab) == before
    assert {*expected.victims, *expected.refusals} == {each.metadata.name for each in nodes}


def diagnosed(lab: Lab, asking: Pod) -> object:
    """Where a pod fits, or why it does not."""
    found = lab.framework.evaluator.look(CycleState(), lab.pending(asking))
    if not isinstance(found, Diagnosis):
        return found.rows().tolist()
    return [found.status_of(row) for row in lab.cluster.table.order.rows().tolist()]


# --- what is kept from one search to the next -------------------------------------------------


NAMES = st.sampled_from([f"n{number}" for number in range(2)])
EARLIER = "2025-12-31T00:00:00Z"
MINUTES = st.none() | st.integers(0, 9)


class ManySearches(RuleBasedStateMachine):
    """Whatever happens between two searches, what is kept gives what a new search finds."""

    def __init__(self) -> None:
        super().__init__()
        self.lab = Lab(*(node(f"n{number}", cpu="4", zone="z") for number in range(2)))
        self.kept = VictimSearch(self.lab.cluster)
        self.serial = 0
        self.pods: list[Pod] = []
        self.promised: list[PodInfo] = []

    @rule(on=NAMES, cpu=st.sampled_from(["1", "2"]), priority=st.integers(0, 1), minute=MINUTES)
    def place(self, on: str, cpu: str, priority: int, minute: int | None) -> None:
        self.serial += 1
        app = f"a{self.serial % 2}"
        made = placed(f"p{self.serial}", on=on, cpu=cpu, priority=priority, minute=minute, app=app)
        self.lab.cluster.put_pod(made)
        self.pods.append(made)

    @precondition(lambda self: self.pods)
    @rule(which=st.integers(0, 99))
    def remove(self, which: int) -> None:
        gone = self.pods.pop(which % len(self.pods))
        self.lab.cluster.remove_pod(gone.metadata.uid)

    @precondition(lambda self: self.pods)
    @rule(which=st.integers(0, 99), minute=st.integers(0, 9))
    def start(self, which: int, minute: int) -> None:
        """Only a pod's status changes: what it takes from its node stays the same."""
        which %= len(self.pods)
        old = self.pods[which]
        when = f"2026-01-01T00:{minute:02}:00Z"
        self.pods[which] = replace(old, status=replace(old.status, start_time=when))
        self.lab.cluster.put_pod(self.pods[which])

    @rule(on=NAMES, cpu=st.sampled_from(["1", "3"]), priority=st.integers(4, 6))
    def nominate(self, on: str, cpu: str, priority: int) -> None:
        self.serial += 1
        info = self.lab.pending(pod(f"w{self.serial}", cpu=cpu, priority=priority))
        self.lab.cluster.nominator.nominate(info, on)
        self.promised.append(info)

    @precondition(lambda self: self.promised)
    @rule(which=st.integers(0, 99))
    def take_nomination_back(self, which: int) -> None:
        info = self.promised.pop(which % len(self.promised))
        self.lab.cluster.nominator.clear(info.uid)

    @rule(app=st.sampled_from(["a0", "a1"]), allowed=st.integers(0, 2))
    def budget(self, app: str, allowed: int) -> None:
        self.lab.cluster.budgets.put(budget(app, allowed=allowed, name=app))

    @rule(name=NAMES, cpu=st.sampled_from(["2", "4"]))
    def change_node(self, name: str, cpu: str) -> None:
        self.lab.cluster.put_node(node(name, cpu=cpu, zone="z"))

    @rule(
        cpu=st.sampled_from(["1", "3"]),
        priority=st.integers(5, 6),
        enough=st.sampled_from([1, 9]),
        away=st.booleans(),
    )
    def search(self, cpu: str, priority: int, enough: int, *, away: bool) -> None:
        """Search for a pod to which other nodes matter, too, if it is to be `away` from pods."""
        waiting = [each for each in self.promised if each.priority == priority]
        terms = must(pod_term(names.LABEL_ZONE, app="a0")) if away else None
        alone = pod("asking", cpu=cpu, priority=priority, away_from=terms)
        asking = waiting[0].pod if waiting else alone
        info, evaluator = self.lab.pending(asking), self.lab.framework.evaluator
        state = CycleState()
        feasible_rows(evaluator, state, info)
        rows = self.lab.cluster.table.order.rows()
        fresh = VictimSearch(self.lab.cluster)
        kept, new = (
            Result(self.lab, each.search(evaluator, state, info, rows, enough=enough))
            for each in (self.kept, fresh)
        )
        assert kept == new


ManySearches.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
test_what_is_kept_is_what_would_be_found = ManySearches.TestCase


@given(pods=st.lists(PLACED, min_size=1, max_size=14), budgets=BUDGETS, nodes=NODES, asking=ASKING)
@settings(max_examples=50)
def test_columns_choose_whom_objects_choose(
    nodes: list[Node], pods: list[dict[str, Any]], budgets: list[PodDisruptionBudget], asking: Pod
) -> None:
    lab = lab_of(nodes, pods, budgets, [])
    info, state, evaluator = lab.pending(asking), CycleState(), lab.framework.evaluator
    feasible_rows(evaluator, state, info)
    rows = lab.cluster.table.order.rows()
    found = VictimSearch(lab.cluster).search(evaluator, state, info, rows, enough=99)
    if found:
        assert found.best_rows().tolist() == [each.row for each in choose(found.candidates)]


def search_again(lab: Lab, kept: VictimSearch, preemptor: Pod) -> Result:
    info, state, evaluator = lab.pending(preemptor), CycleState(), lab.framework.evaluator
    feasible_rows(evaluator, state, info)
    rows = lab.cluster.table.order.rows()
    return Result(lab, kept.search(evaluator, state, info, rows, enough=99))


def test_a_victim_that_has_started_meanwhile_is_more_important_than_one_that_has_not() -> None:
    first, second = placed("a", cpu="2", minute=1), placed("b", cpu="2", minute=None)
    lab, asking = Lab(node("n1", cpu="4"), first, second), pod("p", cpu="2", priority=5)
    kept = VictimSearch(lab.cluster)
    assert search_again(lab, kept, asking).victims == {"n1": ["b"]}
    lab.cluster.put_pod(replace(second, status=replace(second.status, start_time=EARLIER)))
    assert search_again(lab, kept, asking).victims == {"n1": ["a"]}


def test_room_that_is_kept_for_a_pod_is_free_to_it_and_to_nobody_else() -> None:
    lab = Lab(node("n1", cpu="4"), placed("a", cpu="2"), placed("b", cpu="1"))
    kept, promised, other = (
        VictimSearch(lab.cluster),
        pod("promised", cpu="3", priority=5),
        pod("other", cpu="3", priority=5),
    )
    lab.cluster.nominator.nominate(lab.pending(promised), "n1")
    for _ in range(2):
        assert search_again(lab, kept, other).victims == {}
        assert search_again(lab, kept, promised).victims == {"n1": ["a"]}


def test_preemptors_that_are_gone_leave_little_behind() -> None:
    """Each may be of a kind of its own, and what is cached about its signature stays with it."""
    lab = Lab(node("n1", cpu="1", zone="z"), pod("low", cpu="1", node="n1", priority=1))
    search, evaluator, signatures = VictimSearch(lab.cluster), lab.framework.evaluator, []
    for number in range(300):
        near = must(pod_term(names.LABEL_ZONE, app=f"{number}"))
        preemptor = pod(f"p{number}", cpu=f"{number + 1}m", priority=9, near=near)
        info, state = lab.pending(preemptor), CycleState()
        feasible_rows(evaluator, state, info)
        rows = lab.cluster.table.order.rows()
        assert not search.search(evaluator, state, info, rows, enough=1).candidates
        signatures.append(ref(info.signature))

    del info, state
    gc.collect()
    assert sum(each() is not None for each in signatures) < 150
