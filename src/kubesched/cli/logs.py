"""Log lines as klog writes them."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

ERRORS_ONLY = -1

_SEVERITY = {
    logging.DEBUG: "I",
    logging.INFO: "I",
    logging.WARNING: "W",
    logging.ERROR: "E",
    logging.CRITICAL: "F",
}


class KlogFormatter(logging.Formatter):
    """``Lmmdd hh:mm:ss.uuuuuu process file:line] message``."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        moment = time.localtime(record.created)
        micros = int(record.created % 1 * 1e6)
        head = (
            f"{_SEVERITY.get(record.levelno, 'I')}{moment.tm_mon:02d}{moment.tm_mday:02d} "
            f"{moment.tm_hour:02d}:{moment.tm_min:02d}:{moment.tm_sec:02d}.{micros:06d} "
            f"{record.process:7d} {Path(record.pathname).name}:{record.lineno}] "
        )
        text = head + record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text


def configure(verbosity: int) -> None:
    """Send log lines to stderr; from verbosity 2 on, what happens to each pod as well."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(KlogFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    if verbosity == ERRORS_ONLY:
        root.setLevel(logging.ERROR)
    else:
        root.setLevel(logging.DEBUG if verbosity >= 2 else logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
