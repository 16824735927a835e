"""Options of the flag group logs."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

TEXT: Final = "text"
JSON: Final = "json"


class ModuleVerbosity(Struct, frozen=True):
    """The verbosity of files that match a pattern: one item of ``--vmodule``."""

    pattern: str
    verbosity: int


class LoggingOptions(Struct, frozen=True):
    """Logging options; those of the stream belong to the chosen format."""

    format: str = TEXT
    verbosity: int = 0
    vmodule: tuple[ModuleVerbosity, ...] = ()
    #: how long a line may wait in the buffer
    flush_frequency_s: float = 5.0
    #: whether errors go to stderr and the rest to stdout
    split_stream: bool = False
    #: buffer size of stdout, if the streams are split; 0: every line is written immediately
    info_buffer_bytes: int = 0
