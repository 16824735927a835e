"""Attempts with cluster-wide plugins that do what a test tells them."""

from __future__ import annotations

import numpy as np

from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import Filter, Plugin, PreFilter, PreFilterResult
from kubesched.framework.status import Status, unschedulable
from kubesched.framework.verdict import ALL_PASS, Verdict, reject
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

NODES = (node("a"), node("b"), node("c"))


def pre_filter(name: str, result: PreFilterResult | Status) -> type[PreFilter]:
    """A plugin whose PreFilter says this, and whose Filter turns everything away."""
    answer = PreFilterResult(result) if isinstance(result, Status) else result
    plugin_name = name

    class Said(PreFilter, Filter):
        name = plugin_name

        def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:
            calls = state.read("calls")
            assert isinstance(calls, list)
            calls.append(plugin_name)
            return answer

        def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:
            if answer.status.ok:
                return ALL_PASS
            return reject(np.ones(len(nodes), dtype=np.bool_), unschedulable("filtered"))

    return Said


def restricts(name: str, *node_names: str) -> type[PreFilter]:
    return pre_filter(name, PreFilterResult(node_names=frozenset(node_names)))


class Attempt:
    """One attempt with out-of-tree plugins, and who was asked in PreFilter."""

    def __init__(self, *plugins: type[Plugin], only: list[str] | None = None) -> None:
        self.lab = Lab(*NODES, plugins=plugins, only=only or [])
        self.calls: list[str] = []
        self.state = CycleState()
        self.state.write("calls", self.calls)

    def find(self) -> list[str] | Diagnosis:
        return self.lab.find(pod("p"), self.state)

    def diagnosis(self) -> Diagnosis:
        found = self.find()
        assert isinstance(found, Diagnosis)
        return found
