"""Scores by resources are made of what is kept of all rows, and never of what is no longer so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.cluster.node_rows import NodeRows, SupposedRows
from tests.support.objects import node, on_node, pod
from tests.support.scheduling import Lab

PLUGINS = ("NodeResourcesFit", "NodeResourcesBalancedAllocation")
NODES = ("a", "b", "c")

#: what a pod takes: usual amounts, and one that floats cannot hold
takes = st.tuples(
    st.sampled_from(["0", "1", "3"]), st.sampled_from(["0", "1Gi", "5Gi", str(1 << 60)])
)
#: a pod, and where it goes; None: away
moves = st.tuples(st.integers(0, 3), st.sampled_from([*NODES, None]), takes)


def scores_of(lab: Lab, name: str, cpu: str, memory: str) -> list[int]:
    signature = lab.pending(pod("asking", cpu=cpu, memory=memory)).signature
    scores: list[int] = (
        lab.plugin(name).score(signature, NodeRows.all_of(lab.cluster.table)).tolist()
    )
    return scores


@given(steps=st.lists(st.tuples(moves, takes), min_size=1, max_size=12))
def test_scores_follow_whatever_happens(
    steps: list[tuple[tuple[int, str | None, tuple[str, str]], tuple[str, str]]],
) -> None:
    lab = Lab(*map(node, NODES))
    there: dict[str, Pod] = {}
    for (number, target, (cpu, memory)), wanted in steps:
        uid = f"p{number}"
        lab.cluster.remove_pod(uid)
        there.pop(uid, None)
        if target is not None:
            there[uid] = on_node(pod(uid, cpu=cpu, memory=memory), target)
            lab.cluster.put_pod(there[uid])
        anew = Lab(*map(node, NODES), *there.values())
        for name in PLUGINS:
            assert scores_of(lab, name, *wanted) == scores_of(anew, name, *wanted), name
    lab.cluster.validate()


@pytest.mark.parametrize("name", PLUGINS)
def test_rows_with_other_pods_are_scored_with_those(name: str) -> None:
    lab = Lab(node("a"), pod("p", node="a", cpu="3"))
    plugin, table = lab.plugin(name), lab.cluster.table
    asking = lab.pending(pod("asking", cpu="1", memory="1Gi"))
    with_it = plugin.score(asking.signature, NodeRows.all_of(table)).tolist()

    with lab.cluster.transaction() as tx:
        tx.remove("p")
        assert plugin.score(asking.signature, NodeRows.all_of(table)).tolist() != with_it
    assert plugin.score(asking.signature, NodeRows.all_of(table)).tolist() == with_it


def test_supposed_rows_are_scored_as_they_are_supposed_to_be() -> None:
    lab = Lab(node("a"), pod("p", node="a", cpu="3"))
    plugin, table = lab.plugin("NodeResourcesBalancedAllocation"), lab.cluster.table
    asking = lab.pending(pod("asking", cpu="1", memory="1Gi"))
    nothing = SupposedRows(
        table,
        np.array([0], dtype=np.intp),
        requested=np.zeros((len(table.resources), 1), dtype=np.int64),
        pod_count=np.zeros(1, dtype=np.int64),
    )
    empty = Lab(node("a")).raw_scores("NodeResourcesBalancedAllocation", asking.pod)
    assert plugin.score(asking.signature, nothing).tolist() == [empty["a"]]
