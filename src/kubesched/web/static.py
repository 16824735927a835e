"""The files that the page is made of: a few names, and nothing else of the file system."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

from kubesched.server.answers import Answer

INDEX: Final = "index.html"
_FILES: Final = files("kubesched.web") / "assets"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*\.(html|js|css|svg)")
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


def file(name: str) -> Answer | None:
    """Return a file of the page, None if there is none of that name."""
    if not _NAME.fullmatch(name):
        return None
    try:
        body = (_FILES / name).read_bytes()
    except OSError:
        return None
    return Answer(body, 200, _TYPES[name.rpartition(".")[2]])
