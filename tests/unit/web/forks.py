"""The copies of this process that are running."""

from __future__ import annotations

import os
from pathlib import Path


def forks() -> list[int]:
    """Return the ids of this process' forks; children with a program of their own are not meant."""
    own = Path("/proc/self/cmdline").read_bytes()
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(each) for each in listed if _command_line(each) in (own, b"")]


def _command_line(pid: str) -> bytes | None:
    """Return it; b"" for one that is dead and not reaped, None for one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None
