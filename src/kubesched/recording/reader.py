"""Reads recordings, complete or truncated, across all remaining files.

FILE.3, FILE.2, FILE.1, FILE ──> parts, oldest first ──> entries, numbered from 0
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from kubesched.errors import ObjectError
from kubesched.recording.entries import AnyEntry, Decided, Header
from kubesched.recording.files import numbered
from kubesched.recording.parts import Ending, Part, ends_checkpoint

DecisionEntry = Decided
_NUMBER: Final = re.compile(r"(?P<base>.+)\.(?P<number>[1-9][0-9]*)")


class Recording:
    """A recording and its contents."""

    def __init__(self, parts: list[Part], notes: list[str]) -> None:
        #: oldest first; each continues the previous one
        self.parts = parts
        #: notes about missing parts, one line each
        self.notes = notes
        first = 0
        for part in parts:
            part.first = first
            first += part.summary.entries
        #: number of entries; they are numbered from 0
        self.entries = first

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a file, and older ones of the same process beside it.

        Raises ObjectError if it is not a recording, or damaged before its first entry.
        """
        newest = Part(Path(path))
        if not newest.summary.has_state:
            why = newest.summary.damage or "it was cut off"
            raise ObjectError(f"{path} has nothing to replay: {why} before its first entry")
        parts, notes = [newest], []
        for older in _older(Path(path), newest.header):
            problem = _gap(older, parts[0])
            if problem:
                notes.append(f"{older.path} and what is older is left out: {problem}")
                break
            parts.insert(0, older)
        return cls(parts, notes)

    @property
    def header(self) -> Header:
        """The header of the oldest part."""
        return self.parts[0].header

    def header_at(self, entry: int) -> Header:
        """Return the header of the part that an entry is in."""
        return next(part for part in reversed(self.parts) if part.first <= entry).header

    @property
    def start(self) -> datetime:
        """The time of its start."""
        return self.time_of(self.parts[0].summary.first_at)

    @property
    def end(self) -> datetime:
        """The time of its last entry."""
        return self.time_of(self.parts[-1].summary.last_at)

    @property
    def cut_off(self) -> bool:
        """Whether the process has not closed it: it was killed, or still writes."""
        return self.parts[-1].summary.ending is Ending.CUT_OFF

    @property
    def damage(self) -> str:
        """The damage after the last entry, "" if none."""
        return self.parts[-1].summary.damage

    def time_of(self, at_ms: int) -> datetime:
        """Return the time of an entry."""
        return datetime.fromtimestamp(self.header.start + at_ms / 1000, tz=UTC)

    def state(self, *, before: int = 0) -> tuple[int, Iterator[AnyEntry]]:
        """Return the last entry before `before` with a checkpoint, and the entries from there.

        The entries of the checkpoint come first, up to `CheckpointEnd`; then the numbered ones.
        """
        index = max(n for n, part in enumerate(self.parts) if n == 0 or part.first <= before)
        return self.parts[index].first, self._from(index)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Return all lines with their numbers, to be searched without decoding all of them.

        Lines of the checkpoint come first, with the number 0.
        """
        return ((number, line) for number, _, line in self._lines(0))

    def _from(self, index: int, *, checkpoint: bool = True) -> Iterator[AnyEntry]:
        return (part.decode(line) for _, part, line in self._lines(index, checkpoint=checkpoint))

    def _lines(self, index: int, *, checkpoint: bool = True) -> Iterator[tuple[int, Part, bytes]]:
        number = self.parts[index].first
        for part in self.parts[index:]:
            counts = not checkpoint
            if counts and number == self.entries:
                return
            for line in part.lines(checkpoint=checkpoint):
                yield number, part, line
                number += counts
                counts = counts or ends_checkpoint(line)
                if counts and number == self.entries:
                    return  # later entries are new, or damaged
            checkpoint = False

    def decisions(self) -> Iterator[DecisionEntry]:
        """Return all decisions."""
        for entry in self._from(0, checkpoint=False):
            if isinstance(entry, Decided):
                yield entry


def _older(path: Path, header: Header) -> Iterator[Part]:
    match = _NUMBER.fullmatch(path.name)
    base, number = (path.with_name(match["base"]), int(match["number"])) if match else (path, 0)
    while True:
        number += 1
        try:
            part = Part(numbered(base, number))
        except ObjectError:
            return
        if part.header.run != header.run:
            return
        yield part


def _gap(older: Part, newer: Part) -> str:
    """Return why a part does not continue the previous one, "" if it does."""
    summary = older.summary
    if summary.ending is not Ending.CLOSED:
        return summary.damage or f"it is {summary.ending.value}"
    if older.header.first_entry + summary.entries != newer.header.first_entry:
        return "entries are missing"
    return ""
