"""Answers as values: a code, a body and what its headers say."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import yaml
from msgspec import Struct

from kubesched.server import accept, cbor
from kubesched.server.accept import CBOR, JSON, YAML
from kubesched.server.request import Request

PLAIN = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
NO_SNIFF = (("x-content-type-options", "nosniff"),)

_HUMAN_AGENTS = ("curl", "Wget", "Mozilla/5.0")
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_NOT_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Answer(Struct, frozen=True):
    """What is sent back."""

    body: bytes = b""
    code: int = 200
    content_type: str = PLAIN
    headers: tuple[tuple[str, str], ...] = ()
    #: what follows the body, sent piece by piece
    pieces: AsyncIterator[bytes] | None = None


def text(body: str, *, code: int = 200, content_type: str = PLAIN) -> Answer:
    """Answer with text."""
    return Answer(body.encode(), code, content_type)


def plain_error(message: str, code: int) -> Answer:
    """Answer with one line, as Go's ``http.Error`` does."""
    return Answer(f"{message}\n".encode(), code, PLAIN, NO_SNIFF)


def not_found() -> Answer:
    """Answer that there is nothing here."""
    return plain_error("404 page not found", 404)


def harmless(message: str) -> str:
    """Return a message in which nothing looks like HTML."""
    return message.translate(_NOT_HTML)


def unauthorized(request: Request) -> Answer:
    """Answer that we do not know who this is."""
    return _status(request, 401, reason="Unauthorized", message="Unauthorized")


def forbidden(request: Request, message: str) -> Answer:
    """Answer that this client may not."""
    return _status(
        request, 403, reason="Forbidden", message=message, details=True, headers=NO_SNIFF
    )


def not_acceptable(request: Request, offers: tuple[str, ...]) -> Answer:
    """Answer that there is no form of this that the client would take."""
    message = f"only the following media types are accepted: {', '.join(offers)}"
    forms = (JSON, YAML, CBOR) if CBOR in offers else (JSON, YAML)
    return _status(request, 406, reason="NotAcceptable", message=message, forms=forms)


def _status(
    request: Request,
    code: int,
    *,
    reason: str,
    message: str,
    details: bool = False,
    headers: tuple[tuple[str, str], ...] = (),
    forms: tuple[str, ...] = (JSON, YAML),
) -> Answer:
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
    if chosen is None:  # the failure matters more than its form
        return Answer(encode_json(status, pretty=True), code, JSON, headers)
    body = encode(status, chosen.media_type, pretty=wants_pretty(request))
    return Answer(body, code, chosen.media_type, headers)


def wants_pretty(request: Request) -> bool:
    """Whether a person reads this: they said so, or their tool is one for people."""
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
    """Encode as Go does: characters of HTML are escaped, and one line ends with a newline."""
    encoded = msgspec.json.encode(value)
    for char in (b"&", b"<", b">"):
        encoded = encoded.replace(char, b"\\u%04x" % ord(char))
    return msgspec.json.format(encoded, indent=2) if pretty else encoded + b"\n"
