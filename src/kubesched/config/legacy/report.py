"""What a conversion says about itself, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

_WIDTH: Final = 2


class Report(msgspec.Struct):
    """Collects what became of each part of the old configuration."""

    #: what was read, such as ``Policy``
    source: str = ""
    #: what the next entries are about: "" or a profile of several
    subject: str = ""
    converted: list[str] = msgspec.field(default_factory=list)
    default: list[str] = msgspec.field(default_factory=list)
    lost: list[str] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)

    def became(self, old: str, new: str) -> None:
        """Say what a part became."""
        self.converted.append(f"{self.subject}{old} -> {new}")

    def is_default(self, what: str) -> None:
        """Say that a part is what happens anyway, and was left out."""
        self.default.append(f"{self.subject}{what}")

    def has_no_counterpart(self, what: str, instead: str) -> None:
        """Say that a part could not be kept, and what to do instead."""
        self.lost.append(f"{self.subject}{what}: {instead}")

    def note(self, text: str) -> None:
        """Say something that the operator should look at."""
        self.notes.append(f"{self.subject}{text}")

    def text(self) -> str:
        """Write the report for people."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.source} -> kubescheduler.config.k8s.io/v1"
        for title, entries in (
            ("Converted", self.converted),
            ("Default anyway, left out", self.default),
            ("No counterpart", self.lost),
            ("Please check", self.notes),
        ):
            if entries:
                yield f"{title}:"
                yield from (f"{' ' * _WIDTH}{entry}" for entry in dict.fromkeys(entries))
