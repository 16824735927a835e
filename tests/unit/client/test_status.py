"""Refusals of the server become exceptions that callers can tell apart."""

from __future__ import annotations

import email.utils
import time

import pytest

from kubesched.client.status import error_from_answer, retry_after
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


def _error(code: int, body: bytes, retry_after: str | None = None) -> ApiError:
    return error_from_answer(code, body, what="GET /x", header=lambda _: retry_after)


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", ApiError),
        (401, "Unauthorized", UnauthorizedError),
        (403, "Forbidden", ForbiddenError),
        (404, "NotFound", NotFoundError),
        (409, "Conflict", ConflictError),
        (409, "AlreadyExists", AlreadyExistsError),
        (410, "Expired", GoneError),
        (422, "Invalid", InvalidError),
        (429, "TooManyRequests", TooManyRequestsError),
        (500, "InternalError", ApiError),
    ],
)
def test_a_status_keeps_its_words(code: int, reason: str, kind: type[ApiError]) -> None:
    body = b'{"kind":"Status","message":"the very words","reason":"%b","code":%d}'

    error = _error(code, body % (reason.encode(), code))

    assert type(error) is kind
    assert (str(error), error.code, error.reason) == ("the very words", code, reason)


@pytest.mark.parametrize(
    ("code", "body", "message"),
    [
        (404, b"404 page not found\n", "GET /x: 404 Not Found: 404 page not found"),
        (502, b"", "GET /x: 502 Bad Gateway"),
        (599, b"\xff\x00", "GET /x: 599: \ufffd\x00"),
        (403, b'{"kind":"Status"}', 'GET /x: 403 Forbidden: {"kind":"Status"}'),
    ],
)
def test_other_bodies_are_quoted(code: int, body: bytes, message: str) -> None:
    assert str(_error(code, body)) == message


def test_a_long_body_does_not_flood_the_log() -> None:
    assert len(str(_error(500, b"<p>very long</p>\n" * 10_000))) < 400


def test_the_wait_comes_from_the_header_or_the_details() -> None:
    body = b'{"message":"later","code":429,"details":{"retryAfterSeconds":7}}'

    assert _error(429, body).retry_after_s == 7
    assert _error(429, body, "3").retry_after_s == 3
    assert _error(429, b"later").retry_after_s is None


def test_the_wait_can_be_a_date() -> None:
    header = email.utils.formatdate(time.time() + 30, usegmt=True)

    assert retry_after(header) == pytest.approx(30, abs=2)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0),
        ("soon", None),
        ("-5", 0),
        ("inf", 0),
        ("nan", 0),
        ("Wed, 21 Oct 99999999999999999999 07:28:00 GMT", None),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0),
    ],
)
def test_odd_waits(header: str | None, seconds: float | None) -> None:
    assert retry_after(header) == seconds
