"""Deciding without a scheduler: as it would, and without consequences."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from kubesched.cluster.cluster import Cluster
from kubesched.config.profiles import Profile
from kubesched.config.types import Extender, SchedulerConfiguration
from kubesched.errors import ConfigError, PluginError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.registry import Registry
from kubesched.plugins.in_tree import IN_TREE
from kubesched.scheduler.dry_run import DryRun
from tests.support.objects import node, on_node, pod
from tests.support.scheduling import DEFAULT_GATES

CONFIG = SchedulerConfiguration.default(DEFAULT_GATES)


def named(*scheduler_names: str) -> SchedulerConfiguration:
    (profile,) = CONFIG.profiles
    return replace(
        CONFIG, profiles=tuple(replace(profile, scheduler_name=each) for each in scheduler_names)
    )


def engine_of(*nodes: str, seed: int = 0, config: SchedulerConfiguration = CONFIG) -> DryRun:
    cluster = Cluster()
    for name in nodes:
        cluster.put_node(node(name, cpu="1"))
    return DryRun(cluster, config, DEFAULT_GATES, seed=seed)


def decide(engine: DryRun, name: str, *, priority: int = 0) -> tuple[str, list[str], str]:
    info = engine.cluster.compiler.pending(pod(name, cpu="1", priority=priority))
    decision, victims = engine.decide(engine.framework_of("default-scheduler"), info)
    return (
        decision.node_name,
        [each.pod.metadata.name for each in victims],
        decision.nominated_node or "",
    )


def test_a_decision_changes_nothing() -> None:
    engine = engine_of("n1")
    assert decide(engine, "p") == ("n1", [], "")
    assert engine.cluster.pod_count == 0
    assert decide(engine, "q") == ("n1", [], "")


def test_victims_are_returned_and_stay() -> None:
    engine = engine_of("n1")
    engine.cluster.put_pod(on_node(pod("low", cpu="1"), "n1"))
    assert decide(engine, "high", priority=10) == ("", ["low"], "n1")
    assert engine.cluster.pod_count == 1
    assert decide(engine, "other") == ("", [], ""), "the victims of one decision are not another's"


def test_nothing_can_be_bound() -> None:
    engine = engine_of("n1")
    info = engine.cluster.compiler.pending(pod("p"))
    framework = engine.framework_of("default-scheduler")
    with pytest.raises(PluginError, match="built without a binder"):
        asyncio.run(framework.bind(CycleState(), info, "n1"))


def test_the_same_seed_gives_the_same_choices() -> None:
    nodes = [f"n{number}" for number in range(10)]
    engine = engine_of(*nodes, seed=3)
    first = [decide(engine, f"p{number}")[0] for number in range(10)]
    engine.restart(3)
    assert [decide(engine, f"p{number}")[0] for number in range(10)] == first
    assert len(set(first)) > 1


def test_the_first_profile_stands_in_for_a_scheduler_without_one() -> None:
    engine = engine_of("n1", config=named("a", "b"))
    assert engine.framework_of("b").scheduler_name == "b"
    assert engine.framework_of("c").scheduler_name == "a"


def test_another_configuration_takes_over_with_its_plugins_and_the_choices_go_on() -> None:
    engine = engine_of("n1", config=named("a"))
    cycle = engine.cycle
    engine.configure(named("b"), IN_TREE)
    assert list(engine.frameworks) == ["b"]
    assert engine.cycle is cycle


def test_extenders_are_not_asked_and_a_note_says_so() -> None:
    assert engine_of("n1").notes == []
    config = replace(CONFIG, extenders=(Extender(url_prefix="http://127.0.0.1:1"),))
    assert engine_of("n1", config=config).notes == [
        "1 extenders of the configuration are not asked"
    ]


def test_victims_that_are_still_to_go_are_asked_for() -> None:
    engine = DryRun(Cluster(), CONFIG, DEFAULT_GATES, preemptors=lambda: {"preemptor"})
    assert engine.evictor.is_evicting_for("preemptor")
    assert not engine.evictor.is_evicting_for("other")


def test_a_configuration_that_cannot_be_used_is_refused() -> None:
    config = SchedulerConfiguration(profiles=(Profile(scheduler_name="a"),))
    with pytest.raises(ConfigError):
        DryRun(Cluster(), config, DEFAULT_GATES, registry=Registry([]))
