"""Files for secrets that must not touch a disk, and need no writable one."""

from __future__ import annotations

import os
from typing import IO


def memory_file() -> IO[bytes]:
    """Return an anonymous file that vanishes when closed; in memory if supported."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("kubesched"), "w+b")
    import tempfile  # noqa: PLC0415 (where memory will not do)

    return tempfile.NamedTemporaryFile(prefix="kubesched-")


def path_of(file: IO[bytes]) -> str:
    """Return a path under which this process can open the file again."""
    return file.name if isinstance(file.name, str) else f"/proc/self/fd/{file.fileno()}"
