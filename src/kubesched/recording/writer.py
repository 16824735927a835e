"""Writes a recording in its own thread, so that the scheduling loop does not block.

    loop: append ──> deque ──> thread: redact ──> encode ──> compress ──> file, flushed each second

If the disk is full, or so slow that memory would fill up, recording ends with one log line;
scheduling goes on.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from kubesched.recording import files
from kubesched.recording.entries import Entry, Header
from kubesched.recording.files import RecordingFile

_log = logging.getLogger(__name__)

FLUSH_PERIOD_S: Final = 1.0
#: Entries encoded at once; other threads get the GIL in between.
_BATCH: Final = 128
#: After this many entries the thread is woken early.
_WAKE_AFTER: Final = 2048
#: With more queued entries the disk is too slow; entries keep deleted objects alive.
_MOST_WAITING: Final = 1_000_000
#: A file is full a bit before its limit: queued entries still go into it.
_MARGIN: Final = 0.1
_LEAST_MARGIN_BYTES: Final = 128 << 10
_CLOSE_TIMEOUT_S: Final = 30.0


class NewFile(Struct, frozen=True):
    """Ends a file and starts the next."""

    header: Header
    #: the checkpoint, including its end
    checkpoint: Sequence[Entry]


class Redactor(Protocol):
    """Removes names."""

    def header(self, header: Header) -> Header:
        """Return a redacted header."""

    def entry(self, entry: Entry) -> Entry:
        """Return a redacted entry."""


class Writer:
    """Queues entries from the loop, and writes them in a thread."""

    def __init__(
        self, path: Path, *, max_bytes: int, files: int, redactor: Redactor | None = None
    ) -> None:
        self._path = path
        self._files = files
        limit_bytes = max_bytes // files
        self._full_bytes = limit_bytes - max(int(limit_bytes * _MARGIN), _LEAST_MARGIN_BYTES)
        self._redactor = redactor
        self._waiting: deque[Entry | NewFile] = deque()
        self._wake = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None
        #: used only by the thread
        self._file: RecordingFile | None = None
        #: number of files started by the loop, and by the thread
        self._begun = self._opened = 0
        #: bytes in files that were closed
        self._closed_bytes = 0
        #: whether the file has its size, and the next is not started yet
        self.full = False
        #: why writing has stopped, "" while it has not
        self.failure = ""

    @property
    def bytes_written(self) -> int:
        """Bytes written so far, in all files."""
        file = self._file
        return self._closed_bytes + (0 if file is None else file.size)

    # --- in the loop ------------------------------------------------------------------------

    def start(self) -> None:
        """Start writing; raises ConfigError if the path cannot be written."""
        files.check_target(self._path)
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()

    def append(self, entry: Entry) -> None:
        """Queue an entry."""
        if self.failure:
            return
        waiting = self._waiting
        waiting.append(entry)
        if not len(waiting) % _WAKE_AFTER:
            self._wake.set()
            if len(waiting) > _MOST_WAITING:
                self._fail("the disk is too slow for what happens")

    def begin_file(self, new: NewFile) -> None:
        """Continue in another file."""
        self._begun += 1
        self.full = False
        if not self.failure:
            self._waiting.append(new)
            self._wake.set()

    def close(self) -> None:
        """Write the remaining entries and stop."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._closing = True
            self._wake.set()
            thread.join(_CLOSE_TIMEOUT_S)
            if thread.is_alive():
                _log.error("the end of the recording %s could not be written in time", self._path)

    def _fail(self, why: str) -> None:
        if not self.failure:
            self.failure = why
            _log.error("Recording to %s has ended, scheduling goes on: %s", self._path, why)
        self.full = False
        self._waiting.clear()

    # --- in the thread ----------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not (self._closing or self.failure):
                self._wake.wait(FLUSH_PERIOD_S)
                self._wake.clear()
                self._write_waiting()
            self._write_waiting()
            if self._file is not None and not self.failure:
                self._file.close()
        except OSError as failed:
            self._fail((failed.strerror or str(failed)).lower())
        except Exception as bug:  # noqa: BLE001 (scheduling goes on; memory must not fill up)
            self._fail(f"{type(bug).__name__}: {bug}")
        finally:
            if self._file is not None:
                self._file.abandon()

    def _write_waiting(self) -> None:
        batch: list[Entry] = []
        while self._waiting and not self.failure:
            item = self._waiting.popleft()
            if isinstance(item, NewFile):
                self._write(batch)
                batch = []
                self._next_file(item)
            else:
                batch.append(item)
                if len(batch) == _BATCH:
                    self._write(batch)
                    batch = []
        self._write(batch)
        if self._file is not None and not self.failure:
            self._file.flush()

    def _next_file(self, new: NewFile) -> None:
        if self._file is not None:
            self._file.close()
            self._closed_bytes += self._file.size
            self._file = None
        files.drop_oldest(self._path, self._files)
        header = new.header if self._redactor is None else self._redactor.header(new.header)
        file = self._file = RecordingFile(self._path, header)
        self._opened += 1
        for first in range(0, len(new.checkpoint), _BATCH):
            self._write(new.checkpoint[first : first + _BATCH])
        file.flush()
        if self.failure:
            return  # useless without its checkpoint; older files stay
        files.make_room(self._path, self._files)
        file.publish()
        if file.size >= self._full_bytes:
            self._fail(
                f"the state of the cluster alone takes {file.size} of the {self._full_bytes} bytes "
                "that a file may have; raise --record-max-size"
            )

    def _write(self, batch: Sequence[Entry]) -> None:
        file = self._file
        if not batch or file is None or self.failure:
            return
        file.write(batch if self._redactor is None else list(map(self._redactor.entry, batch)))
        if file.size >= self._full_bytes and self._begun == self._opened:
            self.full = True
