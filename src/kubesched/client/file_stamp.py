"""Detects that a file was changed or replaced."""

from __future__ import annotations

from pathlib import Path


def stamp(path: Path) -> object:
    """Return a value that changes when a file, or a link to it, is changed or replaced."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
