"""Details: what plugins written for one node give, and how lists of names are cut."""

from __future__ import annotations

import numpy as np

from kubesched.api import names
from kubesched.cluster.node_rows import NodeRows
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail, listed
from kubesched.framework.node_by_node import (
    CachedNodeFilter,
    NodeView,
    NodeWithPods,
    PodView,
    SignatureView,
)
from tests.support.objects import node, pod
from tests.support.worlds import world_of


class Warm(CachedNodeFilter):
    name = "Warm"

    def filter_node(self, pod: SignatureView, node: NodeView) -> str | None:
        return None if node.labels.get("heat") == "none" else "too warm"

    def node_detail(self, pod: PodView, node: NodeWithPods) -> Detail | str | None:
        heat = node.labels.get("heat")
        if heat is None:
            return "nothing measures its heat" if pod.name == "p1" else None
        return Detail(f"{heat} degrees", {"degrees": int(heat)})


def test_nodes_with_the_same_detail_are_told_together() -> None:
    world = world_of(
        node("a", labels={"heat": "40"}),
        node("b", labels={"heat": "50"}),
        node("c", labels={"heat": "40"}),
        node("d"),
    )
    info = world.compile(pod("p1"))
    rows = [world.table.row_of(each) for each in "abcd"]

    found = Warm().details(CycleState(), info, NodeRows.all_of(world.table))

    assert list(found) == [
        Detail("40 degrees", {"degrees": 40}, rows=(rows[0], rows[2])),  # type: ignore[arg-type]
        Detail("50 degrees", {"degrees": 50}, rows=(rows[1],)),  # type: ignore[arg-type]
        Detail("nothing measures its heat", rows=(rows[3],)),  # type: ignore[arg-type]
    ]


def test_a_plugin_without_details_has_none() -> None:
    class Plain(CachedNodeFilter):
        name = "Plain"

        def filter_node(self, pod: SignatureView, node: NodeView) -> str | None:
            return "never"

    world = world_of(node("a"))
    rows = NodeRows(world.table, np.zeros(1, dtype=np.intp))

    assert list(Plain().details(CycleState(), world.compile(pod("p")), rows)) == []


def test_long_lists_of_names_are_cut() -> None:
    assert listed(["a", "b", "c"]) == "a, b, c"
    assert listed(names.CPU for _ in range(5)) == "cpu, cpu, cpu and 2 more"
