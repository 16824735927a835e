"""Claims to devices and groups of pods: recorded, and decided about again in the same way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.config.features import FeatureGates
from kubesched.recording.entries import ClaimDecided, ClaimDropped, GroupDecided
from kubesched.recording.reader import Recording
from kubesched.recording.redaction import NameRedactor
from kubesched.replay.moments import Moments
from kubesched.replay.replaying import Replay, ReplayOptions
from kubesched.replay.report import Replayed
from tests.support.device_objects import (
    claim,
    claiming,
    device,
    device_class,
    request,
    slice_of,
)
from tests.support.group_objects import COMPOSITE, GROUPS, TOPOLOGY, composite, member, pod_group
from tests.support.objects import node, pod
from tests.support.recorded_engine import Lab, record
from tests.support.recorded_workload import CONFIGURATIONS, configuration


def entries(recording: Recording, kind: type[Any]) -> list[Any]:
    return [each for each in recording.state()[1] if isinstance(each, kind)]


def assert_same(recording: Recording) -> Replayed:
    said = Replay(recording, ReplayOptions()).run()
    assert said.differences == ()
    assert (said.same, said.different) == (said.decisions, 0)
    for first in range(1, len(recording.parts)):
        rest = Replay(Recording(recording.parts[first:], []), ReplayOptions()).run()
        assert rest.differences == ()
    return said


# --- devices --------------------------------------------------------------------------------------


async def _claims(lab: Lab) -> None:
    lab.put(device_class())
    for name in ("n1", "n2"):
        lab.put_node(node(name))
        lab.put(slice_of(f"s-{name}", *(device(f"g{n}") for n in range(3)), node=name))
    for number in range(8):
        lab.put(claim(f"c{number}", request(count=1 + number % 2)))
        lab.create_pod(claiming(pod(f"p{number}"), f"c{number}"))
        if number == 4:
            lab.next_file()
        await lab.turns(3)
    # Two pods of one claim.
    lab.put(claim("shared", request(every=False)))
    lab.create_pod(claiming(pod("first"), "shared"))
    lab.create_pod(claiming(pod("second"), "shared"))
    await lab.turns(40)
    lab.create_pod(pod("plain"))


@pytest.mark.parametrize("trouble", [0.0, 0.4])
def test_claims_are_served_again_as_they_were(tmp_path: Path, trouble: float) -> None:
    recording = record(tmp_path / "r", _claims, seed=3, trouble=trouble, files=10)

    assert entries(recording, ClaimDecided)
    assert entries(recording, ClaimDropped)
    assert assert_same(recording).decisions >= 10


def test_claims_are_redacted_and_served_again(tmp_path: Path) -> None:
    recording = record(tmp_path / "r", _claims, seed=3, redactor=NameRedactor(), files=10)

    assert assert_same(recording).redacted


# --- groups ---------------------------------------------------------------------------------------


async def _gangs(lab: Lab) -> None:
    """A gang that fits, one that preempts, one that waits for room, and pods in between."""
    for number in range(4):
        lab.put_node(node(f"n{number}", cpu="4", labels={"rack": f"r{number % 2}"}))
    lab.put(pod_group("low", gang=4))
    for number in range(4):
        lab.create_pod(member(f"low-{number}", group="low", cpu="2"))
        await lab.turns(2)
    await lab.turns(60)
    for number in range(2):
        lab.create_pod(pod(f"single-{number}", cpu="2"))
    await lab.turns(20)
    lab.next_file()
    lab.put(pod_group("high", gang=4, priority=100, topology="rack"))
    for number in range(4):
        lab.create_pod(member(f"high-{number}", group="high", cpu="2", priority=100))
    await lab.settle()
    lab.put(pod_group("large", gang=3))
    for number in range(3):
        lab.create_pod(member(f"large-{number}", group="large", cpu="4"))
    for number in range(5):
        lab.create_pod(pod(f"after-{number}", cpu="1"))
        await lab.turns(5)
    await lab.settle()


def _recorded(tmp_path: Path, gates: FeatureGates, **options: Any) -> Recording:
    return record(tmp_path / "r", _gangs, seed=6, gates=gates, files=10, **options)


@pytest.mark.parametrize("gates", [GROUPS, TOPOLOGY], ids=["anywhere", "in racks"])
@pytest.mark.parametrize("trouble", [0.0, 0.3])
def test_gangs_are_decided_about_again_preemption_included(
    tmp_path: Path, gates: FeatureGates, trouble: float
) -> None:
    recording = _recorded(tmp_path, gates, trouble=trouble)

    found = entries(recording, GroupDecided)
    assert {each.name for each in found} == {"low", "high", "large"}
    assert any(each.victims for each in found)
    said = assert_same(recording)
    assert said.recorded_preemptions == said.preemptions
    assert said.preemptions.victims > 0


def test_gangs_are_redacted_and_decided_about_again(tmp_path: Path) -> None:
    # Domains are tried in the order of their names, which is not that of pseudonyms.
    recording = _recorded(tmp_path, GROUPS, redactor=NameRedactor())

    assert assert_same(recording).redacted
    assert not {"low", "high"} & {each.name for each in entries(recording, GroupDecided)}


def test_trees_of_groups_are_decided_about_again(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1", cpu="4"))
        lab.put(composite(gang=2))
        for name in ("a", "b"):
            lab.put(pod_group(name, parent="top", gang=1))
            lab.create_pod(member(f"{name}-0", group=name, cpu="1"))
        await lab.settle()

    recording = record(tmp_path / "r", script, seed=1, gates=COMPOSITE)

    assert {each.group_kind for each in entries(recording, GroupDecided)} == {"compositepodgroup"}
    assert assert_same(recording).decisions == 2


@pytest.mark.parametrize("follow", ["recorded", "own"])
def test_another_configuration_is_compared_member_by_member(tmp_path: Path, follow: Any) -> None:
    config = configuration(CONFIGURATIONS[2])
    config = replace(config, profiles=config.profiles)

    said = Replay(
        _recorded(tmp_path, GROUPS, trouble=0.0), ReplayOptions(config=config, follow=follow)
    ).run()

    assert said.other_configuration
    assert said.decisions >= 11


def test_a_moment_knows_what_was_said_of_members(tmp_path: Path) -> None:
    recording = _recorded(tmp_path, GROUPS, trouble=0.0)
    moments = Moments(recording)

    pending = {each.name: each.message for each in moments.pending_at(recording.entries)}

    assert "large-0" in pending
    assert all(pending[f"large-{number}"] for number in range(3))
    assert len(moments.snapshot_at(recording.entries).objects["PodGroup"]) == 3
