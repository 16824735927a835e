"""Compares a decision with the recorded one."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from kubesched.recording.messages import same_without_names
from kubesched.recording.redaction import REDACTED
from kubesched.replay.deciding import AttemptOutcome

_FIELDS: Final = tuple(each.name for each in structs.fields(AttemptOutcome))
#: The fields that matter under another configuration: the node, and the victims.
_WHERE: Final = ("node", "nominated", "victims")


def differing(
    recorded: AttemptOutcome, now: AttemptOutcome, *, redacted: bool = False
) -> tuple[str, ...]:
    """Return the fields in which two outcomes differ."""
    if recorded == now:
        return ()
    found = [name for name in _FIELDS if getattr(recorded, name) != getattr(now, name)]
    if redacted and "message" in found and _says_the_same(recorded.message, now.message):
        found.remove("message")
    return tuple(found)


def differing_in_place(recorded: AttemptOutcome, now: AttemptOutcome) -> tuple[str, ...]:
    """Return the differing fields that matter under another configuration."""
    return tuple(
        name for name in _WHERE if (getattr(recorded, name) or ()) != (getattr(now, name) or ())
    )


def _says_the_same(recorded: str, now: str) -> bool:
    return recorded == REDACTED or same_without_names(recorded, now)
