"""A replay that follows its own decisions: pods stay where they are put now."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kubesched.recording.reader import Recording
from kubesched.replay.replaying import Replay, ReplayOptions
from kubesched.replay.report import Replayed
from tests.support.objects import node, pod
from tests.support.recorded_engine import Lab, record
from tests.support.recorded_workload import CONFIGURATIONS, Workload, configuration

PACKING = configuration(CONFIGURATIONS[2])


def followed(recording: Recording, config: object = PACKING) -> tuple[Replayed, Replay]:
    replay = Replay(recording, ReplayOptions(config=config, follow="own"))  # type: ignore[arg-type]
    said = replay.run()
    replay.state.cluster.validate()
    return said, replay


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Pods that were spread over ten equal nodes."""

    async def script(lab: Lab) -> None:
        for number in range(10):
            lab.put_node(node(f"n{number}", cpu="4", memory="64Gi"))
        for number in range(60):
            lab.create_pod(pod(f"p{number}", cpu="500m", memory="64Mi"))
            await lab.turns(15)

    return record(tmp_path_factory.mktemp("spread") / "r", script, trouble=0.0)


def test_packed_pods_leave_nodes_empty(spread: Recording) -> None:
    said, replay = followed(spread)
    assert said.placements is not None
    assert said.placements.recorded == said.placements.now == 60
    assert said.placements.moved > 40
    usage = {each.resource: each for each in said.usage}
    assert usage["cpu"].recorded == usage["cpu"].now == 75.0
    assert usage["cpu"].highest_recorded < 100.0
    assert usage["cpu"].highest_now == 100.0
    nodes = set(replay.state.placements().values())
    assert len(nodes) == 8  # 30 cores on nodes of four


@pytest.mark.parametrize("seed", range(3))
def test_the_same_decisions_lead_to_the_same_place(tmp_path: Path, seed: int) -> None:
    recording = record(tmp_path / "r", Workload(steps=100), seed=seed)
    config = configuration({})
    said, _ = followed(recording, config)
    if any(each.config for each in recording.state()[1] if hasattr(each, "config")):
        return  # reconfigured on the way: then it is another configuration
    assert said.different == said.tied == 0
    assert said.placements is not None
    assert said.placements.moved == 0


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happened_the_own_way_can_be_gone(tmp_path: Path, seed: int) -> None:
    recording = record(tmp_path / "r", Workload(steps=100, rotations=0.5), seed=seed, files=99)
    said, _ = followed(recording)
    assert said.decisions > 30
    assert said.same + said.tied + said.different == said.decisions


def test_pods_that_are_deleted_go_wherever_they_are(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        rng = random.Random(1)
        for number in range(6):
            lab.put_node(node(f"n{number}", cpu=rng.choice(("4", "8"))))
        for number in range(30):
            lab.create_pod(pod(f"p{number}", cpu="200m"))
            await lab.turns(15)
        for number in range(0, 30, 2):
            lab.delete_pod(("default", f"p{number}"))

    said, replay = followed(record(tmp_path / "r", script, trouble=0.0))
    assert said.placements is not None
    assert said.placements.now == said.placements.recorded == 15
    assert set(replay.state.placements()) == {f"p{number}" for number in range(1, 30, 2)}


def test_a_pod_that_finds_no_node_now_is_tried_again(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        # Packed, the small ones take the place of a large one, until one of them goes.
        for name in ("a", "b"):
            lab.put_node(node(name, cpu="4"))
        for number in range(2):
            lab.create_pod(pod(f"small{number}", cpu="1"))
            await lab.turns(15)
        for number in range(2):
            lab.create_pod(pod(f"large{number}", cpu="3"))
            await lab.turns(15)
        lab.delete_pod(("default", "small0"))
        lab.create_pod(pod("last", cpu="1m"))
        await lab.turns(15)

    recording = record(tmp_path / "r", script, trouble=0.0)
    assert [each.node != "" for each in recording.decisions()] == [True] * 5
    said, replay = followed(recording)
    assert said.placed_only_then == 1
    assert "large1" in replay.state.placements()
    assert said.placements is not None
    assert said.placements.now == said.placements.recorded == 4
