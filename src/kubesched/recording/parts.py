"""One file of a recording: reads and checks its lines.

A file consists of runs of lines, each followed by a seal with their checksum. A run is valid if its
seal matches. Lines after the last seal are valid if the file simply ends there, as after a kill.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from kubesched.api.decoding import decoder_of
from kubesched.errors import ObjectError
from kubesched.kinds import watched
from kubesched.recording.entries import (
    FORMAT,
    READABLE_FORMATS,
    Answered,
    AnyEntry,
    Asking,
    Assumed,
    CheckpointEnd,
    ClaimDecided,
    ClaimDropped,
    Configured,
    Decided,
    Entry,
    Forgotten,
    Gone,
    GroupDecided,
    Header,
    Moved,
    Nominated,
    Pending,
    Put,
    Raised,
    Removed,
    Returned,
    Seal,
    Unnominated,
    VolumeAssumed,
    VolumeRestored,
)
from kubesched.recording.files import FIRST_WORDS, GZIP_MAGIC

_CHUNK_BYTES: Final = 1 << 18
_SEAL: Final = b'{"is":"seal"'
_END: Final = b'{"is":"end"'
_CHECKPOINT_END: Final = b'{"is":"checkpoint"'


class _Put(Entry, frozen=True, tag="put"):
    kind: str
    object: Raw


class _VolumeAssumed(Entry, frozen=True, tag="volumeAssumed"):
    kind: str
    object: Raw


class _Glance(Struct, gc=False):
    """The type of a line, without decoding all of it."""

    form: str = msgspec.field(name="is")
    at: int = 0


class _Version(Struct, gc=False, rename="camel"):
    kubesched_recording: int


_decode: Final = msgspec.json.Decoder(
    _Put
    | _VolumeAssumed
    | Removed
    | Pending
    | Gone
    | Configured
    | Asking
    | Answered
    | Decided
    | GroupDecided
    | ClaimDecided
    | ClaimDropped
    | Raised
    | Assumed
    | Forgotten
    | Returned
    | Moved
    | Nominated
    | Unnominated
    | VolumeRestored
    | CheckpointEnd
).decode
_glance: Final = msgspec.json.Decoder(_Glance).decode
_seal: Final = msgspec.json.Decoder(Seal).decode
_header: Final = msgspec.json.Decoder(Header).decode
_version: Final = msgspec.json.Decoder(_Version).decode
_objects: Final = {kind.name: decoder_of(kind.type).decode for kind in watched()}


class Ending(Enum):
    """How a file ends."""

    CLOSED = "closed"
    CUT_OFF = "cut off"
    DAMAGED = "damaged"


class PartSummary(Struct):
    """The contents of a file."""

    entries: int = 0
    #: whether the checkpoint is complete; without it nothing can be replayed
    has_state: bool = False
    ending: Ending = Ending.CUT_OFF
    #: the damage, if any
    damage: str = ""
    #: milliseconds since the recording began
    first_at: int = 0
    last_at: int = 0
    decided_at: array[int] = msgspec.field(default_factory=lambda: array("q"))


class Part:
    """One file."""

    def __init__(self, path: Path) -> None:
        """Read its header; raises ObjectError if it is not a recording."""
        self.path = path
        #: how the last reading ended, and why
        self._ended, self._why = Ending.CUT_OFF, ""
        self.header = self._read_header()
        #: number of its first entry
        self.first = 0

    def _read_header(self) -> Header:
        try:
            first = next(self._lines(), b"")
        except OSError as failed:
            raise ObjectError(f"{self.path}: {(failed.strerror or '').lower()}") from None
        try:
            version = _version(first).kubesched_recording
        except msgspec.MsgspecError:
            raise ObjectError(f"{self.path} is no recording of kubesched") from None
        if version not in READABLE_FORMATS:
            raise ObjectError(
                f"{self.path} is a recording in format {version}, and this version of kubesched "
                f"reads formats up to {FORMAT}: use the version that wrote it"
            )
        try:
            return _header(first)
        except msgspec.MsgspecError as wrong:
            raise ObjectError(f"{self.path}: its header cannot be read: {wrong}") from None

    # --- lines ------------------------------------------------------------------------------

    def _chunks(self) -> Iterator[bytes]:
        """Decompress; `_ended` tells afterwards how that ended."""
        self._ended, self._why = Ending.CUT_OFF, ""
        unzip = zlib.decompressobj(31)
        with self.path.open("rb") as packed:
            if packed.read(len(GZIP_MAGIC)) != GZIP_MAGIC:
                return
            packed.seek(0)
            while chunk := packed.read(_CHUNK_BYTES):
                before = unzip.copy()
                try:
                    yield unzip.decompress(chunk)
                except zlib.error as wrong:
                    yield from _as_far_as_possible(before, chunk)
                    self._damaged(str(wrong).partition(": ")[2] or str(wrong))
                    return
                if unzip.eof:
                    self._ended = Ending.CLOSED
                    return

    def _lines(self) -> Iterator[bytes]:
        """Yield complete lines."""
        rest = b""
        for data in self._chunks():
            *lines, rest = (rest + data).split(b"\n")
            yield from lines

    def _checked_lines(self) -> Iterator[bytes]:
        """Yield lines with a valid checksum, without header, seals and end."""
        run: list[bytes] = []
        crc = 0
        for line in self._lines():
            if line.startswith(_SEAL):
                if not self._agrees(line, crc):
                    self._damaged("a checksum is wrong")
                    return
                yield from run
                run, crc = [], 0
            else:
                crc = zlib.crc32(b"\n", zlib.crc32(line, crc))
                if not line.startswith((_END, FIRST_WORDS)):
                    run.append(line)
        if self._ended is Ending.CUT_OFF:
            yield from run

    def _agrees(self, line: bytes, crc: int) -> bool:
        try:
            return _seal(line).crc == crc
        except msgspec.MsgspecError:
            return False

    def _damaged(self, why: str) -> None:
        self._ended, self._why = Ending.DAMAGED, why

    # --- entries ----------------------------------------------------------------------------

    @cached_property
    def summary(self) -> PartSummary:
        """The contents, without decoding all of it."""
        found = PartSummary()
        for line in self._checked_lines():
            try:
                seen = _glance(line)
            except msgspec.MsgspecError:
                self._damaged("a line cannot be read")
                break
            if seen.form == "checkpoint":
                found.has_state = True
                found.first_at = seen.at
            elif found.has_state:
                found.entries += 1
                if seen.form == "decided":
                    found.decided_at.append(seen.at)
            found.last_at = max(found.last_at, seen.at)
        found.ending, found.damage = self._ended, self._why
        return found

    def lines(self, *, checkpoint: bool = True) -> Iterator[bytes]:
        """Yield the lines of the checkpoint, if requested, and those after it, to be decoded.

        Raises ObjectError where the file is damaged.
        """
        wanted = checkpoint
        for line in self._checked_lines():
            if wanted:
                yield line
            elif ends_checkpoint(line):
                wanted = True
        if self._ended is Ending.DAMAGED:
            raise ObjectError(f"{self.path} is damaged: {self._why}")

    def decode(self, line: bytes) -> AnyEntry:
        """Return the entry of a line; raises ObjectError."""
        try:
            entry = _decode(line)
            if isinstance(entry, _Put):
                return Put(at=entry.at, kind=entry.kind, object=_object(entry))
            if isinstance(entry, _VolumeAssumed):
                return VolumeAssumed(at=entry.at, kind=entry.kind, object=_object(entry))
        except (msgspec.MsgspecError, KeyError) as wrong:
            raise ObjectError(f"{self.path}: an entry cannot be read: {wrong}") from None
        return entry


def ends_checkpoint(line: bytes) -> bool:
    """Tell whether a line is the last one of a checkpoint."""
    return line.startswith(_CHECKPOINT_END)


def _as_far_as_possible(unzip: zlib._Decompress, chunk: bytes) -> Iterator[bytes]:
    """Decompress up to the damage."""
    for place in range(len(chunk)):
        try:
            yield unzip.decompress(chunk[place : place + 1])
        except zlib.error:
            return


def _object(entry: _Put | _VolumeAssumed) -> Any:  # noqa: ANN401 (of the kind's type)
    return _objects[entry.kind](entry.object)
