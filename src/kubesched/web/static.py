"""The page's files: a fixed set of names, no access to the file system."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

from kubesched.server.answers import ServerAnswer

INDEX: Final = "index.html"
_FILES: Final = files("kubesched.web") / "assets"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*\.(html|js|css|svg)")
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


def file(name: str) -> ServerAnswer | None:
    """Return a file of the page, None if there is no such file."""
    if not _NAME.fullmatch(name):
        return None
    try:
        body = (_FILES / name).read_bytes()
    except OSError:
        return None
    return ServerAnswer(body, 200, _TYPES[name.rpartition(".")[2]])
