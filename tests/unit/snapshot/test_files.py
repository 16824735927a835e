"""A snapshot read back is the snapshot that was written, and nothing private is in it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubesched.api.core import Namespace
from kubesched.api.meta import ObjectMeta
from kubesched.errors import ObjectError, OutputError
from kubesched.snapshot import files
from kubesched.snapshot.contents import Snapshot
from tests.support.objects import node, pod, taint

TAKEN_AT = "2026-01-01T00:00:00+00:00"


def _snapshot() -> Snapshot:
    snapshot = Snapshot(source="https://server", notes=["volumes are missing"])
    snapshot.add("Node", node("n1", labels={"a": "b"}, taints=[taint("gpu:NoSchedule")]))
    snapshot.add("Namespace", Namespace(metadata=ObjectMeta(name="default")))
    snapshot.add("Pod", pod("p1", cpu="500m", node="n1", priority=7))
    snapshot.add("Pod", pod("p2"))
    return snapshot


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "cluster.gz"
    files.write(_snapshot(), path, taken_at=TAKEN_AT)

    found = files.read(path)

    assert found.objects == _snapshot().objects
    assert found.notes == ["volumes are missing"]
    assert found.source == str(path)
    assert [each.name for each in tmp_path.iterdir()] == ["cluster.gz"]


def test_each_line_is_an_object_as_the_api_server_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "cluster.gz"
    files.write(_snapshot(), path, taken_at=TAKEN_AT)

    lines = gzip.decompress(path.read_bytes()).decode().splitlines()

    assert lines[1].startswith('{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"')
    assert len(lines) == 5


def test_the_manifest_that_an_object_was_made_of_is_left_out(tmp_path: Path) -> None:
    secret = pod("p")
    annotations = {files.LAST_APPLIED: '{"env": "PASSWORD=x"}', "kept": "yes"}
    secret = replace(secret, metadata=replace(secret.metadata, annotations=annotations))
    snapshot = Snapshot(source="s")
    snapshot.add("Pod", secret)
    path = tmp_path / "cluster.gz"
    files.write(snapshot, path, taken_at=TAKEN_AT)

    assert b"PASSWORD" not in gzip.decompress(path.read_bytes())
    assert files.read(path).pods[0].metadata.annotations == {"kept": "yes"}


def test_a_line_that_cannot_be_read_costs_itself_and_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "cluster.gz"
    files.write(_snapshot(), path, taken_at=TAKEN_AT)
    with gzip.open(path, "ab") as more:
        more.write(b'{"apiVersion":"v1","kind":"Node","metadata":{"name":5}}\n')

    found = files.read(path)

    assert len(found.nodes) == 1
    assert found.notes[1].startswith("line 6 left out, cannot be read: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"kind: Node\n", "not a snapshot; for manifests use --manifests"),
        (gzip.compress(b'{"kind":"Node"}\n'), "not a snapshot: its first line does not say so"),
        (
            gzip.compress(b'{"kind":"Snapshot","apiVersion":"kubesched/v9"}\n'),
            "written by another version of kubesched",
        ),
        (gzip.compress(b'{"kind":"Snapshot","apiVersion":"kubesched/v1"}\n')[:-9], "cut off"),
    ],
    ids=["manifest", "other lines", "other version", "cut off"],
)
def test_what_is_no_snapshot_is_refused_in_one_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)

    with pytest.raises(ObjectError, match=message) as refused:
        files.read(path)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ObjectError, match=r"cannot read .*: No such file"):
        files.read(tmp_path / "nothing")
    with pytest.raises(OutputError, match=r"cannot write .*: No such file"):
        files.write(_snapshot(), tmp_path / "no" / "folder", taken_at=TAKEN_AT)
