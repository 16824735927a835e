"""Aggregates repeated events into one event with a series.

    1st occurrence        ──> create
    2nd                   ──> patch, count 2
    3rd and later         ──> only counted
    every 30 minutes      ──> patch of every series
    6 minutes of silence  ──> last patch, then dropped; a single event is just dropped

Occurrences are the same event if all fields but the note are equal; the first note stays. The table
is bounded: when it is full, the series silent for longest are finished early.
"""

from __future__ import annotations

from msgspec import Struct

from kubesched.client.event_wire import Occurrence, Series
from kubesched.client.meta import ObjectReference

FINISH_AFTER_S = 6 * 60.0
REFRESH_EVERY_S = 30 * 60.0

_EventKey = tuple[str, str, str, str, str, ObjectReference, ObjectReference | None]


class Outgoing(Struct, frozen=True, gc=False):
    """A request to send: a new event, or an update of a series."""

    what: Occurrence
    series: Series | None = None


def _key(what: Occurrence) -> _EventKey:
    return (
        what.type,
        what.action,
        what.reason,
        what.controller,
        what.instance,
        what.regarding,
        what.related,
    )


class SeriesTable:
    """Tracks recent events, and returns what to send."""

    def __init__(self, *, max_entries: int = 20_000) -> None:
        self._max_entries = max_entries
        #: longest silent first
        self._entries: dict[_EventKey, Outgoing] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def observe(self, what: Occurrence) -> list[Outgoing]:
        """Add an occurrence; usually returns one request, none for later ones of a series."""
        key = _key(what)
        known = self._entries.pop(key, None)
        if known is None:
            entry = Outgoing(what)
        else:
            count = known.series.count + 1 if known.series else 2
            entry = Outgoing(known.what, Series(count, what.time_ns))
        self._entries[key] = entry
        send = [entry] if entry.series is None or entry.series.count == 2 else []
        if len(self._entries) > self._max_entries:
            send += self._finish_first()
        return send

    def refresh(self) -> list[Outgoing]:
        """Return an update of every series, so that the server does not expire it."""
        return [entry for entry in self._entries.values() if entry.series]

    def finish(self, now_ns: int) -> list[Outgoing]:
        """Drop events that were silent for long; return the last update of each series."""
        latest_ns = now_ns - int(FINISH_AFTER_S * 1e9)
        send: list[Outgoing] = []
        while self._entries:
            entry = next(iter(self._entries.values()))
            last_ns = entry.series.last_ns if entry.series else entry.what.time_ns
            if last_ns >= latest_ns:
                break
            send += self._finish_first()
        return send

    def _finish_first(self) -> list[Outgoing]:
        entry = self._entries.pop(next(iter(self._entries)))
        return [entry] if entry.series else []
