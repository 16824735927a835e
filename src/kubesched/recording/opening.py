"""Opens a recording for writing, as set by flags."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kubesched.clock import Clock
from kubesched.recording import files
from kubesched.recording.journal import Journal
from kubesched.recording.options import RecordingOptions
from kubesched.recording.redaction import NameRedactor
from kubesched.recording.writer import Writer


def open_journal(
    options: RecordingOptions, clock: Clock, *, plugin_files: Sequence[str] = ()
) -> Journal:
    """Return a journal; raises ConfigError if its path cannot hold a recording."""
    # A symlink stays: the files are beside its target.
    path = Path(os.path.realpath(options.path))
    files.check_target(path)
    writer = Writer(
        path,
        max_bytes=options.max_bytes,
        files=options.files,
        redactor=NameRedactor() if options.redact else None,
    )
    return Journal(writer, clock=clock, plugin_files=plugin_files)
