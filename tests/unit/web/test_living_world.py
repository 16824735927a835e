"""A state in use as a world: with what was decided but not yet seen, and no way out."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from kubesched.config.features import FeatureGates
from kubesched.config.types import Extender, SchedulerConfiguration
from kubesched.errors import PluginError
from kubesched.explain.explaining import explain, find_pod
from kubesched.framework.cycle_state import CycleState
from kubesched.plugins.in_tree import IN_TREE
from kubesched.web.living_world import LivingWorld, Rules
from tests.support.objects import node, pod
from tests.support.scheduling import cluster_of

GATES = FeatureGates.of({})
RULES = Rules(SchedulerConfiguration.default(GATES), GATES, IN_TREE)


def test_pods_are_where_the_scheduler_has_them() -> None:
    bound, waiting, decided = pod("bound", node="n1", cpu="1"), pod("waiting"), pod("decided")
    cluster = cluster_of(node("n1"), node("n2"), bound)
    cluster.assume(cluster.compiler.pending(decided), "n2")

    world = LivingWorld(cluster, [bound, waiting, decided], RULES, notes=["a note"])

    assert list(world.pending) == [("default", "waiting")]
    assert world.placed["default", "decided"].spec.node_name == "n2"
    assert explain(world, find_pod(world, "default", "decided")).current_node == "n2"
    assert world.notes == ["a note"]
    assert world.table is cluster.table


def test_it_explains_as_the_scheduler_would_decide() -> None:
    cluster = cluster_of(node("n1", cpu="1"), node("n2", cpu="4"))
    waiting = pod("waiting", cpu="2")

    said = explain(LivingWorld(cluster, [waiting], RULES), waiting)

    assert said.best_nodes == ("n2",)


def test_victims_that_are_still_to_go_are_known() -> None:
    world = LivingWorld(cluster_of(), [], RULES, preemptors=lambda: {"preemptor"})

    assert world.engine.evictor.is_evicting_for("preemptor")
    assert not world.engine.evictor.is_evicting_for("other")
    assert not LivingWorld(cluster_of(), [], RULES).engine.evictor.is_evicting_for("preemptor")


def test_nothing_gets_out() -> None:
    cluster = cluster_of(node("n1"))
    world = LivingWorld(cluster, [], RULES)
    framework = world.frameworks["default-scheduler"]
    info = cluster.compiler.pending(pod("p"))

    with pytest.raises(PluginError, match="without a binder"):
        asyncio.run(framework.bind(CycleState(), info, "n1"))


def test_extenders_are_not_asked_and_that_is_said() -> None:
    config = replace(RULES.config, extenders=(Extender(url_prefix="http://127.0.0.1:9"),))

    world = LivingWorld(cluster_of(), [], replace(RULES, config=config))

    assert world.notes == ["1 extenders of the configuration are not asked"]
