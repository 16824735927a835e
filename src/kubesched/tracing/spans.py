"""Spans as the loop records them: tuples, which the exporter's thread encodes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

#: Values of attributes.
AttributeValue = str | int
Attributes = tuple[tuple[str, AttributeValue], ...]

INTERNAL: Final = 1
CLIENT: Final = 3


class SpanRecord(NamedTuple):
    """A span that has ended."""

    name: str
    trace_id: bytes
    span_id: bytes
    #: b"" for the root of a trace
    parent_id: bytes
    start_ns: int
    end_ns: int
    attributes: Attributes = ()
    #: "" unless it failed
    error: str = ""
    kind: int = INTERNAL


class SpanIds:
    """Random ids; the generator has nothing to do with the one that breaks ties."""

    def __init__(self) -> None:
        bits: Callable[[int], int] = random.SystemRandom().getrandbits
        self._bits = random.Random(bits(128)).getrandbits  # noqa: S311 (ids, not secrets)

    def trace(self) -> bytes:
        """Return the id of a new trace: never zero."""
        return (self._bits(128) or 1).to_bytes(16, "big")

    def span(self) -> bytes:
        """Return the id of a new span: never zero."""
        return (self._bits(64) or 1).to_bytes(8, "big")
