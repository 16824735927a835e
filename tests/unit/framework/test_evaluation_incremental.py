"""The promise of the design: what is kept and updated equals what is computed from scratch.

A framework lives through a sequence of events and is asked now and then about some signatures. Each
time its answers are those of a framework that was made a moment ago: on the same cluster, and on
a new cluster that was given only the objects that are there now.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.cluster.cluster import Cluster
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.runtime import Framework
from tests.support.evaluating import feasible_rows
from tests.support.objects import on_node
from tests.support.random_cluster import ASKING, EVENTS, FIRST_NODES, SOCIABLE, Event
from tests.support.scheduling import framework_of

EVERYBODY = ASKING + SOCIABLE

#: What happens, and who asks after it: a subset, so that some columns stay behind for a while.
STEPS = st.lists(
    st.tuples(EVENTS, st.lists(st.sampled_from(range(len(EVERYBODY))), max_size=3, unique=True)),
    min_size=1,
    max_size=14,
)


def answers(cluster: Cluster, framework: Framework, asking: Pod) -> dict[str, Any]:
    """Everything that an evaluator says about a pod, by node name."""
    evaluator, table = framework.evaluator, cluster.table
    info, state = cluster.compiler.pending(asking), CycleState()
    found = feasible_rows(evaluator, state, info)
    if isinstance(found, Diagnosis):
        return {
            "feasible": [],
            "message": found.message(),
            "plugins": found.unschedulable_plugins,
            "statuses": {name: found.status_of(table.row_of(name) or 0) for name in table.names()},
        }
    names = [table.name_at(row) for row in found.tolist()]
    scores = {
        each.plugin: (
            each.weight,
            dict(zip(names, each.raw.tolist(), strict=True)),
            dict(zip(names, each.normalized.tolist(), strict=True)),
        )
        for each in evaluator.plugin_scores(state, info, found)
    }
    return {"feasible": names, "scores": scores}


def rebuilt(cluster: Cluster) -> Cluster:
    """A cluster of the objects that are in this one, in the order in which it lists its nodes."""
    new = Cluster()
    for row in cluster.table.order.rows().tolist():
        new.put_node(cluster.table.node_at(row))
    for uid, (info, node_name) in cluster._placed.items():
        if cluster.is_assumed(uid):
            new.assume(new.compiler.pending(on_node(info.pod, "")), node_name)
        else:
            new.put_pod(info.pod)
    return new


def unordered(answer: dict[str, Any]) -> dict[str, Any]:
    """Without the order of nodes, which depends on history."""
    return {**answer, "feasible": set(answer["feasible"])}


@given(nodes=FIRST_NODES, steps=STEPS)
@settings(max_examples=70)
def test_a_framework_that_saw_everything_says_what_a_new_one_says(
    nodes: list[Node], steps: list[tuple[Event, list[int]]]
) -> None:
    cluster = Cluster()
    for each in nodes:
        cluster.put_node(each)
    old = framework_of(cluster)
    for asking in EVERYBODY:
        answers(cluster, old, asking)
    for event, who_asks in steps:
        event.apply(cluster)
        new = framework_of(cluster)
        for index in who_asks:
            assert answers(cluster, old, EVERYBODY[index]) == answers(
                cluster, new, EVERYBODY[index]
            )
    cluster.validate()
    elsewhere = rebuilt(cluster)
    brand_new = framework_of(elsewhere)
    for asking in EVERYBODY:
        said = answers(cluster, old, asking)
        assert unordered(said) == unordered(answers(elsewhere, brand_new, asking))


@given(nodes=FIRST_NODES, events=st.lists(EVENTS, min_size=3, max_size=12), late=st.booleans())
@settings(max_examples=25)
def test_a_reader_that_comes_after_the_log_was_cut_is_not_misled(
    nodes: list[Node], events: list[Event], late: bool
) -> None:
    cluster = Cluster()
    for log in (cluster.table.node_changes, cluster.table.row_changes):
        log._length = 4
    for each in nodes:
        cluster.put_node(each)
    old = framework_of(cluster)
    asking = ASKING[:: 2 if late else 1]
    for one in asking:
        answers(cluster, old, one)
    for event in events:
        event.apply(cluster)
    new = framework_of(cluster)
    for one in asking:
        assert answers(cluster, old, one) == answers(cluster, new, one)
