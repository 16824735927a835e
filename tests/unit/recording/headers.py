"""The head of a recording."""

from __future__ import annotations

from kubesched.recording.entries import FORMAT, Header

HEADER = Header(
    kubesched_recording=FORMAT,
    run="r",
    first_entry=0,
    start=0.0,
    version="0",
    kubernetes_version="v1",
    config={},
)
