"""One row in plain numbers says what an array says, or leaves it to the array."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from kubesched.cluster.node_rows import NodeRows
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

amounts = st.one_of(
    st.integers(0, 64), st.integers(0, 1 << 40), st.sampled_from([0, 1, 1 << 52, 1 << 53, 1 << 60])
)


@given(
    cpu=st.one_of(st.integers(0, 64), st.just(1 << 40)),
    memory=amounts,
    taken=st.lists(st.tuples(st.integers(0, 16), amounts), max_size=3),
    wanted=st.tuples(st.integers(0, 16), amounts),
    pods=st.integers(0, 4),
)
@example(cpu=0, memory=0, taken=[], wanted=(0, 0), pods=1)
@example(cpu=4, memory=1 << 53, taken=[(1, 1 << 52)], wanted=(1, 1), pods=4)
def test_the_two_forms_agree(
    cpu: int,
    memory: int,
    taken: list[tuple[int, int]],
    wanted: tuple[int, int],
    pods: int,
) -> None:
    there = [
        pod(f"p{number}", node="n", cpu=str(each[0]), memory=str(each[1]))
        for number, each in enumerate(taken)
    ]
    lab = Lab(node("n", cpu=str(cpu), memory=str(memory), pods=pods), *there)
    signature = lab.pending(pod("asking", cpu=str(wanted[0]), memory=str(wanted[1]))).signature
    table = lab.cluster.table
    nodes = NodeRows(table, np.array([0], dtype=np.intp))
    for name in ("NodeResourcesFit", "NodeResourcesBalancedAllocation"):
        plugin = lab.plugin(name)
        scorer = plugin.row_scorer(signature, table)
        assert scorer is not None
        one = scorer(0)
        if one is not None:
            assert one == plugin.score(signature, nodes)[0], name
    fit = lab.plugin("NodeResourcesFit")
    assert fit.row_filter(signature, table)(0) == fit.filter(signature, nodes).status_of(0)


def test_usual_amounts_are_not_left_to_the_array() -> None:
    lab = Lab(node("n"), pod("p", node="n", cpu="1", memory="1Gi"))
    signature = lab.pending(pod("asking", cpu="1", memory="1Gi")).signature
    for name in ("NodeResourcesFit", "NodeResourcesBalancedAllocation"):
        assert lab.plugin(name).row_scorer(signature, lab.cluster.table)(0) is not None
