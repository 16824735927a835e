"""The plugins of a profile: at their points, and which of them run for a pod."""

from __future__ import annotations

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodCompiler, PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Filter, PreFilter, PreFilterResult, Reserve, Score
from kubesched.framework.profile import PointPlugins, of_kind
from kubesched.framework.status import SUCCESS, Status
from kubesched.framework.verdict import ALL_PASS, Verdict
from tests.support.objects import node, pod
from tests.support.scheduling import cluster_of, framework_of
from tests.support.storage_objects import using


class Everywhere(PreFilter, Filter, Reserve):
    """A plugin at several points that has nothing to do with pods without volumes."""

    name = "Everywhere"
    only_with_volumes = True
    skips_resizes = True

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
        return ALL_PASS

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        pass


class Reserving(Reserve):
    """A plugin that can reject pods at one point only."""

    name = "Reserving"

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        pass


class Always(Everywhere):
    name = "Always"
    only_with_volumes = False
    skips_resizes = False


PLUGINS = [Everywhere(), Always()]


def test_plugins_that_need_volumes_run_for_pods_that_have_some() -> None:
    compiler = PodCompiler()
    point: PointPlugins[Everywhere] = PointPlugins(PLUGINS, frozenset({"Everywhere"}))
    without = point.applicable(compiler.pending(pod("p")))
    having = point.applicable(compiler.pending(using(pod("p"), "claim")))

    assert [name for name, _ in without.plugins] == ["Always"]
    assert without.inapplicable == ["Everywhere"]
    assert [name for name, _ in having.plugins] == ["Everywhere", "Always"]
    assert having.inapplicable == []


def test_plugins_of_a_kind_are_found_by_name() -> None:
    assert of_kind(PLUGINS, Reserve) == {"Everywhere": PLUGINS[0], "Always": PLUGINS[1]}
    assert of_kind(PLUGINS, PreFilter).keys() == {"Everywhere", "Always"}
    assert of_kind([PLUGINS[0]], Score) == {}


def test_a_profile_knows_which_of_its_plugins_skip_pods() -> None:
    plugins = framework_of(cluster_of(node("n")), plugins=[Everywhere, Always], only=[]).plugins

    assert plugins.only_with_volumes == {"Everywhere"}
    assert plugins.skip_resizes == {"Everywhere"}
    assert [each.name for each in plugins.reserve] == ["Everywhere", "Always"]
    assert plugins.score == []


def test_scores_have_the_weights_of_the_configuration() -> None:
    plugins = framework_of(cluster_of(node("n"))).plugins
    weights = {plugin.name: weight for plugin, weight in plugins.score}

    assert weights["TaintToleration"] == 3
    assert weights["ImageLocality"] == 1


def test_all_plugins_that_can_reject_pods_register_events() -> None:
    more = [Everywhere, Reserving]
    plugins = framework_of(cluster_of(node("n")), plugins=more, only=["NodeName"]).plugins
    registrations = plugins.registrations()

    assert registrations.keys() == {"NodeName", "Everywhere", "Reserving"}, "not the binder"
    assert registrations["Everywhere"] is None, "any event may help"
