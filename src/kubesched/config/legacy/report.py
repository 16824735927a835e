"""The report of a conversion: what each part of the old configuration was converted to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

_WIDTH: Final = 2


class ConversionReport(msgspec.Struct):
    """Collects the lines of the report."""

    #: the kind of the old configuration, such as ``Policy``
    source: str = ""
    #: the profile that the next entries belong to; "" if there is one
    subject: str = ""
    converted: list[str] = msgspec.field(default_factory=list)
    default: list[str] = msgspec.field(default_factory=list)
    lost: list[str] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)

    def became(self, old: str, new: str) -> None:
        """Report what a part was converted to."""
        self.converted.append(f"{self.subject}{old} -> {new}")

    def is_default(self, what: str) -> None:
        """Report that a part is the default today, and was dropped."""
        self.default.append(f"{self.subject}{what}")

    def has_no_counterpart(self, what: str, instead: str) -> None:
        """Report that a part has no counterpart, and what to do instead."""
        self.lost.append(f"{self.subject}{what}: {instead}")

    def note(self, text: str) -> None:
        """Report something that the operator should check."""
        self.notes.append(f"{self.subject}{text}")

    def text(self) -> str:
        """Format the report for users."""
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
