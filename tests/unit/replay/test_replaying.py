"""A replayed recording: the same decisions to the last letter, wherever it begins."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.errors import ConfigError
from kubesched.recording.entries import (
    Answered,
    Assumed,
    Configured,
    Decided,
    Nominated,
    Put,
    Removed,
    Returned,
    VolumeAssumed,
)
from kubesched.recording.reader import Recording
from kubesched.recording.redaction import NameRedactor
from kubesched.replay.replaying import Replay, ReplayOptions
from kubesched.replay.report import Replayed
from tests.support.objects import node, pod
from tests.support.recorded_engine import Lab, record
from tests.support.recorded_workload import CONFIGURATIONS, Workload, configuration

#: Empties all but the most allocated nodes.
PACKING = configuration(CONFIGURATIONS[2])


def replayed(recording: Recording, **options: Any) -> Replayed:
    return Replay(recording, ReplayOptions(**options)).run()


def assert_same(said: Replayed) -> None:
    assert said.differences == ()
    assert (said.same, said.different, said.tied) == (said.decisions, 0, 0)


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(seed=st.integers(0, 1 << 32))
def test_whatever_happens_every_decision_is_made_again(tmp_path: Path, seed: int) -> None:
    path = tmp_path / f"{seed}"
    recording = record(path, Workload(steps=120, rotations=1.5), seed=seed, files=100)
    said = replayed(recording)
    assert said.decisions > 20
    assert said.entries == recording.entries
    assert_same(said)
    # Each file begins with a whole state: a replay may begin with any of them.
    for first in range(1, len(recording.parts)):
        assert_same(replayed(Recording(recording.parts[first:], [])))


@settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(seed=st.integers(0, 1 << 32))
def test_redacted_every_decision_is_the_same_too(tmp_path: Path, seed: int) -> None:
    script = Workload(steps=120, rotations=0.5)
    said = replayed(
        record(tmp_path / f"{seed}", script, seed=seed, files=100, redactor=NameRedactor())
    )
    assert said.redacted
    assert_same(said)


def test_the_random_workload_is_worth_its_name(tmp_path: Path) -> None:
    seen: Counter[type] = Counter()
    victims = failed = 0
    for seed in range(2):
        recording = record(tmp_path / f"{seed}", Workload(steps=250), seed=seed)
        entries = list(recording.state()[1])
        seen.update(map(type, entries))
        victims += sum(len(each.victims) for each in recording.decisions())
        failed += sum(not each.node for each in recording.decisions())
    wanted = (Decided, Assumed, Returned, Nominated, Put, Removed, VolumeAssumed, Configured)
    assert all(seen[each] for each in wanted), seen
    assert victims > 5
    assert failed > 50


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Some pods on some nodes of several sizes, all of which fit."""
    path = tmp_path_factory.mktemp("recording") / "r"

    async def script(lab: Lab) -> None:
        rng = random.Random(4)
        for number in range(10):
            lab.put_node(node(f"n{number}", cpu=rng.choice(("4", "8")), memory="16Gi"))
        for number in range(60):
            lab.create_pod(pod(f"p{number}", cpu=rng.choice(("100m", "300m")), memory="128Mi"))
            await lab.turns(15)

    return record(path, script, trouble=0.0)


def test_a_decision_that_was_tampered_with_is_found(recording: Recording, tmp_path: Path) -> None:
    entries = [each for each in recording.state()[1] if isinstance(each, Decided)]
    victim = entries[30]
    text = gzip.decompress(recording.parts[0].path.read_bytes()).decode()
    lines = text.splitlines(keepends=True)
    place = next(
        n for n, line in enumerate(lines) if '"is":"decided"' in line and victim.name in line
    )
    lines[place] = lines[place].replace(f'"node":"{victim.node}"', '"node":"elsewhere"')
    # Seals would tell, too: here it is the replay that has to.
    unsealed = "".join(line for line in lines if '"is":"seal"' not in line)
    cut = gzip.compress(unsealed.encode())[:-8]
    changed = tmp_path / "changed"
    changed.write_bytes(cut)

    said = replayed(Recording.open(changed))
    assert (said.decisions, said.different) == (60, 1)
    (difference,) = said.differences
    assert difference.pod == f"default/{victim.name}"
    assert difference.fields == ("node",)
    assert (difference.recorded.node, difference.now.node) == ("elsewhere", victim.node)


