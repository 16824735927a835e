"""A framework is built from a profile: its plugins, what they are given, and what is refused."""

from __future__ import annotations

from typing import ClassVar, Self

import pytest

from kubesched.clock import RealClock
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_signature import PodSignature
from kubesched.config.defaults import complete_profile
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginRef, Plugins, PluginSet, Profile
from kubesched.errors import ConfigError
from kubesched.framework.building import build_framework
from kubesched.framework.null_writers import NullBinder, NullClaimWriter, NullVolumeWriter
from kubesched.framework.plugin import NODE, RowFilter
from kubesched.framework.registry import PluginContext
from kubesched.framework.verdict import ALL_PASS, Verdict
from kubesched.plugins.in_tree import IN_TREE
from tests.support.group_objects import GROUPS
from tests.support.objects import node
from tests.support.scheduling import RecordingBinder, RecordingEvictor, cluster_of, framework_of


class Mine(RowFilter):
    name = "Mine"
    reads = NODE
    given: ClassVar[list[PluginContext]] = []

    @classmethod
    def create(cls, context: PluginContext) -> Self:
        cls.given.append(context)
        return cls()

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        return ALL_PASS


class Refusing(Mine):
    name = "Refusing"

    @classmethod
    def create(cls, context: PluginContext) -> Self:
        raise ConfigError("limit: must be greater than zero")


@pytest.fixture(autouse=True)
def _nothing_was_given() -> None:
    Mine.given.clear()


def test_each_plugin_is_made_once_with_the_cluster_and_what_it_may_act_with() -> None:
    cluster, binder, evictor = cluster_of(node("n")), RecordingBinder(), RecordingEvictor()
    framework = framework_of(cluster, plugins=[Mine], binder=binder, evictor=evictor)

    (context,) = Mine.given
    assert context.cluster is cluster
    assert context.binder is binder
    assert context.evictor is evictor
    assert isinstance(framework.plugins.instances["Mine"], Mine)


def test_what_is_not_given_refuses_to_act() -> None:
    gates, mine = FeatureGates.of(), PluginSet(enabled=(PluginRef(name="Mine"),))
    build_framework(
        complete_profile(
            Profile(scheduler_name="s", plugins=Plugins(multi_point=mine)),
            given_args=(),
            gates=gates,
        ),
        registry=IN_TREE.with_plugins([Mine]),
        gates=gates,
        cluster=cluster_of(node("n")),
    )

    (context,) = Mine.given
    assert isinstance(context.binder, NullBinder)
    assert isinstance(context.volume_writer, NullVolumeWriter)
    assert isinstance(context.claim_writer, NullClaimWriter)
    assert isinstance(context.clock, RealClock)


def test_plugins_may_ask_the_evaluator_once_the_framework_is_built() -> None:
    framework = framework_of(cluster_of(node("n")), plugins=[Mine])

    assert Mine.given[0].evaluator.get() is framework.evaluator


def test_a_plugin_that_cannot_be_made_is_named() -> None:
    with pytest.raises(ConfigError) as refused:
        framework_of(cluster_of(node("n")), plugins=[Refusing])

    assert str(refused.value) == 'initializing plugin "Refusing": limit: must be greater than zero'


@pytest.mark.parametrize(("gates", "want"), [(FeatureGates.of(), []), (GROUPS, ["GangScheduling"])])
def test_groups_are_scheduled_with_their_gate(gates: FeatureGates, want: list[str]) -> None:
    framework = framework_of(cluster_of(node("n")), only=["GangScheduling"], gates=gates)

    assert [each.name for each in framework.groups.placement_feasible] == want
