"""Options of a recording, as set by flags."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

#: Minimum size of a file: less would hold little more than its checkpoint.
LEAST_BYTES_A_FILE: Final = 1 << 20
MOST_FILES: Final = 1000


class RecordingOptions(Struct, frozen=True, kw_only=True):
    """Where a recording is written, and its limits."""

    #: "": nothing is recorded
    path: str = ""
    #: of all files together
    max_bytes: int = 1 << 30
    files: int = 4
    #: whether names are replaced by pseudonyms
    redact: bool = False

    def errors(self) -> list[str]:
        """Return validation errors."""
        if not 1 <= self.files <= MOST_FILES:
            return [f"--record-files {self.files} must be between 1 and {MOST_FILES}, inclusive"]
        if self.max_bytes < self.files * LEAST_BYTES_A_FILE:
            each = f"each of the {self.files} files of --record-files"
            return [f"--record-max-size {self.max_bytes} must be at least 1Mi for {each}"]
        return []