def test_until_an_entry(recording: Recording) -> None:
    said = replayed(recording, until=recording.entries // 2)
    assert said.entries == recording.entries // 2
    assert 0 < said.decisions < 60
    assert_same(said)
    assert replayed(recording, until=0).decisions == 0


def test_the_report_counts_everything(recording: Recording) -> None:
    said = replayed(recording)
    assert said.entries == recording.entries
    assert said.decisions == 60
    assert not said.cut_off
    assert not said.other_configuration
    assert said.decisions_per_second > 0
    usage = {each.resource: each for each in said.usage}
    assert usage["cpu"].recorded == usage["cpu"].now > 0
    assert usage["pods"].highest_recorded > 0


def test_another_configuration_decides_otherwise_about_pods_where_they_were(
    recording: Recording,
) -> None:
    said = replayed(recording, config=PACKING)
    assert said.other_configuration
    assert said.decisions == 60
    assert said.same + said.tied + said.different == 60
    assert said.different > 30
    assert said.placed_elsewhere == said.different
    assert said.placements is None


def test_an_equal_configuration_differs_in_nothing(recording: Recording) -> None:
    assert_same(replayed(recording, config=configuration({})))


def test_another_node_that_is_as_good_is_no_difference(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        for number in range(8):
            lab.put_node(node(f"n{number}"))
        for number in range(30):
            lab.create_pod(pod(f"p{number}"))
            await lab.turns(15)
            lab.delete_pod(("default", f"p{number}"))
            await lab.turns(5)

    recording = record(tmp_path / "r", script, trouble=0.0)
    # Without any other opinion all nodes are the same, so chance alone decides.
    alone = {"plugins": {"score": {"disabled": [{"name": "NodeResourcesFit"}]}}}
    other = configuration({"profiles": [{"schedulerName": "default-scheduler", **alone}]})
    replay = Replay(recording, ReplayOptions(config=other))
    _shift_the_die(replay)
    said = replay.run()
    assert said.tied > 10
    assert said.different == 0


def _shift_the_die(replay: Replay) -> None:
    restore = replay._decider.restore

    def restore_and_draw(known: Any) -> None:
        restore(known)
        replay._decider.engine.cycle.rng.random()

    replay._decider.restore = restore_and_draw  # type: ignore[method-assign]


EXTENDED = configuration(
    {
        "extenders": [
            {
                "urlPrefix": "https://extender.invalid",
                "filterVerb": "f",
                "prioritizeVerb": "p",
                "preemptVerb": "e",
                "weight": 1,
            }
        ]
    }
)


@pytest.mark.parametrize("redactor", [None, NameRedactor()])
@pytest.mark.parametrize("seed", [5, 11])
def test_what_extenders_answered_is_part_of_the_recording(
    tmp_path: Path, seed: int, redactor: NameRedactor | None
) -> None:
    recording = record(
        tmp_path / "r",
        Workload(steps=150, rotations=1),
        seed=seed,
        config=EXTENDED,
        files=50,
        redactor=redactor,
    )
    answers = Counter(
        name
        for each in recording.state()[1]
        if isinstance(each, Answered)
        for name in ("feasible", "scores", "victims")
        if getattr(each, name) is not None
    )
    assert answers["feasible"] > 30
    assert answers["scores"] > 30
    assert answers["victims"] > 0
    assert_same(replayed(recording))


def test_extenders_cannot_be_asked_anew(tmp_path: Path) -> None:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n"))
        lab.create_pod(pod("p"))
        await lab.turns(30)

    recording = record(tmp_path / "r", script, config=EXTENDED, trouble=0.0)
    with pytest.raises(ConfigError, match="a replay cannot ask extenders"):
        replayed(recording, config=EXTENDED)
    assert replayed(recording, config=configuration({})).decisions >= 1
