"""The change log: which rows changed since a reader last looked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.cluster.changes import ChangeLog


def _since(log: ChangeLog, position: int) -> list[int] | None:
    rows = log.rows_since(position)
    return None if rows is None else rows.tolist()


def test_nothing_changed_since_the_newest_position() -> None:
    log = ChangeLog()
    log.record(3)
    assert _since(log, log.position) == []


def test_rows_are_distinct_and_sorted() -> None:
    log = ChangeLog()
    for row in (5, 1, 5, 3, 1):
        log.record(row)
    assert _since(log, 0) == [1, 3, 5]


def test_each_reader_gets_what_came_after_its_own_position() -> None:
    log = ChangeLog()
    log.record(1)
    early = log.position
    log.record(2)
    late = log.position
    log.record(3)
    assert _since(log, early) == [2, 3]
    assert _since(log, late) == [3]


def test_a_paused_log_notes_nothing() -> None:
    log = ChangeLog()
    log.paused = True
    log.record(1)
    log.paused = False
    assert log.position == 0
    assert _since(log, 0) == []


def test_who_comes_too_late_is_told_so() -> None:
    log = ChangeLog(limit=4)
    for row in range(5):
        log.record(row)
    assert log.position == 5
    assert _since(log, 0) is None
    assert _since(log, 1) is None
    assert _since(log, 2) == [2, 3, 4]


@given(
    limit=st.integers(2, 9),
    rows=st.lists(st.integers(0, 5), max_size=40),
    read_at=st.integers(0, 40),
)
def test_a_bounded_log_never_lies(limit: int, rows: list[int], read_at: int) -> None:
    log = ChangeLog(limit=limit)
    for row in rows:
        log.record(row)
    assert log.position == len(rows)
    read_at = min(read_at, len(rows))
    found = _since(log, read_at)
    if found is None:
        assert len(rows) - read_at > limit // 2
    else:
        assert found == sorted(set(rows[read_at:]))
