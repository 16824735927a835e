"""A configured log whose streams can be read."""

from __future__ import annotations

import io
import logging

from kubesched import logs
from kubesched.logs import LoggingOptions


class Streams:
    """Both streams of a log."""

    def __init__(self, options: LoggingOptions) -> None:
        self.info, self.error = io.StringIO(), io.StringIO()
        logs.configure(options, info_stream=self.info, error_stream=self.error)

    @property
    def out(self) -> list[str]:
        return _messages(self.info)

    @property
    def err(self) -> list[str]:
        return _messages(self.error)


def _messages(stream: io.StringIO) -> list[str]:
    return [line.partition("] ")[2] for line in stream.getvalue().splitlines()]


def say_everything(name: str = "kubesched.x") -> None:
    log = logging.getLogger(name)
    for verbosity in range(12):
        log.log(logs.verbose(verbosity), "v%d", verbosity)
    log.warning("warning")
    log.error("error")
