"""Conversion between the two event APIs, which share one store.

``v1`` has involvedObject, message and source; ``events.k8s.io/v1`` has regarding, note and
reportingController. Events are stored in the form of ``v1`` and converted on the way in and out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubesched.embedded import formats
from kubesched.embedded.refusals import FieldError, not_valid, required
from kubesched.embedded.resources import NEW_EVENTS, ServedResource
from kubesched.embedded.validation import (
    IMMUTABLE,
    complaints,
    metadata_errors,
    metadata_update_errors,
)

JsonObject = dict[str, Any]

#: events.k8s.io/v1 → v1, where the names differ
_CORE_NAMES: Final[Mapping[str, str]] = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_NEW_NAMES: Final[Mapping[str, str]] = {core: new for new, core in _CORE_NAMES.items()}
#: Fields that v1 writes even if empty.
_CORE_EMPTY: Final[Mapping[str, Any]] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
#: Fields that events.k8s.io/v1 omits if empty.
_NEW_OMITTED: Final = frozenset({"reportingController", "reportingInstance"})

_SHORT_TEXT: Final = 128
_NOTE_TEXT: Final = 1024
_FIXED: Final = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)


def to_core(event: JsonObject) -> JsonObject:
    """Return an events.k8s.io/v1 event in the form of v1."""
    return {_CORE_NAMES.get(name, name): value for name, value in event.items()}


def from_core(event: JsonObject) -> JsonObject:
    """Return a stored event in the form of events.k8s.io/v1."""
    renamed = {_NEW_NAMES.get(name, name): value for name, value in event.items()}
    return {name: v for name, v in renamed.items() if v or name not in _NEW_OMITTED}


def complete(event: JsonObject) -> None:
    """Add the fields that an event always has."""
    for name, value in _CORE_EMPTY.items():
        event.setdefault(name, value)


def creation_errors(event: JsonObject, resource: ServedResource) -> list[FieldError]:
    """Validate a new event; the newer API is stricter."""
    errors = _common_errors(event, resource)
    if resource is not NEW_EVENTS:
        return errors + metadata_errors(resource, event["metadata"])
    errors += metadata_errors(resource, event["metadata"])
    errors += _series_errors(event.get("series"))
    if not event.get("eventTime"):
        errors.append(required("eventTime"))
    if event.get("type") not in {"Normal", "Warning"}:
        errors.append(not_valid("type", "", f"has invalid value: {event.get('type', '')}"))
    errors += [
        not_valid(name, "", "needs to be unset")
        for name in ("firstTimestamp", "lastTimestamp", "count", "source")
        if event.get(name)
    ]
    return errors


def update_errors(event: JsonObject, old: JsonObject, resource: ServedResource) -> list[FieldError]:
    """Validate a changed event: the newer API lets only the series change."""
    errors = _common_errors(event, resource)
    errors += metadata_update_errors(event["metadata"], old["metadata"])
    if resource is not NEW_EVENTS:
        return errors
    if event.get("series") != old.get("series"):
        errors += _series_errors(event.get("series"))
    return errors + [
        not_valid(name, event.get(name), IMMUTABLE)
        for name in _FIXED
        if (event.get(name) or None) != (old.get(name) or None)
    ]


def _series_errors(series: JsonObject | None) -> list[FieldError]:
    if not series:
        return []
    errors: list[FieldError] = []
    if (series.get("count") or 0) < 2:
        errors.append(not_valid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required("series.lastObservedTime"))
    return errors


def _common_errors(event: JsonObject, resource: ServedResource) -> list[FieldError]:
    namespace = event["metadata"].get("namespace", "")
    about = (event.get("involvedObject") or {}).get("namespace", "")
    if not event.get("eventTime"):
        agrees = about == namespace if about else namespace in {"", "default"}
        return [] if agrees else [_other_namespace(about)]
    errors: list[FieldError] = []
    if not about and namespace not in {"default", "kube-system"}:
        errors.append(_other_namespace(about))
    return errors + _new_style_errors(event, resource)


def _other_namespace(about: str) -> FieldError:
    return not_valid("involvedObject.namespace", about, "does not match event.namespace")


def _new_style_errors(event: JsonObject, resource: ServedResource) -> list[FieldError]:
    """Validate the required fields of an event with an eventTime."""
    field = "reportingController" if resource is NEW_EVENTS else "reportingComponent"
    controller = event.get("reportingComponent") or ""
    errors = [] if controller else [required(field)]
    errors += complaints(field, controller, formats.qualified_name)
    for name in ("reportingInstance", "action", "reason"):
        text = event.get(name) or ""
        if not text:
            errors.append(required(name))
        if len(text) > _SHORT_TEXT:
            errors.append(not_valid(name, "", f"can have at most {_SHORT_TEXT} characters"))
    if len(event.get("message") or "") > _NOTE_TEXT:
        errors.append(not_valid("message", "", f"can have at most {_NOTE_TEXT} characters"))
    return errors
