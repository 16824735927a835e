"""``kubesched history``: what it prints, and what it says about bad words and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kubesched.cli.kubesched import main
from tests.support.objects import node, pod
from tests.support.recorded_engine import Lab, record


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    async def script(lab: Lab) -> None:
        lab.put_node(node("n1", cpu="4"))
        lab.put_node(node("n2", cpu="8"))
        lab.create_pod(pod("low", cpu="6", priority=1, namespace="shop"))
        await lab.turns(30)
        lab.clock.advance(1.5)
        lab.create_pod(pod("web-1", cpu="6", priority=5, namespace="shop"))
        await lab.settle()

    path = tmp_path_factory.mktemp("recording") / "run.rec"
    record(path, script, trouble=0.0)
    return path


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["history", *map(str, words)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["history", *map(str, words)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    return err


def test_the_story_of_a_pod(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "shop/web-1", "--recording", path)

    assert out.startswith("shop/web-1: uid web-1, priority 5, profile default-scheduler, 2 att")
    assert "1: 0/2 nodes are available: 2 Insufficient cpu." in out
    assert "2 rejected: Insufficient cpu (NodeResourcesFit): n1, n2\n" in out
    assert "evicts shop/low on n2, priority 1\n" in out
    assert "moved        to unschedulable, by ScheduleAttemptFailure\n" in out
    assert "2: placed on n2\n" in out
    assert not any(line.endswith(" ") for line in out.splitlines())


@pytest.mark.parametrize(
    "words",
    [
        ("pod", "shop/web-1"),
        ("pod/web-1", "-n", "shop"),
        ("web-1", "--namespace=shop"),
        ("po", "web-1", "-n", "shop"),
    ],
)
def test_the_pod_may_be_named_as_for_kubectl(
    words: tuple[str, ...], path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(capsys, *words, "--recording", path).startswith("shop/web-1: ")


def test_for_programs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(printed(capsys, "shop/low", "--recording", path, "-o", "json"))
    (life,) = said["lives"]
    (victim,) = [each for each in life["events"] if each["kind"] == "victim"]
    assert (victim["by"], victim["node"]) == ("shop/web-1", "n2")
    (attempt,) = [each["attempt"] for each in life["events"] if "attempt" in each]
    assert (attempt["node"], attempt["feasible"]) == ("n2", 1)
    as_yaml = printed(capsys, "shop/low", "--recording", path, "-o", "yaml")
    assert yaml.safe_load(as_yaml) == said


def test_a_pod_that_is_not_there(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "web-1", "--recording", path)
    assert said == (f"Error: pod default/web-1 is not in the recording {path}; it has shop/web-1\n")


def test_words_that_name_no_pod(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "name one pod" in refused(capsys, "one", "two", "--recording", path)
    assert "name one pod" in refused(capsys, "pod", "--recording", path)
    assert "--recording" in refused(capsys, "one")


def test_a_recording_that_was_cut_off_is_told_up_to_there(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(path.read_bytes()[:-60])

    out = printed(capsys, "shop/low", "--recording", cut)

    assert "shop/low: " in out
    assert out.endswith("Note: the recording is cut off, or still being written\n")
