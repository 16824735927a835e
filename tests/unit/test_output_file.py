"""Outputs: files are replaced whole, links stay, devices and pipes are written to."""

from __future__ import annotations

import io
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from kubesched import output_file
from kubesched.errors import OutputError


def write(path: Path | str, text: bytes = b"new") -> None:
    with output_file.writing(path) as out:
        out.write(text)


def test_a_file_is_made(tmp_path: Path) -> None:
    write(tmp_path / "file")

    assert (tmp_path / "file").read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)

    write(path)

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_was_there_stays_if_the_new_is_not_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def interrupted() -> None:
        with output_file.writing(path) as out:
            out.write(b"half")
            assert path.read_text() == "old"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_what_it_points_to_is_written(tmp_path: Path, exists: bool) -> None:
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.parent.mkdir()
    if exists:
        target.write_text("old")
    link.symlink_to(target)

    write(link)

    assert link.readlink() == target
    assert target.read_bytes() == b"new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()

    write(path)

    reader.join(10)
    assert read == [b"new"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_device_is_written_to_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/full")

    with pytest.raises(OutputError, match=r"^cannot write .*link: No space left on device$"):
        write(link)

    assert link.readlink() == Path("/dev/full")
    assert stat.S_ISCHR(link.stat().st_mode)


def test_a_dash_is_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown))

    write("-")

    assert shown.getvalue() == b"new"


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, reason in (
        (tmp_path, "Is a directory"),
        (tmp_path / "no" / "folder", "No such file or directory"),
        (tmp_path / "file" / "below", "Not a directory"),
    ):
        with pytest.raises(OutputError) as refused:
            write(path)
        assert str(refused.value) == f"cannot write {path}: {reason}"
    with pytest.raises(OutputError, match="File exists"):
        output_file.make_folder(tmp_path / "file")


def test_permissions_are_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may not be written is not replaced either, although its folder would allow it."""
    path = tmp_path / "file"
    path.write_text("old")
    # Root may write everywhere, and tests may be run by root.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OutputError, match="Permission denied"):
        write(path)
    with pytest.raises(OutputError, match="Permission denied"):
        output_file.make_folder(tmp_path)
    assert path.read_text() == "old"
