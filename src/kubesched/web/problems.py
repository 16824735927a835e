"""Errors of the page: one line, as JSON for its scripts and as a small page for readers."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from kubesched.server.answers import HTML, ServerAnswer, harmless
from kubesched.server.request import ServerRequest
from kubesched.web.report import Problem

PREFIX: Final = "/ui/"
JSON: Final = "application/json"
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>{code} · kubesched</title>
  <link rel="stylesheet" href="{prefix}style.css">
</head>
<body class="problem">
  <main>
    <h1>{message}</h1>
    <p class="muted">HTTP {code}</p>{link}
  </main>
</body>
</html>
"""
_LINK: Final = f'\n    <p><a href="{PREFIX}">To the page of the cluster</a></p>'


def problem(message: str, code: int) -> ServerAnswer:
    """Return an error response of one line."""
    return ServerAnswer(msgspec.json.encode(Problem(" ".join(message.split()))), code, JSON)


def for_reader(request: ServerRequest, answer: ServerAnswer) -> ServerAnswer:
    """Return an error as a page, if a browser asked for one to show."""
    if answer.code < 400 or answer.content_type != JSON:
        return answer
    if "text/html" not in request.header("accept").lower():
        return answer
    message = msgspec.json.decode(answer.body, type=Problem).error
    text = _PAGE.format(
        code=answer.code,
        message=harmless(message[:1].upper() + message[1:]),
        prefix=PREFIX,
        # Without the token, the page cannot be opened either.
        link="" if answer.code == 401 else _LINK,
    )
    return replace(answer, body=text.encode(), content_type=HTML)
