"""Schedulers: how they are named, configured and started."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.bench import assets, schedulers
from kubesched.bench.schedulers import Settings
from kubesched.errors import ConfigError, UsageError


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    """A folder with something in kube-scheduler's place."""
    binary = tmp_path / "kube-scheduler"
    binary.write_text("#!/bin/sh\necho '  --secure-port int   The port'\necho '  --bind-address'\n")
    binary.chmod(0o755)
    return tmp_path


def test_all_four_are_known_by_name(binaries: Path) -> None:
    found = schedulers.parse("ours,kube-scheduler, null,null-events", binaries)

    assert [each.name for each in found] == list(schedulers.DEFAULT)
    assert [each.is_null for each in found] == [False, False, True, True]
    assert found[1].command == (str(binaries / "kube-scheduler"),)
    assert "--events" not in found[2].command
    assert "--events" in found[3].command


def test_each_says_how_many_nodes_it_scores(binaries: Path) -> None:
    ours, theirs = schedulers.parse("ours,kube-scheduler", binaries)

    assert "all nodes scored" in ours.description
    assert "percentageOfNodesToScore 0, adaptive" in theirs.description
    for each in schedulers.parse("ours,kube-scheduler", binaries, percentage=30):
        assert "30 % of the nodes scored" in each.description


def test_any_binary_can_take_part_under_a_name(binaries: Path) -> None:
    plain, named = schedulers.parse(
        f"{binaries}/kube-scheduler,old={binaries}/kube-scheduler", binaries
    )

    assert (plain.name, named.name) == ("kube-scheduler", "old")
    assert plain.command == named.command


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "name at least one"),
        ("theirs", "'theirs' is none of ours, kube-scheduler"),
        ("ours,ours", "ours is there twice"),
        ("x=/no/such/file", "there is no file /no/such/file"),
    ],
)
def test_what_cannot_be_started_is_refused(binaries: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        schedulers.parse(text, binaries)


def test_a_missing_binary_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no kube-scheduler in .*: run `make envtest`"):
        schedulers.parse("kube-scheduler", tmp_path)


def test_everyone_gets_the_same_limits() -> None:
    config = schedulers.configuration(Settings(qps=5000, burst=10_000), Path("/k"))

    assert config["clientConnection"] == {"kubeconfig": "/k", "qps": 5000, "burst": 10_000}
    assert config["leaderElection"] == {"leaderElect": False}
    assert "percentageOfNodesToScore" not in config


def test_a_configuration_to_begin_with_is_kept_but_for_the_limits(tmp_path: Path) -> None:
    base = tmp_path / "base.yaml"
    base.write_text("profiles: [{schedulerName: default-scheduler}]\nclientConnection: {qps: 1}\n")

    config = schedulers.configuration(
        Settings(qps=7, burst=8, base_config=base, percentage_of_nodes_to_score=100), Path("/k")
    )

    assert config["profiles"] == [{"schedulerName": "default-scheduler"}]
    assert config["clientConnection"]["qps"] == 7
    assert config["percentageOfNodesToScore"] == 100


def test_a_configuration_that_is_none_is_refused(tmp_path: Path) -> None:
    base = tmp_path / "base.yaml"
    base.write_text("words")

    with pytest.raises(ConfigError, match="not a KubeSchedulerConfiguration"):
        schedulers.configuration(Settings(base_config=base), Path("/k"))


@pytest.mark.parametrize(
    ("gates", "arguments"),
    [
        ({}, []),
        ({"A": True, "B": False}, ["--feature-gates=A=true,B=false"]),
    ],
)
def test_gates(gates: dict[str, bool], arguments: list[str]) -> None:
    assert schedulers.gate_arguments(gates) == arguments


def test_flags_are_found_in_the_help(binaries: Path) -> None:
    found = schedulers.flags_of((str(binaries / "kube-scheduler"),))

    assert {"secure-port", "bind-address"} <= found


def test_something_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be run"):
        schedulers.flags_of((str(tmp_path / "nothing"),))


def test_the_folder_of_the_binaries_can_be_given() -> None:
    given = assets.folder({"KUBEBUILDER_ASSETS": "/given"})
    cached = assets.folder({"KUBESCHED_CACHE": "/cache"})
    usual = assets.folder({"XDG_CACHE_HOME": "/xdg"})

    assert given == Path("/given")
    assert cached.parent == Path("/cache/envtest")
    assert cached.name.startswith("v1.37.1-")
    assert usual.parent == Path("/xdg/kubesched/envtest")
