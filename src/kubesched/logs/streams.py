"""Output of log lines: one stream, or information to stdout, optionally buffered."""

from __future__ import annotations

import logging
from typing import Final, TextIO

from kubesched.logs.options import TEXT, LoggingOptions

_LARGEST_BUFFER: Final = 2 << 30


class LineHandler(logging.Handler):
    """Writes each record in one call, so that processes can share a stream."""

    def __init__(
        self, options: LoggingOptions, *, info_stream: TextIO, error_stream: TextIO
    ) -> None:
        super().__init__()
        self._error = error_stream
        self._info = info_stream if options.split_stream else error_stream
        # In text a warning goes with errors, in JSON with information.
        self._error_level = logging.WARNING if options.format == TEXT else logging.ERROR
        self._room = min(options.info_buffer_bytes, _LARGEST_BUFFER) if options.split_stream else 0
        self._waiting: list[str] = []
        self._waiting_bytes = 0

    @property
    def is_buffered(self) -> bool:
        """Whether lines may wait for ``flush``."""
        return self._room > 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            text = self.format(record) + "\n"
            if record.levelno >= self._error_level:
                _write(self._error, text)
            elif self._room:
                self._hold(text)
            else:
                _write(self._info, text)
        except Exception:  # noqa: BLE001 (a failed write must not stop the program)
            self.handleError(record)

    def flush(self) -> None:
        """Write buffered lines."""
        self.acquire()
        try:
            if self._waiting:
                text = "".join(self._waiting)
                self._waiting.clear()
                self._waiting_bytes = 0
                _write(self._info, text)
        finally:
            self.release()

    def _hold(self, text: str) -> None:
        size = len(text.encode(errors="replace"))
        if self._waiting_bytes + size > self._room:
            self.flush()
        if size > self._room:
            _write(self._info, text)
            return
        self._waiting.append(text)
        self._waiting_bytes += size


def _write(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
