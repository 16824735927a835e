"""Error responses: ``Status`` bodies, worded as in kube-apiserver.

    raise not_found(PODS, "web")  ──▶  404 {"kind": "Status", "reason": "NotFound", …}

Clients match on code, reason and message, so the wording is interface. Each function builds one
kind of error; ``FieldError`` is one error of an invalid object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kubesched.errors import ApiError

JsonObject = dict[str, Any]

OPTIMISTIC_LOCK: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class StatusError(ApiError):
    """A rejected request, with its ``Status`` object."""

    def __init__(
        self,
        message: str,
        *,
        code: int,
        reason: str,
        details: JsonObject | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, code=code, reason=reason, retry_after_s=retry_after_s)
        #: group, kind (in fact the resource), name and causes; None where kube-apiserver has none
        self.details = details
        #: list metadata, only for an expired continue token, which comes with a new one
        self.list_meta: JsonObject = {}

    def status(self) -> JsonObject:
        """Return the ``Status`` object."""
        status: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_meta,
            "status": "Failure",
            "message": str(self),
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status

    def body(self) -> bytes:
        """Return the ``Status`` object as JSON."""
        return msgspec.json.encode(self.status())


def success(*, code: int | None = None, details: JsonObject | None = None) -> JsonObject:
    """Return the ``Status`` of a success without an object."""
    status: JsonObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    if code is not None:
        status["code"] = code
    return status


def _qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def _details(resource: str, group: str, name: str = "") -> JsonObject:
    details: JsonObject = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if resource:
        details["kind"] = resource
    return details


def not_found(resource: str, name: str, *, group: str = "") -> StatusError:
    """404: there is no object of that name."""
    message = f"{_qualified(resource, group)} {quoted(name)} not found"
    return StatusError(
        message, code=404, reason="NotFound", details=_details(resource, group, name)
    )


def already_exists(resource: str, name: str, *, group: str = "") -> StatusError:
    """409: an object of that name exists."""
    message = f"{_qualified(resource, group)} {quoted(name)} already exists"
    return StatusError(
        message, code=409, reason="AlreadyExists", details=_details(resource, group, name)
    )


def generated_name_exists(resource: str, name: str, *, group: str = "") -> StatusError:
    """409: every generated name was taken."""
    message = (
        f"{_qualified(resource, group)} {quoted(name)} already exists, the server was not able "
        "to generate a unique name for the object"
    )
    details = _details(resource, group, name) | {"retryAfterSeconds": 1}
    return StatusError(message, code=409, reason="AlreadyExists", details=details, retry_after_s=1)


def conflict(resource: str, name: str, why: str, *, group: str = "") -> StatusError:
    """409: the object is not in the required state."""
    message = (
        f"Operation cannot be fulfilled on {_qualified(resource, group)} {quoted(name)}: {why}"
    )
    return StatusError(
        message, code=409, reason="Conflict", details=_details(resource, group, name)
    )


def forbidden(
    resource: str,
    name: str,
    why: str,
    *,
    group: str = "",
    causes: Sequence[JsonObject] = (),
) -> StatusError:
    """403: admission rejects the object."""
    subject = _qualified(resource, group) + (f" {quoted(name)}" if name else "")
    details = _details(resource, group, name)
    if causes:
        details["causes"] = list(causes)
    return StatusError(
        f"{subject} is forbidden: {why}", code=403, reason="Forbidden", details=details
    )


def bad_request(message: str) -> StatusError:
    """400: the request is malformed."""
    return StatusError(message, code=400, reason="BadRequest")


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """415: the body's format is not supported."""
    return StatusError(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted),
        code=415,
        reason="UnsupportedMediaType",
    )


def not_acceptable(offered: Sequence[str]) -> StatusError:
    """406: no format that the client accepts is supported."""
    return StatusError(
        "only the following media types are accepted: " + ", ".join(offered),
        code=406,
        reason="NotAcceptable",
    )


def expired(message: str) -> StatusError:
    """410: that version is no longer available."""
    return StatusError(message, code=410, reason="Expired")


def too_large_resource_version(asked: int, current: int) -> StatusError:
    """504: a future version was requested, and did not appear in time."""
    message = f"Too large resource version: {asked}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return StatusError(
        f"Timeout: {message}",
        code=504,
        reason="Timeout",
        details={"causes": [cause], "retryAfterSeconds": 1},
        retry_after_s=1,
    )


def request_too_large(limit: int) -> StatusError:
    """413: the body is too large."""
    return StatusError(
        f"Request entity too large: limit is {limit}", code=413, reason="RequestEntityTooLarge"
    )


def unroutable() -> StatusError:
    """404: there is no such path."""
    return StatusError(
        "the server could not find the requested resource",
        code=404,
        reason="NotFound",
        details={},
    )


# ---------------------------------------------------------------- objects that are not valid


@dataclass(frozen=True, slots=True)
class FieldError:
    """An invalid field."""

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def cause(self) -> JsonObject:
        """Return the entry of ``details.causes``."""
        cause: JsonObject = {"reason": self.reason, "message": self.message}
        if self.field:
            cause["field"] = self.field
        return cause


def invalid(kind: str, name: str, errors: Sequence[FieldError], *, group: str = "") -> StatusError:
    """422: the object does not pass validation."""
    details = _details(kind, group, name)
    details["causes"] = [error.cause() for error in errors]
    message = f"{_qualified(kind, group)} {quoted(name)} is invalid: {aggregate(map(str, errors))}"
    return StatusError(message, code=422, reason="Invalid", details=details)


def aggregate(messages: Iterable[str]) -> str:
    """Join messages as Go's error lists do: one as it is, several (deduplicated) in brackets."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def required(field: str, detail: str = "") -> FieldError:
    """A field is missing."""
    return FieldError("FieldValueRequired", field, _with_detail("Required value", detail))


def not_valid(field: str, value: object, detail: str) -> FieldError:
    """A value is invalid."""
    text = _with_detail(f"Invalid value: {shown(value)}", detail)
    return FieldError("FieldValueInvalid", field, text)


def duplicate(field: str, value: object, detail: str = "") -> FieldError:
    """A value is duplicated."""
    text = _with_detail(f"Duplicate value: {shown(value)}", detail)
    return FieldError("FieldValueDuplicate", field, text)


def not_supported(field: str, value: object, supported: Sequence[str]) -> FieldError:
    """A value is not one of the supported ones."""
    choices = ", ".join(map(quoted, supported))
    text = f"Unsupported value: {shown(value)}: supported values: {choices}"
    return FieldError("FieldValueNotSupported", field, text)


def not_allowed(field: str, detail: str) -> FieldError:
    """A field may not be set, or not be changed."""
    return FieldError("FieldValueForbidden", field, _with_detail("Forbidden", detail))


def too_long(field: str, limit_bytes: int) -> FieldError:
    """A value is too long."""
    text = f"Too long: may not be more than {limit_bytes} bytes"
    return FieldError("FieldValueTooLong", field, text)


def too_many(field: str, count: int, limit: int) -> FieldError:
    """A list has too many items."""
    text = f"Too many: {count}: must have at most {limit} items"
    return FieldError("FieldValueTooMany", field, text)


def not_there(field: str, value: object, detail: str = "") -> FieldError:
    """A value refers to a missing object."""
    text = _with_detail(f"Not found: {shown(value)}", detail)
    return FieldError("FieldValueNotFound", field, text)


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def quoted(text: str) -> str:
    """Return the text in double quotes with escapes."""
    return json.dumps(text, ensure_ascii=False)


def shown(value: object) -> str:
    """Format a rejected value for a message: as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
