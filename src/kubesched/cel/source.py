"""The text of an expression, and errors that point into it.

    ERROR: <input>:1:5: undeclared reference to 'foo' (in container '')
     | 1 + foo
     | ....^

Offsets count characters (code points). Several errors are shown in the order of their places.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

#: Errors that are not about a place in the text, such as a limit that is exceeded.
NO_PLACE: Final = -1

_MAX_ERRORS: Final = 100
_MAX_LINE_BYTES: Final = 16384


class CelSource:
    """The text, and the errors found in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._line_starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
        self._errors: list[tuple[int, int, str]] = []
        self._count = 0

    def report(self, offset: int, message: str) -> None:
        """Record an error; beyond a hundred, only their number is kept."""
        self._count += 1
        if self._count <= _MAX_ERRORS:
            line, column = self._position(offset)
            self._errors.append((line, column, message))

    @property
    def has_errors(self) -> bool:
        """Whether any error was recorded."""
        return self._count > 0

    def display(self) -> str:
        """Return all errors as upstream prints them."""
        ordered = sorted(self._errors, key=lambda error: error[:2])
        shown = [self._shown(*error) for error in ordered]
        if self._count > _MAX_ERRORS:
            shown.append(f"{self._count - _MAX_ERRORS} more errors were truncated")
        return "\n".join(shown)

    def _position(self, offset: int) -> tuple[int, int]:
        if offset == NO_PLACE:
            return -1, -1
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1]

    def _shown(self, line: int, column: int, message: str) -> str:
        head = f"ERROR: <input>:{line}:{column + 1}: {message}"
        if line < 1:
            return head
        snippet = self.text[self._line_starts[line - 1] :].split("\n", 1)[0]
        if len(snippet.encode()) > _MAX_LINE_BYTES:
            return head
        snippet = snippet.replace("\t", " ")
        dots = "".join("." if char.isascii() else "\uff0e" for char in snippet[:column])
        at = snippet[column : column + 1]
        caret = "^" if not at or at.isascii() else "\uff3e"
        return f"{head}\n | {snippet}\n | {dots}{caret}"
