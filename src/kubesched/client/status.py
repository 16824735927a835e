"""Maps an error response to an exception.

The text is the server's own message where it sent a ``Status``, because events and logs repeat it
and users search for it; the caller adds the context.
"""

from __future__ import annotations

import email.utils
import http
import time
from collections.abc import Callable

import msgspec

from kubesched.client.meta import UNREADABLE, ApiStatus
from kubesched.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)

_LONGEST_QUOTE = 300
_decode_status = msgspec.json.Decoder(ApiStatus).decode

_BY_CODE: dict[int, type[ApiError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
}


def error_from_answer(
    code: int,
    body: bytes,
    *,
    what: str,
    header: Callable[[str], str | None],
) -> ApiError:
    """Return the exception for a failed request; ``what`` is its method and path."""
    status = _parse(body)
    retry_after_s = retry_after(header("Retry-After"))
    if status is None:
        status = ApiStatus(message=f"{what}: {_describe(code, body)}")
    return _make(status, code, retry_after_s)


def error_from_event(raw: bytes) -> ApiError:
    """Return the exception for an ERROR event of a watch."""
    status = _parse(raw)
    if status is None:
        quote = raw[:_LONGEST_QUOTE].decode(errors="replace")
        return ApiError(f"the watch ended with an error that is not a Status: {quote}", code=500)
    return _make(status, status.code or 500, None)


def retry_after(value: str | None) -> float | None:
    """Parse a ``Retry-After`` header, a number of seconds or a date."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return None  # a date that no calendar has fails in many ways
    return seconds if 0 <= seconds < float("inf") else 0.0


def _parse(body: bytes) -> ApiStatus | None:
    try:
        status = _decode_status(body)
    except UNREADABLE:
        return None
    return status if status.message else None


def _make(status: ApiStatus, code: int, retry_after_s: float | None) -> ApiError:
    kind = _BY_CODE.get(code, ApiError)
    if kind is ConflictError and status.reason == "AlreadyExists":
        kind = AlreadyExistsError
    if retry_after_s is None and status.details and status.details.retry_after_seconds:
        retry_after_s = status.details.retry_after_seconds
    return kind(status.message, code=code, reason=status.reason, retry_after_s=retry_after_s)


def _describe(code: int, body: bytes) -> str:
    try:
        phrase = f"{code} {http.HTTPStatus(code).phrase}"
    except ValueError:
        phrase = str(code)
    text = " ".join(body[: 4 * _LONGEST_QUOTE].decode(errors="replace").split())
    return f"{phrase}: {text[:_LONGEST_QUOTE]}" if text else phrase
