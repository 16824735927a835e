"""``kubesched replay``: what it prints, how it ends, and what it says about bad files."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kubesched.cli.kubesched import main
from kubesched.recording.reader import Recording
from tests.support.objects import node, pod
from tests.support.recorded_engine import Lab, record

PACKING = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "run.rec"

    async def script(lab: Lab) -> None:
        rng = random.Random(1)
        for number in range(8):
            lab.put_node(node(f"n{number}", cpu=rng.choice(("4", "8"))))
        for number in range(40):
            lab.create_pod(pod(f"p{number}", cpu=rng.choice(("100m", "1"))))
            await lab.turns(15)
            lab.clock.advance(0.5)

    record(path, script, trouble=0.0)
    return path


@pytest.fixture
def packing(tmp_path: Path) -> Path:
    path = tmp_path / "packing.yaml"
    path.write_text(PACKING)
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["replay", *map(str, arguments)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    return err


def test_the_same_decisions(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(path)]) == 0
    words = capsys.readouterr().out.split()
    assert words[words.index("decisions") + 1] == "40"
    assert words[words.index("same") + 1] == "40"
    assert words[words.index("different") + 1] == "0"


def test_for_programs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(path), "-o", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["decisions"], said["same"]) == (40, 40)
    assert said["coveredSeconds"] > 15
    assert main(["replay", str(path), "-o", "yaml", "--until", "20"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["entries"] == 20


def test_another_configuration(
    path: Path, packing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(path), "--config", str(packing), "--top", "2"]) == 1
    out = capsys.readouterr().out
    assert "just as good" in out
    assert "would evict 0 pods" in out
    assert "… and" in out
    assert main(["replay", str(path), "--config", str(packing), "--follow", "own"]) == 1
    assert "in the end, 40 pods have a node instead of 40" in capsys.readouterr().out


def test_the_own_way_needs_a_reason(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--follow own needs --config" in refused(capsys, path, "--follow", "own")


def test_a_cut_off_recording_is_replayed_up_to_there(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(path.read_bytes()[:-60])
    assert main(["replay", str(cut), "-o", "json"]) == 0
    out, err = capsys.readouterr()
    assert "is cut off, or still being written: replayed up to its last whole entry" in err
    said = json.loads(out)
    assert said["cutOff"]
    assert said["decisions"] == said["same"] > 0


def test_a_damaged_recording_is_refused_unless_one_stops_before(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = gzip.decompress(path.read_bytes())
    damaged = tmp_path / "damaged"
    head, tail = text[: text.rindex(b'"is":"decided"')], text[text.rindex(b'"is":"decided"') :]
    damaged.write_bytes(gzip.compress(head + tail.replace(b"n", b"m", 1)))
    good = Recording.open(damaged).entries
    said = refused(capsys, damaged)
    assert f"is damaged after entry {good}: a checksum is wrong; '--until {good}' replays" in said
    assert main(["replay", str(damaged), "--until", str(good)]) == 0


def test_what_is_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    other.write_text("hello")
    assert f"{other} is no recording of kubesched" in refused(capsys, other)
    other.write_bytes(gzip.compress(b'{"kubeschedRecording":99}\n'))
    assert "is a recording in format 99" in refused(capsys, other)
    assert "no such file" in refused(capsys, tmp_path / "none")


def test_numbers_that_are_none(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "'x' is not the number of an entry" in refused(capsys, path, "--until", "x")


def test_a_configuration_that_cannot_be_read(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no such file" in refused(capsys, path, "--config", tmp_path / "none.yaml")


def test_differences_that_cannot_be_written_are_an_error(path: Path, packing: Path) -> None:
    script = "from kubesched.cli import entry; raise SystemExit(entry.kubesched())"
    # Few enough to stay in the buffer until the command has ended with 1.
    words = ["replay", str(path), f"--config={packing}", "--until=30", "-o", "json"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", script, *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )

    assert main(words) == 1
    assert ended.returncode == 1
    assert ended.stderr == "Error: cannot write to standard output: No space left on device\n"
