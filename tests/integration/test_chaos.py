"""Short runs through faults; `make chaos` makes long ones. The judge must find bugs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.run import SETTLED_SECONDS, run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("seed", "replicas"), [(1, 1), (2, 2)])
def test_faults_lose_no_pod_overcommit_no_node_and_allocate_no_device_twice(
    assets: Path, seed: int, replicas: int
) -> None:
    outcome = run(assets, seed=seed, seconds=30, replicas=replicas)
    assert not outcome.findings
    assert outcome.settled_s is not None, f"not all placed within {SETTLED_SECONDS:g} s"
    assert outcome.tracebacks == 0
    assert outcome.bound > 20, "there was something to do"
    assert outcome.faults.total() > 5, "there were faults"


@pytest.mark.parametrize(
    ("bug", "rule"),
    [("loses pods", "waits although it fits"), ("forgets devices", "allocated twice")],
)
def test_the_judge_finds_a_bug(
    assets: Path, bug: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What was lost stays lost, however long one waits.
    monkeypatch.setattr("tests.chaos.run.SETTLED_SECONDS", 5.0)
    outcome = run(assets, seed=3, seconds=30, bug=bug)
    assert rule in {each.rule for each in outcome.findings}
