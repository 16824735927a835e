"""What flags may say about a recording."""

from __future__ import annotations

import pytest

from kubesched.cli.options import make_options
from kubesched.errors import ConfigError
from kubesched.recording.options import RecordingOptions


def test_nothing_is_recorded_unless_asked_for() -> None:
    assert make_options([]).recording == RecordingOptions(
        path="", max_bytes=1 << 30, files=4, redact=False
    )


def test_flags() -> None:
    options = make_options(
        ["--record=run.rec", "--record-max-size=64Mi", "--record-files=8", "--record-redact"]
    )
    assert options.recording == RecordingOptions(
        path="run.rec",
        max_bytes=64 << 20,
        files=8,
        redact=True,
    )


@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ("--record-files=0", "--record-files 0 must be between 1 and 1000, inclusive"),
        ("--record-max-size=3Mi", "must be at least 1Mi for each of the 4 files"),
        ("--record-max-size=-1", "must be at least 1Mi"),
    ],
)
def test_limits(flag: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make_options(["--record=r", flag])
