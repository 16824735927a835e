"""Recording files: gzip, one JSON object per line, with rotation.

    FILE.new  being created: renamed once it can be replayed
    FILE      being written
    FILE.1    the previous file, … up to FILE.N-1

After each flush, a reader sees all entries so far, even if the process is killed. Each file begins
with the whole state, so that it can be replayed alone, and the oldest can be deleted.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from kubesched.errors import ConfigError
from kubesched.recording.entries import End, Entry, Header, Seal

#: Fast; twice the time saves a tenth.
COMPRESSION_LEVEL: Final = 1
_GZIP: Final = 31
GZIP_MAGIC: Final = b"\x1f\x8b"
#: The first bytes of a recording.
FIRST_WORDS: Final = b'{"kubeschedRecording"'
_FIRST_BYTES: Final = 4096
#: Maximum of bytes that are compressed before they are written to disk.
FLUSH_AFTER_BYTES: Final = 1 << 20


class RecordingFile:
    """One file, from header to end."""

    def __init__(self, path: Path, header: Header) -> None:
        """Create it under a temporary name; raises OSError."""
        self._path = path
        self._begun: Path | None = path.with_name(f"{path.name}.new")
        #: left behind by a process that was killed while it created a file
        self._begun.unlink(missing_ok=True)
        self._out: BinaryIO = os.fdopen(
            os.open(self._begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0
        )
        self._zip = zlib.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, _GZIP)
        self._encoder = msgspec.json.Encoder()
        self._crc = 0
        #: bytes compressed and possibly not on disk yet
        self._unflushed = 0
        #: bytes on the disk
        self.size = 0
        self._put(self._encoder.encode(header) + b"\n")

    def publish(self) -> None:
        """Rename it to its final name, with everything so far on disk."""
        self.flush()
        if self._begun is not None:
            self._begun.rename(self._path)
            self._begun = None

    def write(self, entries: Sequence[Entry]) -> None:
        """Add entries."""
        self._put(self._encoder.encode_lines(entries))
        if self._unflushed >= FLUSH_AFTER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Make everything so far readable."""
        if self._unflushed:
            self._seal()
            self._out_all(self._zip.flush(zlib.Z_SYNC_FLUSH))
            self._unflushed = 0

    def close(self) -> None:
        """End the file properly."""
        try:
            self._put(self._encoder.encode_lines([End()]))
            self._seal()
            self._out_all(self._zip.flush(zlib.Z_FINISH))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Leave the file as it is; delete it if it has no final name."""
        self._out.close()
        if self._begun is not None:
            self._begun.unlink(missing_ok=True)

    def _seal(self) -> None:
        seal = self._encoder.encode_lines([Seal(crc=self._crc)])
        self._out_all(self._zip.compress(seal))
        self._crc = 0

    def _put(self, lines: bytes) -> None:
        self._crc = zlib.crc32(lines, self._crc)
        self._unflushed += len(lines)
        self._out_all(self._zip.compress(lines))

    def _out_all(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            written = self._out.write(left)
            self.size += written
            left = left[written:]


def numbered(path: Path, number: int) -> Path:
    """Return the path of the `number`-th older file."""
    return path.with_name(f"{path.name}.{number}") if number else path


def drop_oldest(path: Path, files: int) -> None:
    """Delete the oldest file, if the limit is reached; raises OSError."""
    numbered(path, files - 1).unlink(missing_ok=True)


def make_room(path: Path, files: int) -> None:
    """Rotate: renumber all files after deleting the oldest; raises OSError."""
    for number in range(files - 1, 0, -1):
        older, newer = numbered(path, number), numbered(path, number - 1)
        if newer.exists():
            newer.rename(older)


def check_target(path: Path) -> None:
    """Raise ConfigError if the path holds another file, or cannot be written.

    A recording is several files that are rotated, so it cannot be a device or pipe.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        kind = "a device, pipe or socket"
        raise ConfigError(f"--record {path}: that is {kind}, and a recording needs a file")
    try:
        with path.open("rb") as found:
            start = found.read(_FIRST_BYTES)
    except FileNotFoundError:
        start = b""
    except OSError as failed:
        raise ConfigError(f"--record {path}: {(failed.strerror or '').lower()}") from None
    if start and not _may_be_a_recording(start):
        raise ConfigError(f"--record {path}: there is a file that is no recording; name another")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfigError(f"--record {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"--record {path}: the folder {folder} cannot be written to")


def _may_be_a_recording(start: bytes) -> bool:
    """Tell whether a file, possibly a short one, begins as a recording."""
    try:
        first = zlib.decompressobj(_GZIP).decompress(start, len(FIRST_WORDS))
    except zlib.error:
        return False
    return FIRST_WORDS.startswith(first)
