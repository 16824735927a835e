"""What the flags of the group logs say."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

TEXT: Final = "text"
JSON: Final = "json"


class ModuleVerbosity(Struct, frozen=True):
    """How much the files that a pattern matches log: one item of ``--vmodule``."""

    pattern: str
    verbosity: int


class LoggingOptions(Struct, frozen=True):
    """How to log; the options of the stream are those of the chosen format."""

    format: str = TEXT
    verbosity: int = 0
    vmodule: tuple[ModuleVerbosity, ...] = ()
    #: how long a line may wait in the buffer
    flush_frequency_s: float = 5.0
    #: errors go to stderr and the rest to stdout
    split_stream: bool = False
    #: of stdout, if the streams are split; 0: every line is written at once
    info_buffer_bytes: int = 0
