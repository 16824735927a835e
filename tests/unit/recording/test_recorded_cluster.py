"""A cluster that tells of itself: its checkpoint leads to the same state, in the same order."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.pod_info import RequestRules
from kubesched.kinds import stores
from kubesched.replay.state import ReplayState
from tests.support.recorded_engine import GATES, Lab
from tests.support.recorded_workload import Workload


def described(cluster: Cluster) -> dict[str, object]:
    """Return all of a state that decisions can depend on, orders included."""
    table, storage = cluster.table, cluster.storage
    rows = table.order.rows().tolist()
    return {
        "nodes": [table.node_at(row) for row in rows],
        "pods": [list(table.pods[row]) for row in rows],
        "requested": [table.requested[:, row].tolist() for row in rows],
        "assumed": cluster.assumed_count,
        "count": cluster.pod_count,
        "nominated": {
            name: [each.uid for each in cluster.nominator.pods_on(name)]
            for name in cluster.nominator.node_names()
        },
        "observed volumes": [
            storage.volumes.observed(each.metadata.name) for each in storage.volumes
        ],
        **{kind.name: list(store) for kind, store in stores(cluster)},
    }


@pytest.mark.parametrize("seed", range(4))
def test_a_checkpoint_leads_to_the_same_state(tmp_path: Path, seed: int) -> None:
    compared = 0

    async def script(lab: Lab) -> None:
        nonlocal compared
        workload = Workload(steps=40)
        for _ in range(3):
            await workload(lab)
            again = ReplayState(RequestRules.of(GATES))
            for entry in lab.cluster.checkpoint():
                again.apply(entry)
            again.cluster.validate()
            assert described(again.cluster) == described(lab.cluster)
            compared += lab.cluster.pod_count

    lab = Lab(tmp_path / "r", random.Random(seed))
    asyncio.run(lab.run(script))
    assert compared > 30


def test_what_changes_nothing_is_not_told(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        before = lab.journal._count
        lab.cluster.nominator.clear("nobody")
        lab.cluster.forget("nobody")
        lab.cluster.remove_pod("nobody")
        lab.cluster.remove_node("nowhere")
        assert lab.journal._count == before

    asyncio.run(Lab(tmp_path / "r", random.Random(0)).run(script))
