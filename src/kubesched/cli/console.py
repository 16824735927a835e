"""Where commands print their tables."""

from __future__ import annotations

import io
import re
import sys
from typing import Final, TextIO, cast

from rich.console import Console

#: Columns of a console that breaks no lines.
_UNLIMITED: Final = 10_000
_BLANKS_AT_LINE_ENDS: Final = re.compile(r"[ \t]+(?=\n)")


def stdout_console(*, wide: bool = False) -> Console:
    """Return standard output, for a person at a terminal or for a file.

    A wide one breaks no lines, as kubectl's ``-o wide`` does not.
    """
    width = _UNLIMITED if wide else None
    if sys.stdout.isatty():
        return Console(highlight=False, width=width, soft_wrap=wide)
    # A text stream for io is none for typing, which Rich asks for.
    trimmed = cast("TextIO", _Trimmed(sys.stdout))
    return Console(file=trimmed, highlight=False, width=width, soft_wrap=wide)


class _Trimmed(io.TextIOBase):
    """Text without the blanks with which the last column of a table is padded.

    They would only show up in files, diffs and pasted output. Rich writes whole lines.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding, by which Rich chooses the characters of its boxes."""
        return self._out.encoding

    def write(self, text: str, /) -> int:
        """Write the text, trimmed."""
        self._out.write(_BLANKS_AT_LINE_ENDS.sub("", text))
        return len(text)

    def flush(self) -> None:
        """Flush."""
        self._out.flush()
