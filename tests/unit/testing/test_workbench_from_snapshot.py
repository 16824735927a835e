"""Tests on a real cluster's state: what `kubesched snapshot` writes is what they get."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kubesched.errors import UsageError
from kubesched.snapshot import files
from kubesched.snapshot.contents import Snapshot
from kubesched.testing import Workbench
from tests.support.objects import node, pod


@pytest.fixture
def file(tmp_path: Path) -> Path:
    taken = Snapshot(source="test")
    taken.objects["Node"] = [node("full", cpu="2"), node("free", cpu="2")]
    there = pod("there", cpu="2", node="full")
    taken.objects["Pod"] = [there, pod("wants", cpu="1"), pod("huge", cpu="9")]
    path = tmp_path / "cluster.gz"
    files.write(taken, path, taken_at="2026-11-16T00:00:00Z")
    return path


def test_nodes_and_pods_are_there_and_pending_ones_can_be_asked_about(file: Path) -> None:
    bench = Workbench()
    wants, huge = bench.from_snapshot(file)

    wants.lands_on("free")
    huge.stays_pending_because("2 Insufficient cpu")
    assert bench.cluster.node_of("there") == "full"


def test_a_snapshot_goes_with_nodes_and_pods_of_the_test(file: Path) -> None:
    bench = Workbench()
    bench.from_snapshot(str(file))
    bench.node("new", cpu=16)

    bench.pod(cpu=9).lands_on("new")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"apiVersion: v1", "not a snapshot"),
        (gzip.compress(b""), "not a snapshot: its first line does not say so"),
        (gzip.compress(b'{"kind":"Node"}\n'), "not a snapshot: its first line does not say so"),
        (gzip.compress(b"x" * 1000)[:20], "is cut off or damaged"),
        (
            gzip.compress(
                b'{"apiVersion":"kubesched/v1","kind":"Snapshot"}\n'
                b'{"apiVersion":"v1","kind":"Pod","spec":7}'
            ),
            "line 2: Expected `object`, got `int` - at `$.spec`",
        ),
    ],
    ids=["manifest", "empty", "other lines", "cut off", "unreadable object"],
)
def test_what_is_no_snapshot_is_refused_in_one_line(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        Workbench().from_snapshot(path)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory"):
        Workbench().from_snapshot(tmp_path / "none")
