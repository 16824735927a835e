"""All hints, over random clusters: whatever gives a pod a node is not slept through.

A hint may say yes in vain. If it says no although the plugin lets the pod on a node now where it
did not before, the pod is forgotten until something else happens.
"""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.runtime import Framework
from kubesched.queue import differences
from kubesched.queue.hints import Change
from tests.support.evaluating import feasible_rows
from tests.support.random_cluster import ASKING, FIRST_NODES, NODES, PLACED, SOCIABLE
from tests.support.scheduling import framework_of

from .hinting import added, deleted

PLUGINS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "NodeDeclaredFeatures",
    "PodTopologySpread",
    "InterPodAffinity",
)


def known_to_be_missed(plugin: str, pod: PodInfo, subject: Node | Pod) -> bool:
    """Tell what kube-scheduler's hints miss, and ours therefore, too."""
    if plugin != "InterPodAffinity":
        return False
    if isinstance(subject, Node):
        # A new node is away from all pods that keep others away.
        return not pod.terms.required_anti
    # The last pod to be near to is gone: the first of a group may go anywhere.
    return bool(pod.terms.required)


class Watch:
    """A cluster with one filter, and pods that wait."""

    def __init__(self, nodes: list[Node], placed: list[Pod], plugin: str) -> None:
        self.cluster = Cluster()
        for each in nodes:
            self.cluster.put_node(each)
        for pod in placed:
            self.cluster.put_pod(pod)
        self.node_count = len(nodes)
        self.plugin = plugin
        self.framework: Framework = framework_of(self.cluster, only=[plugin])
        self.registered = self.framework.plugins.registrations()[plugin]
        self.waiting = [self.cluster.compiler.pending(each) for each in (*ASKING, *SOCIABLE)]
        self.before = [self._feasible(each) for each in self.waiting]

    def slept_through(self, subject: Node | Pod, changes: list[Change[Any]]) -> list[str]:
        """Name the pods that had been turned away, gained a node, and are not woken."""
        return [
            pod.full_name
            for pod, before in zip(self.waiting, self.before, strict=True)
            if len(before) < self.node_count
            and self._feasible(pod) - before
            and not known_to_be_missed(self.plugin, pod, subject)
            and not any(self._wakes(pod, change) for change in changes)
        ]

    def _feasible(self, pod: PodInfo) -> set[int]:
        found = feasible_rows(self.framework.evaluator, CycleState(), pod)
        return set() if isinstance(found, Diagnosis) else set(found.tolist())

    def _wakes(self, pod: PodInfo, change: Change[Any]) -> bool:
        assert self.registered is not None
        for each in self.registered:
            if not change.event.matches(each.event):
                continue
            if each.signature_hint is not None:
                return each.signature_hint(pod.signature, change)
            helped = each.hint is None or each.hint(pod, change)
            if helped and each.screen is not None and pod.uid not in each.apart(change):
                assert each.screen(pod, change), f"the screen of {self.plugin} for {pod}"
            return helped
        return False


#: Whatever fails is small enough to read, and takes minutes to make smaller.
QUICK = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])
SOME_PLACED = st.lists(PLACED, max_size=8, unique_by=lambda each: each.metadata.uid)


@given(FIRST_NODES, SOME_PLACED, st.sampled_from(PLUGINS), NODES)
@settings(QUICK, max_examples=60)
def test_a_node_that_comes_or_changes(
    nodes: list[Node], placed: list[Pod], plugin: str, new: Node
) -> None:
    watch = Watch(nodes, placed, plugin)
    old = next((each for each in nodes if each.metadata.name == new.metadata.name), None)
    changes: list[Change[Any]] = [added(new)]
    if old is not None:
        changes = [Change(event, old=old, new=new) for event in differences.node_events(old, new)]
    watch.cluster.put_node(new)
    assert watch.slept_through(new, changes) == []


# InterPodAffinity does not hear of nodes that go: their pods go, too, and of those it does.
@given(FIRST_NODES, SOME_PLACED, st.sampled_from(PLUGINS[:-1]), st.data())
@settings(QUICK, max_examples=40)
def test_a_node_that_goes(
    nodes: list[Node], placed: list[Pod], plugin: str, data: st.DataObject
) -> None:
    watch = Watch(nodes, placed, plugin)
    gone = data.draw(st.sampled_from(nodes))
    watch.cluster.remove_node(gone.metadata.name)
    assert watch.slept_through(gone, [deleted(gone)]) == []


@given(FIRST_NODES, SOME_PLACED, st.sampled_from(PLUGINS), PLACED)
@settings(QUICK, max_examples=60)
def test_a_pod_that_comes_or_goes(
    nodes: list[Node], placed: list[Pod], plugin: str, other: Pod
) -> None:
    others = [each for each in placed if each.metadata.uid != other.metadata.uid]
    coming = Watch(nodes, others, plugin)
    coming.cluster.put_pod(other)
    assert coming.slept_through(other, [added(other)]) == []
    going = Watch(nodes, [*others, other], plugin)
    going.cluster.remove_pod(other.metadata.uid)
    assert going.slept_through(other, [deleted(other)]) == []
