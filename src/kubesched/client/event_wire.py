"""Events on the wire: events.k8s.io/v1, or core/v1 where that is missing."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from kubesched.client import resources
from kubesched.client.meta import ObjectReference, WireStruct

EventType = Literal["Normal", "Warning"]

#: The API server rejects longer notes.
MAX_NOTE_BYTES = 1024
_CUT_MARK = " ..."
_MAX_NAME_LENGTH = 253
_is_subdomain = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
).fullmatch


class Occurrence(Struct, frozen=True, gc=False, kw_only=True):
    """An event about an object, as recorded."""

    name: str
    #: time of the first occurrence, nanoseconds since the epoch
    time_ns: int
    type: str
    reason: str
    action: str
    note: str
    controller: str
    instance: str
    regarding: ObjectReference
    related: ObjectReference | None = None

    @property
    def namespace(self) -> str:
        """The event's namespace: that of its object, or ``default``."""
        return self.regarding.namespace or "default"

    def __str__(self) -> str:
        where = "/".join(filter(None, (self.regarding.namespace, self.regarding.name)))
        return f"{self.reason} of {self.regarding.kind or 'object'} {where}"


class Series(Struct, frozen=True, gc=False):
    """How often the event occurred, and when last."""

    count: int
    last_ns: int


class _Metadata(WireStruct, frozen=True):
    name: str
    namespace: str


class _EventSeries(WireStruct, frozen=True):
    count: int
    last_observed_time: str


class _Event(WireStruct, frozen=True):
    api_version: str
    kind: str
    metadata: _Metadata
    event_time: str
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str
    reporting_instance: str
    regarding: ObjectReference
    related: ObjectReference | None = None
    series: _EventSeries | None = None


class _SeriesPatch(WireStruct, frozen=True):
    series: _EventSeries


class _Source(WireStruct, frozen=True):
    component: str


class _CoreEvent(WireStruct, frozen=True):
    api_version: str
    kind: str
    metadata: _Metadata
    involved_object: ObjectReference
    reason: str
    message: str
    type: str
    source: _Source
    first_timestamp: str
    last_timestamp: str
    count: int
    reporting_component: str
    reporting_instance: str


class _CorePatch(WireStruct, frozen=True):
    count: int
    last_timestamp: str


def event_name(object_name: str, time_ns: int) -> str:
    """Return a unique event name; a random one if the object's name cannot be part of it."""
    name = f"{object_name}.{time_ns:x}"
    if len(name) <= _MAX_NAME_LENGTH and _is_subdomain(name):
        return name
    return str(uuid.uuid4())


def fit_note(note: str) -> str:
    """Truncate a note, visibly and between two characters, to what the API server accepts."""
    encoded = note.encode(errors="replace")
    if len(encoded) <= MAX_NOTE_BYTES:
        return encoded.decode()
    return encoded[: MAX_NOTE_BYTES - len(_CUT_MARK)].decode(errors="ignore") + _CUT_MARK


def micro_time(time_ns: int) -> str:
    """RFC 3339 with microseconds."""
    seconds, rest_ns = divmod(time_ns, 1_000_000_000)
    return f"{_date_and_time(seconds)}.{rest_ns // 1000:06d}Z"


def second_time(time_ns: int) -> str:
    """RFC 3339 with seconds."""
    return f"{_date_and_time(time_ns // 1_000_000_000)}Z"


@lru_cache(maxsize=8)
def _date_and_time(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


class EventsV1:
    """events.k8s.io/v1."""

    resource = resources.EVENTS

    def create(self, what: Occurrence, series: Series | None) -> Struct:
        """Body of the POST."""
        return _Event(
            api_version=self.resource.api_version,
            kind="Event",
            metadata=_Metadata(name=what.name, namespace=what.namespace),
            event_time=micro_time(what.time_ns),
            type=what.type,
            reason=what.reason,
            action=what.action,
            note=what.note,
            reporting_controller=what.controller,
            reporting_instance=what.instance,
            regarding=what.regarding,
            related=what.related,
            series=self._series(series) if series else None,
        )

    def patch(self, series: Series) -> Struct:
        """Body of the PATCH for a repeated event."""
        return _SeriesPatch(series=self._series(series))

    def _series(self, series: Series) -> _EventSeries:
        return _EventSeries(count=series.count, last_observed_time=micro_time(series.last_ns))


class CoreV1:
    """core/v1: no action and no related object, a count instead of a series."""

    resource = resources.CORE_EVENTS

    def create(self, what: Occurrence, series: Series | None) -> Struct:
        """Body of the POST."""
        return _CoreEvent(
            api_version=self.resource.api_version,
            kind="Event",
            metadata=_Metadata(name=what.name, namespace=what.namespace),
            involved_object=what.regarding,
            reason=what.reason,
            message=what.note,
            type=what.type,
            source=_Source(component=what.controller),
            first_timestamp=second_time(what.time_ns),
            last_timestamp=second_time(series.last_ns if series else what.time_ns),
            count=series.count if series else 1,
            reporting_component=what.controller,
            reporting_instance="",
        )

    def patch(self, series: Series) -> Struct:
        """Body of the PATCH for a repeated event."""
        return _CorePatch(count=series.count, last_timestamp=second_time(series.last_ns))


EventApi = EventsV1 | CoreV1
