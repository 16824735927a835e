"""The writer: nothing is lost that was flushed, size is bounded, and trouble ends only itself."""

from __future__ import annotations

import errno
import logging
import random
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubesched.recording import writer as writing
from kubesched.recording.entries import CheckpointEnd, Gone, Header, Randomness
from kubesched.recording.files import RecordingFile
from kubesched.recording.reader import Recording
from kubesched.recording.writer import NewFile, Writer
from tests.support.waiting import until

from .headers import HEADER

END = CheckpointEnd(randomness=Randomness(ties=random.Random(0).getstate()))


def begun(path: Path, *, max_bytes: int = 1 << 30, files: int = 4) -> Writer:
    writer = Writer(path, max_bytes=max_bytes, files=files)
    writer.begin_file(NewFile(HEADER, [END]))
    writer.start()
    return writer


def begun_with_an_entry(path: Path) -> Writer:
    writer = begun(path)
    writer.append(Gone(uid="a"))
    until(path.exists)
    until(lambda: Recording.open(path).entries == 1)
    return writer


def test_everything_told_is_there_after_closing(tmp_path: Path) -> None:
    writer = begun(tmp_path / "r")
    for number in range(5000):
        writer.append(Gone(uid=str(number)))
    writer.close()

    recording = Recording.open(tmp_path / "r")
    assert not recording.cut_off
    found = [entry for entry in recording.state()[1] if isinstance(entry, Gone)]
    assert [each.uid for each in found] == [str(number) for number in range(5000)]
    assert writer.bytes_written == (tmp_path / "r").stat().st_size


def test_entries_can_be_read_a_moment_later_while_the_file_is_open(tmp_path: Path) -> None:
    writer = begun_with_an_entry(tmp_path / "r")
    assert Recording.open(tmp_path / "r").cut_off
    writer.close()


def test_a_process_that_ends_while_a_file_is_begun_leaves_the_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r"
    writer = begun_with_an_entry(path)
    reached, end = threading.Event(), threading.Event()

    def stop(self: RecordingFile, entries: object) -> None:
        reached.set()
        end.wait()

    monkeypatch.setattr(RecordingFile, "write", stop)
    writer.begin_file(NewFile(_from(1), [END]))
    assert reached.wait(10)
    assert Recording.open(path).entries == 1
    end.set()
    writer.close()


def test_a_file_whose_state_could_not_be_written_does_not_take_the_place_of_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r"
    writer = begun_with_an_entry(path)
    monkeypatch.setattr(
        RecordingFile, "write", lambda _file, _entries: writer._fail("the disk is too slow")
    )
    writer.begin_file(NewFile(_from(1), [END]))
    writer.close()

    assert [each.name for each in tmp_path.iterdir()] == ["r"]
    assert Recording.open(path).entries == 1


def test_files_together_stay_within_their_limit(tmp_path: Path) -> None:
    limit, files = 2 << 20, 2
    writer = begun(tmp_path / "r", max_bytes=limit, files=files)
    noise = random.Random(1).randbytes(16 * 5000).hex()
    count = 0
    while writer.bytes_written < 2 * limit:
        for number in range(5000):
            writer.append(Gone(uid=f"{count}{noise[32 * number : 32 * number + 32]}"))
            count += 1
            if writer.full:
                writer.begin_file(NewFile(_from(count), [END]))
        until(lambda: not writer._waiting)
    writer.close()

    sizes = [each.stat().st_size for each in tmp_path.iterdir()]
    assert len(sizes) == files
    assert sum(sizes) <= limit
    recording = Recording.open(tmp_path / "r")
    assert len(recording.parts) == files
    assert recording.header.first_entry + recording.entries == count


def _from(first_entry: int) -> Header:
    return replace(HEADER, first_entry=first_entry)


def test_a_full_disk_ends_recording_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: RecordingFile, entries: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = begun(tmp_path / "r")
    until((tmp_path / "r").exists)
    monkeypatch.setattr(RecordingFile, "write", full)
    with caplog.at_level(logging.ERROR):
        writer.append(Gone(uid="a"))
        until(lambda: writer.failure)
        until(lambda: caplog.records)  # the writer's thread logs it right after that
    writer.append(Gone(uid="b"))

    assert writer.failure == "no space left on device"
    assert not writer._waiting
    assert [each.getMessage() for each in caplog.records] == [
        f"Recording to {tmp_path / 'r'} has ended, scheduling goes on: no space left on device"
    ]
    writer.close()


def test_a_disk_that_is_too_slow_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_MOST_WAITING", 3000)
    writer = Writer(tmp_path / "r", max_bytes=1 << 30, files=1)  # nobody writes
    for _ in range(5000):
        writer.append(Gone(uid="a"))
    assert "too slow" in writer.failure
    assert not writer._waiting


def test_a_state_that_does_not_fit_into_a_file_is_told_and_not_written_again(
    tmp_path: Path,
) -> None:
    rng = random.Random(0)
    state = [Gone(uid=rng.randbytes(16).hex()) for _ in range(9000)]
    writer = Writer(tmp_path / "r", max_bytes=200_000, files=1)
    writer.begin_file(NewFile(HEADER, [*state, END]))
    writer.start()
    until(lambda: writer.failure)
    assert "raise --record-max-size" in writer.failure
    writer.close()


def test_the_file_of_an_older_process_is_put_aside(tmp_path: Path) -> None:
    begun(tmp_path / "r").close()
    old = (tmp_path / "r").read_bytes()
    begun(tmp_path / "r").close()
    assert (tmp_path / "r.1").read_bytes() == old
