"""Telling whether a decision is the one that was recorded."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from kubesched.recording.messages import same_without_names
from kubesched.recording.redaction import REDACTED
from kubesched.replay.deciding import Outcome

_FIELDS: Final = tuple(each.name for each in structs.fields(Outcome))
#: What counts under another configuration: where a pod goes, and whom it displaces.
_WHERE: Final = ("node", "nominated", "victims")


def differing(recorded: Outcome, now: Outcome, *, redacted: bool = False) -> tuple[str, ...]:
    """Return in which respects two outcomes differ, down to the last letter."""
    if recorded == now:
        return ()
    found = [name for name in _FIELDS if getattr(recorded, name) != getattr(now, name)]
    if redacted and "message" in found and _says_the_same(recorded.message, now.message):
        found.remove("message")
    return tuple(found)


def differing_in_place(recorded: Outcome, now: Outcome) -> tuple[str, ...]:
    """Return in which respects outcomes differ that matter under another configuration."""
    return tuple(
        name for name in _WHERE if (getattr(recorded, name) or ()) != (getattr(now, name) or ())
    )


def _says_the_same(recorded: str, now: str) -> bool:
    return recorded == REDACTED or same_without_names(recorded, now)
