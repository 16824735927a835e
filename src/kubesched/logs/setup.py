"""Configures the logging of the process; the verbosity may change at any time.

There is a single handler, on the root logger. Without ``--vmodule``, the root logger's level
decides alone, so that suppressed records are never created.
"""

from __future__ import annotations

import atexit
import logging
import sys
import threading
from typing import TextIO

from kubesched.logs.formats import JsonFormatter, KlogFormatter
from kubesched.logs.levels import ERRORS_ONLY, verbose
from kubesched.logs.modules import ModuleFilter
from kubesched.logs.options import JSON, LoggingOptions
from kubesched.logs.streams import LineHandler

#: Loggers that are too verbose below warnings, e.g. about slow callbacks.
_QUIET = ("asyncio",)


class _Logging:
    """The current configuration."""

    def __init__(self, options: LoggingOptions, handler: LineHandler) -> None:
        self.handler = handler
        self.verbosity = options.verbosity
        self.modules = ModuleFilter(options.vmodule) if options.vmodule else None
        if self.modules is not None:
            handler.addFilter(self.modules)
        self._ended = threading.Event()
        if handler.is_buffered:
            atexit.register(handler.flush)
            threading.Thread(
                target=self._flush_again_and_again,
                args=(options.flush_frequency_s,),
                name="log-flush",
                daemon=True,
            ).start()

    def set_verbosity(self, verbosity: int) -> None:
        self.verbosity = verbosity
        level = verbose(verbosity)
        if self.modules is not None:
            self.modules.general_level = level
            level = min(level, self.modules.lowest_level)
        logging.getLogger().setLevel(level)

    def end(self) -> None:
        self._ended.set()
        self.handler.flush()
        atexit.unregister(self.handler.flush)

    def _flush_again_and_again(self, every_s: float) -> None:
        while not self._ended.wait(every_s):
            self.handler.flush()


_current: _Logging | None = None


def configure(
    options: LoggingOptions,
    *,
    info_stream: TextIO | None = None,
    error_stream: TextIO | None = None,
) -> None:
    """Configure logging; replaces the previous configuration."""
    global _current  # noqa: PLW0603 (a process has one log)
    shutdown()
    handler = LineHandler(
        options, info_stream=info_stream or sys.stdout, error_stream=error_stream or sys.stderr
    )
    handler.setFormatter(JsonFormatter() if options.format == JSON else KlogFormatter())
    logging.getLogger().handlers = [handler]
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    _current = _Logging(options, handler)
    _current.set_verbosity(options.verbosity)


def set_verbosity(verbosity: int) -> None:
    """Log V(0) to V(verbosity) from now on: for PUT /debug/flags/v."""
    if _current is not None:
        _current.set_verbosity(max(verbosity, ERRORS_ONLY))


def verbosity() -> int:
    """Return the current verbosity."""
    return 0 if _current is None else _current.verbosity


def flush() -> None:
    """Write buffered lines."""
    if _current is not None:
        _current.handler.flush()


def shutdown() -> None:
    """Write buffered lines, and stop the periodic flush."""
    global _current  # noqa: PLW0603 (a process has one log)
    if _current is not None:
        _current.end()
        _current = None
