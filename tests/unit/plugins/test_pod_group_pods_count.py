"""Placements are scored all at once as each by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import Assignment, Assignments, Placement
from kubesched.framework.plugin import PlacementScore
from tests.support.group_objects import TOPOLOGY, ZONE, GroupLab, key, member, pod_group
from tests.support.objects import node

NODES = 6


@pytest.mark.parametrize("plugin", ["PodGroupPodsCount", "NodeResourcesFit"])
@given(
    zones=st.lists(st.integers(0, 2), min_size=NODES, max_size=NODES),
    placed=st.lists(st.integers(0, 3), min_size=3, max_size=3),
)
def test_all_at_once_say_what_each_says(plugin: str, zones: list[int], placed: list[int]) -> None:
    cpus = ["1", "4", "8"]
    lab = GroupLab(
        *(node(f"n{n}", cpu=cpus[n % 3], zone=f"z{zone}") for n, zone in enumerate(zones)),
        member("old", cpu="500m", node="n1"),
        pod_group(topology=ZONE),
        gates=TOPOLOGY,
    )
    pods = lab.pending(*(member(f"p{n}", cpu="300m", memory="1Gi") for n in range(3)))
    group, table = lab.info(key(), pods), lab.cluster.table
    assigned = []
    for zone, count in enumerate(placed):
        rows = table.valid[: table.size].copy()
        for row in range(table.size):
            rows[row] = zones[int(table.name_at(row)[1:])] == zone
        some = [Assignment(pod, "n0", CycleState()) for pod in pods[:count]]
        assigned.append(Assignments(Placement(f"z{zone}", rows), some, CycleState()))
    scorer = lab.framework.plugins.instances[plugin]
    assert isinstance(scorer, PlacementScore)
    together, status = scorer.score_placements(group, assigned)
    assert status.ok
    assert list(together) == [scorer.score_placement(group, each)[0] for each in assigned]
