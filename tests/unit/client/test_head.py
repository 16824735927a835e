"""Headers of a response, parsed on demand."""

from __future__ import annotations

from kubesched.client.head import Head

RESPONSE = b"HTTP/1.1 200 OK\r\nRetry-After: 3\r\nX-Twice: a\r\nX-Twice: b\r\n\r\nbody"


def test_names_are_case_insensitive_and_the_first_value_counts() -> None:
    head = Head([RESPONSE])

    assert head.get("retry-after") == "3"
    assert head.get("X-TWICE") == "a"
    assert head.get("Missing") is None


def test_a_head_may_arrive_in_pieces() -> None:
    assert Head([RESPONSE[:25], RESPONSE[25:40], RESPONSE[40:]]).get("Retry-After") == "3"


def test_headers_of_an_informational_response_do_not_count() -> None:
    continued = b"HTTP/1.1 100 Continue\r\nRetry-After: 9\r\n\r\n"

    assert Head([continued + RESPONSE]).get("Retry-After") == "3"


def test_a_malformed_response_has_no_headers() -> None:
    assert Head([b"no HTTP"]).get("A") is None
