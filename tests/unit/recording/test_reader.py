"""Reading recordings: whole, cut off anywhere, damaged, with files missing, or no recordings."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import msgspec
import pytest

from kubesched.errors import ObjectError
from kubesched.recording.entries import Decided, Entry
from kubesched.recording.reader import Recording
from tests.support.recorded_engine import Lab, record
from tests.support.recorded_workload import Workload


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of one file, with several flushes in it."""
    path = tmp_path_factory.mktemp("recording") / "r"

    async def slowly(lab: Lab) -> None:
        workload = Workload(steps=60)
        for _ in range(3):
            await workload(lab)
            # Woken twice, the thread has flushed all that there was when it was woken first.
            for _ in range(2):
                lab._writer._wake.set()
                while lab._writer._wake.is_set():
                    await lab.turns(1)

    record(path, slowly, seed=3)
    return path


@pytest.fixture(scope="module")
def rotated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of several files."""
    path = tmp_path_factory.mktemp("recording") / "r"
    assert len(record(path, Workload(steps=120, rotations=2), seed=5, files=50).parts) > 3
    return path


def entries(recording: Recording) -> list[Entry]:
    return list(recording.state()[1])


def test_a_whole_recording(path: Path) -> None:
    recording = Recording.open(path)
    assert not recording.cut_off
    assert (recording.damage, recording.notes) == ("", [])
    assert recording.entries == len(entries(recording)) - 1  # the end of the first state
    decisions = list(recording.decisions())
    assert len(decisions) > 50
    assert all(isinstance(each, Decided) for each in decisions)
    assert recording.start <= recording.end


def test_cut_off_anywhere_all_up_to_there_is_read(path: Path, tmp_path: Path) -> None:
    whole, data = entries(Recording.open(path)), path.read_bytes()
    cut = tmp_path / "cut"
    seen = set()
    for length in range(len(data) // 4, len(data), len(data) // 40):
        cut.write_bytes(data[:length])
        recording = Recording.open(cut)
        found = entries(recording)
        assert recording.cut_off
        assert recording.damage == ""
        assert found == whole[: len(found)]
        assert len(found) == recording.entries + 1
        seen.add(len(found))
    assert len(seen) > 5


def test_half_a_line_at_the_end_is_left_out(path: Path, tmp_path: Path) -> None:
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    half = tmp_path / "half"
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    text = b"".join(lines[:400]) + lines[400][:20]
    half.write_bytes(packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH))
    recording = Recording.open(half)
    assert recording.cut_off
    seals = sum(line.startswith(b'{"is":"seal"') for line in lines[:400])
    assert len(entries(recording)) == 400 - 1 - seals  # without the header


def test_damage_in_the_middle_is_found_and_what_comes_before_is_read(
    path: Path, tmp_path: Path
) -> None:
    whole, data = entries(Recording.open(path)), bytearray(path.read_bytes())
    damaged = tmp_path / "damaged"
    for place in (len(data) // 2, len(data) * 3 // 4):
        changed = bytearray(data)
        changed[place] ^= 0x55
        damaged.write_bytes(changed)
        recording = Recording.open(damaged)
        assert recording.damage
        found = entries(recording)
        assert 1 < len(found) < len(whole)
        assert found == whole[: len(found)]


def test_a_changed_entry_is_found_even_if_it_can_be_read(path: Path, tmp_path: Path) -> None:
    text = gzip.decompress(path.read_bytes())
    changed = tmp_path / "changed"
    changed.write_bytes(gzip.compress(text.replace(b'"code":"Unschedulable"', b'"code":"X"', 1)))
    assert Recording.open(changed).damage == "a checksum is wrong"


def test_files_of_one_process_are_one_recording(rotated: Path) -> None:
    recording = Recording.open(rotated)
    first, *others = recording.parts
    assert first.first == 0
    assert [each.first for each in others] == [
        sum(each.summary.entries for each in recording.parts[:number])
        for number in range(1, len(recording.parts))
    ]
    assert recording.entries == len(entries(recording)) - 1
    number, rest = recording.state(before=recording.entries - 1)
    assert number == recording.parts[-1].first
    assert len(list(rest)) > 0


def test_an_older_file_can_be_opened_by_itself(rotated: Path) -> None:
    whole, older = Recording.open(rotated), Recording.open(f"{rotated}.1")
    assert older.entries == whole.parts[-1].first
    assert not older.cut_off


def test_files_before_a_gap_are_left_out(rotated: Path, tmp_path: Path) -> None:
    for each in rotated.parent.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    (tmp_path / "r.2").write_bytes((tmp_path / "r.3").read_bytes())
    recording = Recording.open(tmp_path / "r")
    assert len(recording.parts) == 2
    assert recording.notes == [
        f"{tmp_path / 'r.2'} and what is older is left out: entries are missing"
    ]


def test_a_damaged_older_file_is_left_out(rotated: Path, tmp_path: Path) -> None:
    for each in rotated.parent.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    data = (tmp_path / "r.2").read_bytes()
    (tmp_path / "r.2").write_bytes(data[: len(data) // 2])
    recording = Recording.open(tmp_path / "r")
    assert len(recording.parts) == 2
    assert "r.2 and what is older is left out: it is cut off" in recording.notes[0]


def test_files_of_another_process_are_another_recording(rotated: Path, tmp_path: Path) -> None:
    path = tmp_path / "r"
    record(path, Workload(steps=5))
    (tmp_path / "r.1").write_bytes(rotated.read_bytes())
    recording = Recording.open(path)
    assert len(recording.parts) == 1
    assert recording.notes == []


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is no recording of kubesched"),
        (b"hello, world\n" * 10, "is no recording of kubesched"),
        (gzip.compress(b'{"kind":"Snapshot"}\n'), "is no recording of kubesched"),
        (gzip.compress(b"\x00\xff\n"), "is no recording of kubesched"),
        (gzip.compress(b'{"kubeschedRecording":3}\n'), "is a recording in format 3"),
        (gzip.compress(b'{"kubeschedRecording":1}\n'), "its header cannot be read"),
    ],
    ids=["empty", "text", "snapshot", "no JSON", "other format", "half a header"],
)
def test_what_is_no_recording_is_refused_in_one_line(
    tmp_path: Path, data: bytes, problem: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(ObjectError) as refused:
        Recording.open(path)
    assert problem in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ObjectError, match="no such file"):
        Recording.open(tmp_path / "none")


def test_cut_off_before_the_first_state_is_complete(path: Path, tmp_path: Path) -> None:
    header = gzip.decompress(path.read_bytes()).splitlines(keepends=True)[0]
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    early = tmp_path / "early"
    early.write_bytes(packer.compress(header) + packer.flush(zlib.Z_SYNC_FLUSH))
    with pytest.raises(ObjectError, match="has nothing to replay: it was cut off"):
        Recording.open(early)


def test_an_entry_of_an_unknown_form_is_told(path: Path, tmp_path: Path) -> None:
    lines = gzip.decompress(path.read_bytes()).splitlines()[:2]
    run = b"\n".join((*lines, msgspec.json.encode({"is": "news", "at": 1}))) + b"\n"
    seal = msgspec.json.encode({"is": "seal", "crc": zlib.crc32(run)})
    unknown = tmp_path / "unknown"
    unknown.write_bytes(gzip.compress(run + seal + b"\n"))
    with pytest.raises(ObjectError, match="an entry cannot be read: Invalid value 'news'"):
        entries(Recording.open(unknown))
