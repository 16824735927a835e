"""The state of an attempt: data under the plugins' keys, and a twin for a pod alike."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.cluster.pod_info import PodCompiler, PodInfo
from kubesched.framework.cycle_state import CycleState
from tests.support.objects import pod


def test_a_plugin_reads_what_it_wrote() -> None:
    state = CycleState()
    state.write("mine", None)

    assert state.has("mine")
    assert state.read("mine") is None
    assert not state.has("yours")
    assert state.get("yours") is None
    with pytest.raises(KeyError):
        state.read("yours")


def test_a_twin_has_the_same_data_and_changes_by_itself() -> None:
    state, group = CycleState(), CycleState()
    state.write("mine", 1)
    state.skip_filter, state.skip_score = frozenset("f"), frozenset("s")
    state.placement, state.group = np.array([True]), group
    twin = state.twin()
    twin.write("mine", 2)

    assert (twin.skip_filter, twin.skip_score) == (frozenset("f"), frozenset("s"))
    assert twin.placement is state.placement
    assert twin.group is group
    assert state.read("mine") == 1


def test_a_twin_is_another_pod_s_state() -> None:
    """What was decided about one pod is not taken over: PreBind, retries, what it counts for."""
    state = CycleState()
    state.skip_pre_bind.add("p")
    state.counts_on = lambda one, _node_name: one
    twin = state.twin()

    assert twin.skip_pre_bind == set()
    assert twin.counts_on is None
    assert twin.pods_to_activate == {}


def test_a_pod_counts_as_it_is_unless_a_plugin_says_otherwise() -> None:
    compiler, state = PodCompiler(), CycleState()
    small, large = compiler.pending(pod("p", cpu="1")), compiler.pending(pod("p", cpu="2"))
    assert state.on_node(small, "n1") is small

    def counts_on(one: PodInfo, node_name: str) -> PodInfo:
        return large if node_name == "n1" else one

    state.counts_on = counts_on
    assert state.on_node(small, "n1") is large
    assert state.on_node(small, "n2") is small
