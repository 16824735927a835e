"""DefaultPreemption: who may preempt, what it says when nothing helps, whom it has evicted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api import names as api_names
from kubesched.api.core import Node, Pod, PodCondition
from kubesched.config.args import DefaultPreemptionArgs
from kubesched.framework.attempt_error import AttemptPausedError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.status import Code, Status, unresolvable, unschedulable
from kubesched.plugins import default_preemption, victims
from kubesched.plugins.default_preemption import DefaultPreemption
from tests.support.evaluating import feasible_rows
from tests.support.objects import must, node, pod, pod_term
from tests.support.scheduling import Lab

from .test_victims import budget, placed

HOST = api_names.LABEL_HOSTNAME
GONE_SOON = "2026-01-01T01:00:00Z"


def plugin_of(lab: Lab) -> DefaultPreemption:
    plugin = lab.framework.plugins.instances["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    return plugin


def preempt(lab: Lab, preemptor: Pod) -> PostFilterResult:
    """What PostFilter says to a pod that fits nowhere."""
    info, state = lab.pending(preemptor), CycleState()
    diagnosis = feasible_rows(lab.framework.evaluator, state, info)
    assert isinstance(diagnosis, Diagnosis)
    return lab.framework.post_filter(state, info, diagnosis)


def text(lab: Lab, preemptor: Pod) -> str:
    """What the condition of a pod that fits nowhere says in the end."""
    info, state = lab.pending(preemptor), CycleState()
    diagnosis = feasible_rows(lab.framework.evaluator, state, info)
    assert isinstance(diagnosis, Diagnosis)
    diagnosis.post_filter_message = lab.framework.post_filter(state, info, diagnosis).status.message
    return diagnosis.message()


def terminating(
    each: Pod, *, reason: str = "PreemptionByScheduler", status: str = "True", deleted: bool = True
) -> Pod:
    """A pod on its way out, as preemption leaves it unless said otherwise."""
    condition = PodCondition(type="DisruptionTarget", status=status, reason=reason)
    return replace(
        each,
        metadata=replace(each.metadata, deletion_timestamp=GONE_SOON if deleted else None),
        status=replace(each.status, conditions=(condition,)),
    )


# --- success ----------------------------------------------------------------------------------


def attempts_of(lab: Lab, preemptor: Pod, *, nodes: int) -> list[PostFilterResult | None]:
    """The results of attempts that may be paused; None where one was."""
    info, results = lab.pending(preemptor), list[PostFilterResult | None]()
    while not results or results[-1] is None:
        assert len(results) <= nodes, "each attempt gets on"
        state = CycleState()
        state.may_pause = True
        diagnosis = feasible_rows(lab.framework.evaluator, state, info)
        assert isinstance(diagnosis, Diagnosis)
        try:
            results.append(lab.framework.post_filter(state, info, diagnosis))
        except AttemptPausedError:
            results.append(None)
    return results


@pytest.mark.parametrize("relation", [{}, {"away_from": must(pod_term(HOST, app="web"))}])
def test_a_search_that_is_paused_finds_what_it_would_have_found_at_once(
    relation: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"n{number}" for number in range(7)]
    objects: list[Node | Pod] = [
        *(node(name, cpu="2", labels={HOST: name}) for name in names),
        *(placed(f"{on}-web", on=on, priority=1, app="web") for on in names),
        *(placed(f"{on}-other", on=on, priority=1, app="other") for on in names),
    ]
    at_once, paused = Lab(*objects), Lab(*objects)
    asking = [pod(f"p{number}", cpu="1", priority=5, **relation) for number in range(3)]
    expected = [preempt(at_once, each) for each in asking]
    counter = plugin_of(paused)._metrics.preemption_attempts
    before = counter.value
    monkeypatch.setattr(victims, "TOGETHER", 2)
    monkeypatch.setattr(default_preemption, "SLICE_S", 0.0)
    attempts = [attempts_of(paused, each, nodes=len(names)) for each in asking]

    assert attempts == [[None] * 3 + [expected[0]], [expected[1]], [expected[2]]]
    assert paused.evictor.evicted == at_once.evictor.evicted
    assert counter.value - before == len(asking), "an attempt that is paused counts once"


def test_the_pod_is_nominated_and_the_victims_are_evicted() -> None:
    lab = Lab(
        node("n1", cpu="2"), placed("a", priority=1, minute=1), placed("b", priority=1, minute=2)
    )
    said = "preemption: found a potential placement for pod on node n1, preempting 1 victims"
    assert preempt(lab, pod("p", cpu="1", priority=5)) == PostFilterResult(
        Status(Code.SUCCESS, (said,), "DefaultPreemption"), nominated_node="n1"
    )
    assert lab.evictor.evicted == [("p", "n1", ["b"])]


def test_the_search_for_victims_is_timed_by_its_result() -> None:
    lab = Lab(node("n1", cpu="1"), placed("a"))
    family = plugin_of(lab)._metrics.preemption_evaluation_duration

    def counts() -> list[int]:
        codes = (Code.SUCCESS, Code.UNSCHEDULABLE)
        return [family.labels("pod", code.label).cumulative()[-1] for code in codes]

    helped, refused = counts()
    preempt(lab, pod("p", cpu="1", priority=5))
    assert counts() == [helped + 1, refused]
    preempt(lab, pod("q", cpu="2", priority=5))
    assert counts() == [helped + 1, refused + 1]


def test_a_helpful_preemption_is_told_of_at_the_end_of_the_message() -> None:
    lab = Lab(node("n1", cpu="1"), placed("a"))
    asking = pod("p", cpu="1", priority=5)
    assert text(lab, asking) == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: found a potential placement for pod on node n1, preempting 1 victims"
    )


def test_the_node_where_it_hurts_least_is_taken() -> None:
    lab = Lab(
        *(node(f"n{i}", cpu="1") for i in range(4)),
        *(
            placed(f"p{i}", on=f"n{i}", priority=priority)
            for i, priority in enumerate([3, 1, 2, 3])
        ),
    )
    assert preempt(lab, pod("p", cpu="1", priority=5)).nominated_node == "n1"


def test_a_budget_is_respected_where_there_is_a_choice() -> None:
    lab = Lab(
        node("n1", cpu="1"),
        node("n2", cpu="1"),
        placed("guarded", on="n1", app="db", priority=0),
        placed("free", on="n2", app="web", priority=4),
    )
    lab.cluster.budgets.put(budget("db", allowed=0))
    assert preempt(lab, pod("p", cpu="1", priority=5)).nominated_node == "n2"


def test_a_budget_is_overdrawn_where_there_is_none() -> None:
    lab = Lab(node("n1", cpu="1"), placed("guarded", app="db"))
    lab.cluster.budgets.put(budget("db", allowed=0))
    preempt(lab, pod("p", cpu="1", priority=5))
    assert lab.evictor.evicted == [("p", "n1", ["guarded"])]


def test_a_pod_that_was_nominated_elsewhere_may_preempt_again() -> None:
    lab = Lab(
        node("n1", cpu="1"), node("n2", cpu="1"), placed("a"), placed("b", on="n2", priority=9)
    )
    asking = pod("p", cpu="1", priority=5, nominated="gone")
    assert preempt(lab, asking).nominated_node == "n1"


# --- who may not ------------------------------------------------------------------------------


def test_a_pod_may_choose_not_to_preempt() -> None:
    lab = Lab(node("n1", cpu="1"), placed("a"))
    asking = pod("p", cpu="1", priority=5)
    polite = replace(asking, spec=replace(asking.spec, preemption_policy="Never"))
    result = preempt(lab, polite)
    assert result.status.reasons[-1] == "preemption: not eligible due to preemptionPolicy=Never."
    assert result.nominated_node is None
    assert text(lab, polite) == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: not eligible due to preemptionPolicy=Never."
    )
    assert lab.evictor.evicted == []


def test_a_pod_whose_victims_are_still_going_waits_for_them() -> None:
    lab = Lab(node("n1", cpu="1"), terminating(placed("a")))
    result = preempt(lab, pod("p", cpu="1", priority=5, nominated="n1"))
    assert result.status.reasons[-1] == (
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    assert result.nominated_node is None


@pytest.mark.parametrize(
    "other",
    [
        terminating(placed("a", priority=5)),
        terminating(placed("a"), reason="DeletionByTaintManager"),
        terminating(placed("a"), status="False"),
        terminating(placed("a"), deleted=False),
        terminating(placed("a", on="n2")),
    ],
    ids=["same priority", "another reason", "no longer true", "not deleted", "on another node"],
)
def test_other_pods_on_their_way_out_are_no_reason_to_wait(other: Pod) -> None:
    lab = Lab(node("n1", cpu="1"), node("n2", cpu="1"), other)
    asking = pod("p", cpu="2", priority=5, nominated="n1")
    assert "not eligible" not in text(lab, asking)


def test_a_nominated_node_that_cannot_take_the_pod_any_more_is_no_reason_to_wait() -> None:
    lab = Lab(
        node("n1", cpu="1", unschedulable=True),
        node("n2", cpu="1"),
        terminating(placed("a")),
        placed("b", on="n2"),
    )
    asking = pod("p", cpu="1", priority=5, nominated="n1")
    assert preempt(lab, asking).nominated_node == "n2"


def test_a_pod_is_kept_out_while_its_victims_are_being_evicted() -> None:
    lab = Lab()
    waiting = lab.pending(pod("p"))
    assert lab.plugin("DefaultPreemption").pre_enqueue(waiting).ok
    lab.evictor.under_way.add("p")
    assert lab.plugin("DefaultPreemption").pre_enqueue(waiting) == unresolvable(
        "waiting for the preemption for this pod to be finished"
    )


# --- when nothing helps -----------------------------------------------------------------------

NOTHING_HELPS: dict[str, tuple[list[Node | Pod], Pod, str]] = {
    "nobody is less important": (
        [node("n1", cpu="1"), node("n2", cpu="1"), placed("a", priority=5)],
        pod("p", cpu="2", priority=5),
        (
            "0/2 nodes are available: 2 Insufficient cpu. "
            "preemption: 0/2 nodes are available: "
            "2 Preemption is not helpful for scheduling."
        ),
    ),
    "more important pods fill the node": (
        [node("n1", cpu="2"), placed("a", priority=9, cpu="2")],
        pod("p", cpu="1", priority=5),
        (
            "0/1 nodes are available: 1 Insufficient cpu. "
            "preemption: 0/1 nodes are available: "
            "1 No preemption victims found for incoming pod."
        ),
    ),
    "too little even without them": (
        [node("n1", cpu="2"), placed("a", priority=9, cpu="1500m"), placed("b", cpu="500m")],
        pod("p", cpu="1", priority=5),
        (
            "0/1 nodes are available: 1 Insufficient cpu. "
            "preemption: 0/1 nodes are available: "
            "1 Insufficient cpu."
        ),
    ),
    "eviction does not change a label": (
        [node("n1"), node("n2"), placed("a")],
        pod("p", priority=5, node_selector={"disk": "ssd"}),
        (
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. "
            ""
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        ),
    ),
    "a mix": (
        [
            node("cordoned", unschedulable=True),
            node("empty", cpu="500m"),
            node("busy", cpu="2"),
            node("full", pods=1),
            placed("high", on="busy", priority=9, cpu="2"),
            placed("higher", on="full", priority=9),
        ],
        pod("p", cpu="1", priority=5),
        (
            "0/4 nodes are available: 1 Too many pods, 1 node(s) were unschedulable, "
            "2 Insufficient cpu. "
            "preemption: 0/4 nodes are available: "
            "2 No preemption victims found for incoming pod, "
            "2 Preemption is not helpful for scheduling."
        ),
    ),
}


@pytest.mark.parametrize(
    ("objects", "asking", "message"), NOTHING_HELPS.values(), ids=NOTHING_HELPS.keys()
)
def test_what_is_said_when_nothing_helps(
    objects: list[Node | Pod], asking: Pod, message: str
) -> None:
    lab = Lab(*objects)
    assert text(lab, asking) == message
    assert lab.evictor.evicted == []


def test_a_pod_that_nothing_helps_loses_its_nomination() -> None:
    lab = Lab(node("n1", cpu="1"))
    assert preempt(lab, pod("p", cpu="2", priority=5, nominated="n1")).nominated_node == ""


# --- how many nodes are tried -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("percentage", "absolute", "tried"),
    [(10, 100, 20), (10, 0, 2), (0, 3, 3), (50, 3, 10), (100, 0, 20), (10, 5, 5)],
)
def test_as_many_nodes_are_tried_as_the_arguments_say(
    percentage: int, absolute: int, tried: int
) -> None:
    args = DefaultPreemptionArgs(
        min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute
    )
    lab = Lab(
        *(node(f"n{i}", cpu="1") for i in range(20)),
        *(placed(f"p{i}", on=f"n{i}") for i in range(20)),
        args={"DefaultPreemption": args},
    )
    info, state = lab.pending(pod("p", cpu="1", priority=5)), CycleState()
    diagnosis = feasible_rows(lab.framework.evaluator, state, info)
    assert isinstance(diagnosis, Diagnosis)
    found = lab.plugin("DefaultPreemption").find(state, info, diagnosis)
    assert len(found.candidates) == tried


def test_not_always_the_same_nodes_are_tried_first() -> None:
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=1)
    lab = Lab(
        *(node(f"n{i}", cpu="1") for i in range(20)),
        *(placed(f"p{i}", on=f"n{i}") for i in range(20)),
        args={"DefaultPreemption": args},
    )
    chosen = {preempt(lab, pod("p", cpu="1", priority=5)).nominated_node for _ in range(10)}
    assert len(chosen) > 3


# --- nodes that filters let pass and extenders refused ----------------------------------------


def test_a_node_that_needs_no_victim_is_no_candidate() -> None:
    """An extender refused it, and evicting pods does not change an extender's mind."""
    lab = Lab(node("n1", cpu="2"), placed("a"))
    info, state = lab.pending(pod("p", cpu="1", priority=5)), CycleState()
    evaluator = lab.framework.evaluator
    assert not isinstance(feasible_rows(evaluator, state, info), Diagnosis)
    refused = unschedulable("not today").by("Extender")
    diagnosis = evaluator.diagnose(state, info, {0: refused})
    result = lab.framework.post_filter(state, info, diagnosis)
    assert lab.evictor.evicted == []
    assert not result.nominated_node
    assert result.status.message == 'preemption: expected at least one victim pod on node "n1"'


def test_several_nodes_that_need_no_victim_are_all_named() -> None:
    lab = Lab(node("n1", cpu="2"), node("n2", cpu="2"), placed("a"), placed("b", on="n2"))
    info, state = lab.pending(pod("p", cpu="1", priority=5)), CycleState()
    feasible_rows(lab.framework.evaluator, state, info)
    refused = unschedulable("not today").by("Extender")
    diagnosis = lab.framework.evaluator.diagnose(state, info, {0: refused, 1: refused})
    result = lab.framework.post_filter(state, info, diagnosis)
    missing = 'expected at least one victim pod on node "{}"'
    assert result.status.message in {
        f"preemption: [{missing.format(first)}, {missing.format(second)}]"
        for first, second in (("n1", "n2"), ("n2", "n1"))
    }
