"""Lists objects that the scheduler cannot read, for operators.

An object may fail to decode (informers list those), or it decodes and has an invalid value, such as
a quantity of "plenty" (listed here). It stays listed until a version can be read, or until it is
deleted.

Meanwhile the last readable version stays in force. Dropping the object would be worse: without its
CSINode a node has no volume limits, without its pods it looks empty. An object without any readable
version does not exist for the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubesched.client.meta import ApiObject
from kubesched.client.store import Key, key_of

#: kind → namespace and name → why it cannot be read
Unreadable = Mapping[str, Mapping[Key, str]]

#: Number of objects that are listed; of the others only the number is given.
NAMED: Final = 50
#: Longer errors are truncated: objects are untrusted, and one must not fill the page.
_LONGEST_ERROR: Final = 300


class UnusableObjects:
    """Objects that were decoded and have an invalid value, each with the reason."""

    def __init__(self) -> None:
        self._errors: dict[str, dict[Key, str]] = {}

    def note(self, obj: ApiObject, error: Exception) -> None:
        """List an object: its version cannot be used."""
        kind, key = type(obj).__name__, key_of(obj)
        # The list names the object already.
        said = str(error).removeprefix(f"{kind.lower()} {_name(key)}: ")
        self._errors.setdefault(kind, {})[key] = said

    def forget(self, obj: ApiObject) -> None:
        """Remove an object from the list: its version can be used, or it was deleted."""
        if self._errors:  # nearly always empty
            self._errors.get(type(obj).__name__, {}).pop(key_of(obj), None)

    def of(self, kind: str) -> Mapping[Key, str]:
        """Return the listed objects of one kind."""
        return self._errors.get(kind, {})


def _name(key: Key) -> str:
    return "/".join(filter(None, key))


def lines(unreadable: Unreadable) -> Iterator[str]:
    """Format unreadable objects, one per line, and the number of further ones."""
    every = [
        (kind, key, error) for kind, errors in unreadable.items() for key, error in errors.items()
    ]
    for kind, key, error in sorted(every)[:NAMED]:
        name = _name(key) or "(without a readable name)"
        text = " ".join(error.split())
        yield f"{kind} {name}: {text[:_LONGEST_ERROR]}{'…' * (len(text) > _LONGEST_ERROR)}"
    if len(every) > NAMED:
        yield f"and {len(every) - NAMED} more"
