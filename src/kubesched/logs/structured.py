"""A logger of messages with named values."""

from __future__ import annotations

import logging
from typing import Final

from kubesched.logs.formats import ERR, FIELDS
from kubesched.logs.levels import verbose

#: V(0) to V(10): the range that Kubernetes uses
_LEVELS: Final = tuple(verbose(each) for each in range(11))
#: our own frames between the caller and the standard library
_OURS: Final = 3


class StructuredLogger:
    """Logs ``"message" key="value"``; a message is constant, what varies is a value."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def enabled(self, verbosity: int) -> bool:
        """Tell whether V(verbosity) is logged: check before building values in a loop."""
        return self._logger.isEnabledFor(_LEVELS[verbosity])

    def v(self, verbosity: int, message: str, /, **fields: object) -> None:
        """Log at a verbosity of 0 to 10."""
        level = _LEVELS[verbosity]
        if self._logger.isEnabledFor(level):
            self._write(level, message, fields)

    def info(self, message: str, /, **fields: object) -> None:
        """Log information."""
        self._write(logging.INFO, message, fields)

    def warning(self, message: str, /, **fields: object) -> None:
        """Log a warning."""
        self._write(logging.WARNING, message, fields)

    def error(self, message: str, err: object = None, /, **fields: object) -> None:
        """Log a failure with its error."""
        self._write(logging.ERROR, message, fields, err)

    def _write(
        self, level: int, message: str, fields: dict[str, object], err: object = None
    ) -> None:
        # Without arguments the standard library does not interpret per cent signs.
        self._logger.log(level, message, extra={FIELDS: fields, ERR: err}, stacklevel=_OURS)


def get_logger(name: str) -> StructuredLogger:
    """Return the structured logger of a module; it shares levels with the standard one."""
    return StructuredLogger(name)
