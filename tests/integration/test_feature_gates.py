"""Feature gates: which kube-scheduler knows, and what it says to each value at each version.

A gate that cannot have a value is refused together with all others that cannot, so one run asks
about all of them. Gates that need others are asked about one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kubesched.config.gate_table import DEPENDENCIES, GATES

from .command_lines import Both, Said, side_by_side

#: Versions that can be emulated, and the oldest peer where that makes a difference.
VERSIONS = {
    "1.37": [],
    "1.37 alone": ["--min-compatibility-version=1.37"],
    "1.36": ["--emulated-version=1.36"],
    "1.35": ["--emulated-version=1.35"],
    "1.34": ["--emulated-version=1.34"],
}
VALUES = ("true", "false")

#: Gates that another one needs, or that need one.
TIED = sorted(DEPENDENCIES.keys() | {other for needed in DEPENDENCIES.values() for other in needed})

#: Gates that earlier releases had.
REMOVED = [
    "AnyVolumeDataSource",
    "GangScheduling",
    "PodLifecycleSleepAction",
    "SchedulerQueueingHints",
    "SidecarContainers",
    "StructuredAuthenticationConfiguration",
    "WorkloadAwarePreemption",
]

#: kube-scheduler takes a tenth of a second to start, so several do at once.
AT_ONCE = 2


@pytest.fixture
def both(
    assets: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Both]:
    """Both commands, which print their version where the gates are accepted."""
    with side_by_side(assets / "kube-scheduler", tmp_path, capsys, monkeypatch) as commands:
        yield commands


def complaints(said: Said) -> list[str]:
    """Give what is wrong, in an order of its own: kube-scheduler's changes from run to run."""
    if said.code == 0:
        return []
    (text,) = re.findall(r"(?:^Error: |err=\")(.*?)\"?$", said.err.strip(), re.MULTILINE)
    several = re.fullmatch(r"\[(.*)\]", text)
    return sorted(
        re.split(r", (?=[A-Z]\w+ is enabled|cannot set)", several[1] if several else text)
    )


def flag(values: dict[str, str]) -> str:
    return "--feature-gates=" + ",".join(f"{name}={value}" for name, value in values.items())


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_gates_are_locked_or_not_there_yet(both: Both, version: str, value: str) -> None:
    flags = [flag(dict.fromkeys(GATES, value)), *VERSIONS[version], "--version"]
    theirs, ours = complaints(both.real(*flags)), complaints(both.ours(*flags))

    assert ours == theirs
    assert len(theirs) > 3


@pytest.mark.parametrize("version", ["1.37", "1.37 alone", "1.36"])
def test_the_same_gates_need_others(both: Both, version: str) -> None:
    asked = [
        [flag({name: value}), *VERSIONS[version], "--version"]
        for name in (*TIED, "AllAlpha", "AllBeta")
        for value in VALUES
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        theirs = list(pool.map(lambda flags: complaints(both.real(*flags)), asked))
    ours = [complaints(both.ours(*flags)) for flags in asked]

    named = [" ".join(flags) for flags in asked]
    assert dict(zip(named, ours, strict=True)) == dict(zip(named, theirs, strict=True))
    assert any("depends on features that are disabled" in text for each in theirs for text in each)


@pytest.mark.parametrize("name", REMOVED)
def test_removed_gates_are_unknown(both: Both, name: str) -> None:
    flags = [flag({name: "true"}), "--emulated-version=1.34", "--version"]

    assert complaints(both.ours(*flags)) == complaints(both.real(*flags))
    assert complaints(both.ours(*flags)) == [f"unrecognized feature gate: {name}"]
