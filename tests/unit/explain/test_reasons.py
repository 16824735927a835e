"""Every reason of a node, also where one filter has several; the scheduler's own words stay."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kubesched.cluster.node_rows import NodeRows
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.explain.explaining import explain
from kubesched.explain.reasons import all_of
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import unresolvable, unschedulable
from kubesched.framework.verdict import ALL_PASS, first_of, reject
from kubesched.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.snapshot.contents import Snapshot
from kubesched.snapshot.world import World
from tests.support.objects import must, node, pod, pod_term

GATES = FeatureGates.of({})
HOST = "kubernetes.io/hostname"
NEAR = "node(s) didn't match pod affinity rules"
AWAY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


def world(nodes: list[object], pods: list[object]) -> World:
    taken = Snapshot(source="test")
    taken.objects["Node"], taken.objects["Pod"] = nodes, pods
    return World.of_snapshot(taken, SchedulerConfiguration.default(GATES), GATES)


def test_all_three_rules_of_one_node_are_given_and_the_message_has_the_first() -> None:
    wanted = pod(
        "p",
        labels={"app": "x"},
        near=must(pod_term(HOST, app="y")),
        away_from=must(pod_term(HOST, app="z")),
    )
    there = [
        pod("z", node="all", labels={"app": "z"}, away_from=must(pod_term(HOST, app="x"))),
        pod("y", node="two", labels={"app": "y"}, away_from=must(pod_term(HOST, app="x"))),
        pod("z2", node="two", labels={"app": "z"}),
    ]
    nodes = [node(name, labels={HOST: name}) for name in ("all", "two")]

    said = explain(world([*nodes], [*there, wanted]), wanted)

    by_node = {each.node: [reason.text for reason in each.reasons] for each in said.nodes}
    assert by_node == {"all": [NEAR, AWAY, EXISTING], "two": [AWAY, EXISTING]}
    assert {each.text: each.nodes for each in said.reasons} == {NEAR: 1, AWAY: 2, EXISTING: 2}
    assert said.message.startswith(f"0/2 nodes are available: 1 {NEAR}, 1 {AWAY}.")


@pytest.mark.parametrize("seed", range(40))
def test_the_rules_together_are_what_the_filter_says(seed: int) -> None:
    rng = random.Random(seed)
    apps = ["a", "b", "c"]

    def wishes() -> dict[str, object]:
        made: dict[str, object] = {"labels": {"app": rng.choice(apps)}}
        for kind in ("near", "away_from"):
            if rng.random() < 0.6:
                made[kind] = must(pod_term(rng.choice([HOST, "zone"]), app=rng.choice(apps)))
        return made

    nodes = [node(f"n{i}", labels={HOST: f"n{i}", "zone": f"z{i % 3}"}) for i in range(9)]
    pods = [pod(f"p{i}", node=f"n{rng.randrange(9)}", **wishes()) for i in range(8)]  # type: ignore[arg-type]  # as made
    built = world([*nodes], [*pods])
    (framework,) = built.frameworks.values()
    plugin = framework.plugins.instances["InterPodAffinity"]
    assert isinstance(plugin, InterPodAffinity)
    info = built.compile(pod("new", **wishes()))  # type: ignore[arg-type]  # as made
    everywhere = NodeRows.all_of(built.table)

    first = first_of(*plugin.rules(info, everywhere))
    said = plugin.filter(CycleState(), info, everywhere)

    for row in range(9):
        assert first.status_of(row) == said.status_of(row)


def test_combined_answers() -> None:
    one, two = unresolvable("one"), unschedulable("two")
    first = reject(np.array([True, True, False, False]), one)
    second = reject(np.array([True, False, True, False]), two)

    both = all_of([first, ALL_PASS, second])

    assert [both.status_of(row) for row in range(4)] == [
        unresolvable("one", "two"),
        one,
        two,
        None,
    ]
    assert all_of([ALL_PASS]) is ALL_PASS
    everywhere = all_of([reject(np.array([True, True]), one)])
    assert [everywhere.status_of(row) for row in range(2)] == [one, one]
