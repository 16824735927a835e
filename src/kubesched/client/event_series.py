"""Repeated events become one event with a series.

    1st occurrence        ──> create
    2nd                   ──> patch, count 2
    3rd and later         ──> counted here
    every 30 minutes      ──> patch of every series
    6 minutes of silence  ──> last patch, and forgotten; a single event is just forgotten

Two occurrences are the same event if everything but the note is: the first note stays. What is
remembered is bounded: beyond that the longest silent are finished early.
"""

from __future__ import annotations

from msgspec import Struct

from kubesched.client.event_wire import Occurrence, Series
from kubesched.client.meta import ObjectReference

FINISH_AFTER_S = 6 * 60.0
REFRESH_EVERY_S = 30 * 60.0

_EventKey = tuple[str, str, str, str, str, ObjectReference, ObjectReference | None]


class Outgoing(Struct, frozen=True, gc=False):
    """What is to be sent: a new event, or the news of a series."""

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
    """Remembers recent events; tells what to send."""

    def __init__(self, *, max_entries: int = 20_000) -> None:
        self._max_entries = max_entries
        #: the longest silent first
        self._entries: dict[_EventKey, Outgoing] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def observe(self, what: Occurrence) -> list[Outgoing]:
        """Take an occurrence; mostly one thing to send, none for the later ones of a series."""
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
        """Every series, so that the server does not let it expire."""
        return [entry for entry in self._entries.values() if entry.series]

    def finish(self, now_ns: int) -> list[Outgoing]:
        """Forget what has been silent for long; the last news of each series."""
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
