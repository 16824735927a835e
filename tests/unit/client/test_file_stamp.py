"""Changes of files, as credentials and certificates notice them."""

from __future__ import annotations

import os
from pathlib import Path

from kubesched.client.file_stamp import stamp


def test_a_stamp_is_stable_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a")
    before = stamp(file)
    assert stamp(file) == before

    file.write_text("longer")
    assert stamp(file) != before


def test_a_replaced_file_of_the_same_size_and_time_has_another_stamp(tmp_path: Path) -> None:
    file, new = tmp_path / "token", tmp_path / "new"
    file.write_text("a")
    new.write_text("b")
    times = file.stat()
    os.utime(new, ns=(times.st_atime_ns, times.st_mtime_ns))
    before = stamp(file)

    new.replace(file)

    assert stamp(file) != before


def test_a_link_has_the_stamp_of_its_target(tmp_path: Path) -> None:
    first, second, link = tmp_path / "1", tmp_path / "22", tmp_path / "link"
    first.write_text("a")
    second.write_text("bb")
    link.symlink_to(first)
    before = stamp(link)

    link.unlink()
    link.symlink_to(second)

    assert before == stamp(first)
    assert stamp(link) == stamp(second) != before


def test_a_missing_file_has_none(tmp_path: Path) -> None:
    assert stamp(tmp_path / "missing") is None
