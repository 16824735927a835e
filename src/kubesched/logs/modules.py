"""``--vmodule``: verbosity per file.

The first pattern that matches a file counts. A pattern is matched with the file name without
``.py``, as klog does without ``.go``; one with a dot in it, with the logger's name, i.e. the
module's: ``kubesched.scheduler.*``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from kubesched.logs.levels import verbose
from kubesched.logs.options import ModuleVerbosity


class ModuleFilter(logging.Filter):
    """Passes records by the general verbosity, or by that of their file."""

    def __init__(self, modules: Iterable[ModuleVerbosity]) -> None:
        super().__init__()
        self._patterns = [
            ("." in each.pattern, _compiled(each.pattern), verbose(each.verbosity))
            for each in modules
        ]
        #: (logger, file) → lowest level that is logged
        self._levels: dict[tuple[str, str], int] = {}
        self.general_level = logging.INFO

    @property
    def lowest_level(self) -> int:
        """The lowest level of any file."""
        return min(level for _, _, level in self._patterns)

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether to log a record."""
        return record.levelno >= self.general_level or record.levelno >= self._level_of(record)

    def _level_of(self, record: logging.LogRecord) -> int:
        key = (record.name, record.module)
        level = self._levels.get(key)
        if level is None:
            level = self._levels[key] = self._find(*key)
        return level

    def _find(self, logger: str, module: str) -> int:
        for is_dotted, pattern, level in self._patterns:
            if pattern is not None and pattern.fullmatch(logger if is_dotted else module):
                return level
        return logging.INFO


def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Translate a pattern of Go's filepath.Match; a malformed one matches nothing."""
    parts = []
    rest = pattern
    while rest:
        char, rest = rest[0], rest[1:]
        if char == "*":
            parts.append("[^/]*")
        elif char == "?":
            parts.append("[^/]")
        elif char == "[":
            found = re.match(r"(\^?)((?:\\.|[^\\\]])+)\]", rest)
            if found is None:
                return None
            parts.append(f"[{found[1]}{found[2].replace('[', chr(92) + '[')}]")
            rest = rest[found.end() :]
        elif char == "\\":
            if not rest:
                return None
            parts.append(re.escape(rest[0]))
            rest = rest[1:]
        else:
            parts.append(re.escape(char))
    try:
        return re.compile("".join(parts))
    except re.error:
        return None
