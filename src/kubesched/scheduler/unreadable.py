"""Objects that the API server has and the scheduler cannot read, for operators to find.

An object can fail twice: it does not decode (the informer keeps those), or it decodes and says
what makes no sense, such as a quantity of "plenty" (kept here). Either way it stays listed until a
version comes that can be read, or until it is deleted.

Meanwhile the last version that could be read stays in force. To drop the object instead would be
worse: without its CSINode a node has no volume limits, without its pods it looks empty. An object
of which no version could ever be read is not there for the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubesched.client.meta import ApiObject
from kubesched.client.store import Key, key_of

#: kind → namespace and name → why it cannot be read
Unreadable = Mapping[str, Mapping[Key, str]]

#: Objects that are named one by one; of the others only their number is told.
NAMED: Final = 50
#: Longer errors are cut: objects are others' input, and one must not fill the page.
_LONGEST_ERROR: Final = 300


class UnusableObjects:
    """Objects that were decoded and cannot be used, each with the reason."""

    def __init__(self) -> None:
        self._errors: dict[str, dict[Key, str]] = {}

    def note(self, obj: ApiObject, error: Exception) -> None:
        """This version of an object cannot be used."""
        kind, key = type(obj).__name__, key_of(obj)
        # The list says which object it is.
        said = str(error).removeprefix(f"{kind.lower()} {_name(key)}: ")
        self._errors.setdefault(kind, {})[key] = said

    def forget(self, obj: ApiObject) -> None:
        """This version of an object can be used, or the object is gone."""
        if self._errors:  # nearly always there is none
            self._errors.get(type(obj).__name__, {}).pop(key_of(obj), None)

    def of(self, kind: str) -> Mapping[Key, str]:
        """Return those of one kind."""
        return self._errors.get(kind, {})


def _name(key: Key) -> str:
    return "/".join(filter(None, key))


def lines(unreadable: Unreadable) -> Iterator[str]:
    """Name unreadable objects, one a line, and say how many more there are."""
    every = [
        (kind, key, error) for kind, errors in unreadable.items() for key, error in errors.items()
    ]
    for kind, key, error in sorted(every)[:NAMED]:
        name = _name(key) or "(without a readable name)"
        text = " ".join(error.split())
        yield f"{kind} {name}: {text[:_LONGEST_ERROR]}{'…' * (len(text) > _LONGEST_ERROR)}"
    if len(every) > NAMED:
        yield f"and {len(every) - NAMED} more"
