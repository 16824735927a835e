"""Formats records: klog's text, or JSON with the keys of Kubernetes' JSON logs.

A structured record has ``fields`` and ``err`` (set by ``logs.structured``); all others are plain
messages.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

import msgspec

from kubesched.logs import fields as log_fields
from kubesched.logs.levels import verbosity_of

#: Attributes of a structured record.
FIELDS: Final = "klog_fields"
ERR: Final = "klog_err"


class KlogFormatter(logging.Formatter):
    """``Lmmdd hh:mm:ss.uuuuuu process file:line] message``."""

    def __init__(self) -> None:
        super().__init__()
        self._second = -1
        self._shown_second = ""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        second, micros = divmod(int(record.created * 1e6), 1_000_000)
        if second != self._second:
            self._second = second
            self._shown_second = time.strftime("%m%d %H:%M:%S", time.localtime(second))
        head = (
            f"{severity(record.levelno)}{self._shown_second}.{micros:06d} "
            f"{record.process:7d} {record.filename}:{record.lineno}] "
        )
        text = head + _message(record)
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text


class JsonFormatter(logging.Formatter):
    """``{"ts":milliseconds,"caller":"folder/file.py:line","msg":…,"v":…}`` and the values."""

    def __init__(self) -> None:
        super().__init__()
        self._encode = msgspec.json.Encoder(enc_hook=log_fields.json_value).encode

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        path = PurePath(record.pathname)
        shown: dict[str, object] = {
            "ts": record.created * 1000,
            "caller": f"{path.parent.name}/{path.name}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:
            shown["v"] = verbosity_of(record.levelno)
        named: Mapping[str, object] = getattr(record, FIELDS, None) or {}
        shown |= {key: log_fields.json_value(value) for key, value in named.items()}
        err = getattr(record, ERR, None)
        if err is not None:
            shown["err"] = str(err)
        if record.exc_info:
            shown["stacktrace"] = self.formatException(record.exc_info)
        try:
            return self._encode(shown).decode()
        except UnicodeEncodeError:
            # Bytes that are not text, such as those of a file name.
            return json.dumps(shown, default=str, separators=(",", ":"))


def severity(level: int) -> str:
    """Return klog's letter for a level."""
    if level >= logging.CRITICAL:
        return "F"
    if level >= logging.ERROR:
        return "E"
    return "W" if level >= logging.WARNING else "I"


def _message(record: logging.LogRecord) -> str:
    named: Mapping[str, object] | None = getattr(record, FIELDS, None)
    if named is None:
        return record.getMessage()
    err = getattr(record, ERR, None)
    shown = named if err is None else {"err": str(err), **named}
    return log_fields.line(record.getMessage(), shown)
