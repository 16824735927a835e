"""Files of a recording: what may be at their path, how old ones make room, who may read them."""

from __future__ import annotations

import gzip
import os
import stat
from pathlib import Path

import pytest

from kubesched.clock import RealClock
from kubesched.errors import ConfigError
from kubesched.recording import files
from kubesched.recording.entries import Gone
from kubesched.recording.files import RecordingFile
from kubesched.recording.opening import open_journal
from kubesched.recording.options import RecordingOptions

from .headers import HEADER


def published(path: Path) -> RecordingFile:
    file = RecordingFile(path, HEADER)
    file.publish()
    return file


def lines(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines()


def test_a_closed_file_is_plain_gzip_with_an_object_a_line(tmp_path: Path) -> None:
    path = tmp_path / "r"
    file = RecordingFile(path, HEADER)
    file.write([Gone(at=5, uid="a")])
    file.publish()
    file.close()

    header, entry, seal, end, last_seal = lines(path)
    assert b'"kubeschedRecording":2' in header
    assert entry == b'{"is":"gone","at":5,"uid":"a"}'
    assert end == b'{"is":"end"}'
    assert seal.startswith(b'{"is":"seal"')
    assert last_seal.startswith(b'{"is":"seal"')
    assert file.size == path.stat().st_size


def test_a_file_has_its_name_once_what_it_begins_with_is_on_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "r"
    file = RecordingFile(path, HEADER)
    file.write([Gone(uid="a")])
    assert not path.exists()
    file.publish()
    assert [each.name for each in tmp_path.iterdir()] == ["r"]
    size = path.stat().st_size
    file.flush()
    assert path.stat().st_size == size
    file.close()


def test_a_file_that_never_got_its_name_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "r.new").write_text("of a process that was killed")
    file = RecordingFile(tmp_path / "r", HEADER)
    file.abandon()
    assert list(tmp_path.iterdir()) == []


def test_names_in_a_recording_are_for_its_owner_only(tmp_path: Path) -> None:
    published(tmp_path / "r").close()
    assert stat.S_IMODE((tmp_path / "r").stat().st_mode) == 0o600


def test_what_was_flushed_is_on_the_disk_while_the_file_is_open(tmp_path: Path) -> None:
    path = tmp_path / "r"
    file = published(path)
    file.write([Gone(uid="a")])
    file.flush()
    size = path.stat().st_size
    file.write([Gone(uid="b")])
    assert path.stat().st_size == size
    file.flush()
    assert path.stat().st_size > size
    file.abandon()


def test_much_is_flushed_before_anybody_asks(tmp_path: Path) -> None:
    file = published(tmp_path / "r")
    written = (tmp_path / "r").stat().st_size
    for _ in range(40):
        file.write([Gone(uid=f"{number:032d}") for number in range(1000)])
    assert (tmp_path / "r").stat().st_size > written
    file.abandon()


def test_each_file_takes_the_next_number_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "r"
    for text in ("1", "2", "3", "4"):
        files.drop_oldest(path, 3)
        files.make_room(path, 3)
        path.write_text(text)
    found = {each.name: each.read_text() for each in tmp_path.iterdir()}
    assert found == {"r": "4", "r.1": "3", "r.2": "2"}


def test_one_file_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_text("old")
    files.drop_oldest(path, 1)
    files.make_room(path, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_recording_is_not_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(ConfigError, match=r"notes\.txt: there is a file that is no recording"):
        files.check_target(path)
    assert path.read_text() == "mine"
    path.write_bytes(gzip.compress(b"mine, too"))
    with pytest.raises(ConfigError, match="no recording"):
        files.check_target(path)


def test_an_older_recording_and_an_empty_file_may_be_there(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    files.check_target(empty)
    published(tmp_path / "r").close()
    files.check_target(tmp_path / "r")


def test_a_path_that_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        files.check_target(tmp_path / "no" / "r")
    with pytest.raises(ConfigError, match="is a directory"):
        files.check_target(tmp_path)


def test_what_is_no_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(ConfigError, match="a device, pipe or socket, and a recording needs a file"):
        files.check_target(pipe)


def test_a_link_stays_and_files_are_beside_what_it_points_to(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "folder" / "run"
    target.parent.mkdir()
    link.symlink_to(target)

    journal = open_journal(RecordingOptions(path=str(link)), RealClock())

    assert journal.writer._path == target
