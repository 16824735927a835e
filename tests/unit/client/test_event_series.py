"""Repeated events: what is sent when, and how little is remembered."""

from __future__ import annotations

from kubesched.client.event_series import Outgoing, SeriesTable
from kubesched.client.event_wire import Occurrence, Series
from kubesched.client.meta import ObjectReference

SECOND = 1_000_000_000


def _occurrence(at_s: float = 0, *, name: str = "pod", note: str = "", **fields: str) -> Occurrence:
    reference = ObjectReference(
        kind="Pod", namespace="ns", name=name, uid="u", resource_version="1"
    )
    return Occurrence(
        name=f"{name}.{at_s}",
        time_ns=int(at_s * SECOND),
        type=fields.get("type", "Warning"),
        reason=fields.get("reason", "FailedScheduling"),
        action=fields.get("action", "Scheduling"),
        note=note,
        controller="default-scheduler",
        instance="default-scheduler-host",
        regarding=reference,
        related=ObjectReference(name=fields["related"]) if "related" in fields else None,
    )


def test_the_first_is_created_the_second_patched_the_rest_counted() -> None:
    table = SeriesTable()
    first = _occurrence(1, note="the first note")

    assert table.observe(first) == [Outgoing(first)]
    assert table.observe(_occurrence(2, note="another note")) == [
        Outgoing(first, Series(2, 2 * SECOND))
    ]
    assert table.observe(_occurrence(3)) == []
    assert table.observe(_occurrence(4)) == []
    assert table.refresh() == [Outgoing(first, Series(4, 4 * SECOND))]


def test_everything_but_the_note_tells_events_apart() -> None:
    table = SeriesTable()
    different = [
        _occurrence(0),
        _occurrence(0, name="other"),
        _occurrence(0, type="Normal"),
        _occurrence(0, reason="Other"),
        _occurrence(0, action="Other"),
        _occurrence(0, related="node"),
    ]

    for what in different:
        assert table.observe(what) == [Outgoing(what)]
    assert len(table) == len(different)


def test_another_version_of_the_object_is_another_event() -> None:
    table = SeriesTable()
    table.observe(_occurrence(0))
    later = Occurrence(
        **{
            **{name: getattr(_occurrence(1), name) for name in Occurrence.__struct_fields__},
            "regarding": ObjectReference(
                kind="Pod", namespace="ns", name="pod", uid="u", resource_version="2"
            ),
        }
    )

    assert table.observe(later) == [Outgoing(later)]


def test_a_single_event_is_forgotten_after_six_minutes() -> None:
    table = SeriesTable()
    table.observe(_occurrence(0))

    assert table.finish(360 * SECOND) == []
    assert len(table) == 1
    assert table.finish(360 * SECOND + 1) == []
    assert len(table) == 0
    again = _occurrence(400)
    assert table.observe(again) == [Outgoing(again)]


def test_a_series_ends_with_its_last_count_after_six_silent_minutes() -> None:
    table = SeriesTable()
    first = _occurrence(0)
    table.observe(first)
    for at_s in (100, 200, 300):
        table.observe(_occurrence(at_s))

    assert table.finish(600 * SECOND) == []
    assert table.finish(661 * SECOND) == [Outgoing(first, Series(4, 300 * SECOND))]
    assert len(table) == 0


def test_only_the_silent_are_finished() -> None:
    table = SeriesTable()
    table.observe(_occurrence(0, name="old"))
    table.observe(_occurrence(1, name="busy"))
    table.observe(_occurrence(500, name="busy"))

    table.finish(501 * SECOND)

    assert [entry.what.regarding.name for entry in table.refresh()] == ["busy"]
    assert len(table) == 1


def test_memory_is_bounded_and_a_series_is_not_lost_by_it() -> None:
    table = SeriesTable(max_entries=3)
    series = _occurrence(0, name="series")
    table.observe(series)
    table.observe(_occurrence(1, name="series"))
    table.observe(_occurrence(2, name="series"))

    sent = [table.observe(_occurrence(3 + n, name=f"p{n}")) for n in range(4)]

    assert len(table) == 3
    assert [len(outgoing) for outgoing in sent] == [1, 1, 2, 1]
    assert sent[2][1] == Outgoing(series, Series(3, 2 * SECOND))
