"""Responses as values: a code, a body and headers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import yaml
from msgspec import Struct

from kubesched.server import accept, cbor
from kubesched.server.accept import CBOR, JSON, YAML
from kubesched.server.request import ServerRequest

PLAIN = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
NO_SNIFF = (("x-content-type-options", "nosniff"),)

_HUMAN_AGENTS = ("curl", "Wget", "Mozilla/5.0")
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_NOT_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class ServerAnswer(Struct, frozen=True):
    """A response."""

    body: bytes = b""
    code: int = 200
    content_type: str = PLAIN
    headers: tuple[tuple[str, str], ...] = ()
    #: streamed after the body
    pieces: AsyncIterator[bytes] | None = None


def text(body: str, *, code: int = 200, content_type: str = PLAIN) -> ServerAnswer:
    """Return a text response."""
    return ServerAnswer(body.encode(), code, content_type)


def plain_error(message: str, code: int) -> ServerAnswer:
    """Return a one-line error, as Go's ``http.Error`` does."""
    return ServerAnswer(f"{message}\n".encode(), code, PLAIN, NO_SNIFF)


def not_found() -> ServerAnswer:
    """Return a 404."""
    return plain_error("404 page not found", 404)


def harmless(message: str) -> str:
    """Escape HTML in a message."""
    return message.translate(_NOT_HTML)


def unauthorized(request: ServerRequest) -> ServerAnswer:
    """Return a 401."""
    return _status(request, 401, reason="Unauthorized", message="Unauthorized")


def forbidden(request: ServerRequest, message: str) -> ServerAnswer:
    """Return a 403."""
    return _status(
        request, 403, reason="Forbidden", message=message, details=True, headers=NO_SNIFF
    )


def not_acceptable(request: ServerRequest, offers: tuple[str, ...]) -> ServerAnswer:
    """Return a 406."""
    message = f"only the following media types are accepted: {', '.join(offers)}"
    forms = (JSON, YAML, CBOR) if CBOR in offers else (JSON, YAML)
    return _status(request, 406, reason="NotAcceptable", message=message, forms=forms)


def _status(
    request: ServerRequest,
    code: int,
    *,
    reason: str,
    message: str,
    details: bool = False,
    headers: tuple[tuple[str, str], ...] = (),
    forms: tuple[str, ...] = (JSON, YAML),
) -> ServerAnswer:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **({"details": {}} if details else {}),
        "code": code,
    }
    chosen = accept.negotiate(request.header("accept"), forms)
    if chosen is None:  # the error matters more than its format
        return ServerAnswer(encode_json(status, pretty=True), code, JSON, headers)
    body = encode(status, chosen.media_type, pretty=wants_pretty(request))
    return ServerAnswer(body, code, chosen.media_type, headers)


def wants_pretty(request: ServerRequest) -> bool:
    """Whether to indent: requested, or the client is a tool for interactive use."""
    asked = request.query.get("pretty", [""])[0]
    if asked:
        return asked in _TRUE
    return request.header("user-agent").startswith(_HUMAN_AGENTS)


def encode(value: object, media_type: str, *, pretty: bool = False) -> bytes:
    """Encode plain values as JSON, YAML or CBOR."""
    if media_type == CBOR:
        return cbor.encode(value)
    if media_type == YAML:
        document: str = yaml.safe_dump(value, allow_unicode=True)
        return document.encode()
    return encode_json(value, pretty=pretty)


def encode_json(value: object, *, pretty: bool = False) -> bytes:
    """Encode as Go does: HTML characters are escaped, and there is a final newline."""
    encoded = msgspec.json.encode(value)
    for char in (b"&", b"<", b">"):
        encoded = encoded.replace(char, b"\\u%04x" % ord(char))
    return msgspec.json.format(encoded, indent=2) if pretty else encoded + b"\n"
