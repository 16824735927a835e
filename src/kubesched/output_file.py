"""Output files given by flags: replaced atomically.

-                        standard output
device, pipe, socket     written to as it comes
link                     stays, what it points to is written
file, or nothing yet     a new file takes its place once it is complete, with its permissions
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from kubesched.errors import OutputError

STDOUT: Final = "-"


@contextmanager
def writing(path: Path | str) -> Iterator[BinaryIO]:
    """Open an output for writing; raises OutputError."""
    if str(path) == STDOUT:
        with _one_line("to standard output"), _without_retry():
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    with _one_line(str(path)):
        target = Path(os.path.realpath(path))
        before = _status(target)
        if before is not None and not stat.S_ISREG(before.st_mode):
            with target.open("wb") as out:  # raises if it is a folder
                yield out
        else:
            with _replacing(target, before) as out:
                yield out


def make_folder(path: Path) -> None:
    """Create a folder for outputs, if missing; raises OutputError."""
    with _one_line(f"to {path}"):
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(0, "Permission denied")


@contextmanager
def _without_retry() -> Iterator[None]:
    """Discard what could not be written: its error is reported once, not at exit again."""
    try:
        yield
    except OSError:
        discard_stdout()
        raise


def discard_stdout() -> None:
    """Discard what is buffered for standard output, and all that is written to it later."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


@contextmanager
def _replacing(target: Path, before: os.stat_result | None) -> Iterator[BinaryIO]:
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(0, "Permission denied")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("xb") as out:
            if before is not None:
                os.fchmod(out.fileno(), stat.S_IMODE(before.st_mode))
                with contextlib.suppress(PermissionError):  # only root may change the owner
                    os.fchown(out.fileno(), before.st_uid, before.st_gid)
            yield out
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as failed:
        raise OutputError(what, failed.strerror or str(failed)) from None
