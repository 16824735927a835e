"""Versions of objects, and changes between them.

A ``Version`` is immutable: its object is never modified in place, only replaced by a new version
that shares unchanged parts. Its JSON is encoded once, when it is stored; every response, list and
watch event is composed of those bytes.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

JsonObject = dict[str, Any]

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"

encode: Final = msgspec.json.Encoder().encode


class Version(NamedTuple):
    """One state of one object."""

    #: "namespace/name", or "name" if there is no namespace
    key: str
    #: without kind and apiVersion, which are the collection's
    obj: JsonObject
    revision: int
    #: ``obj`` as JSON
    body: bytes


class VersionChange:
    """A change of an object from one version to another."""

    __slots__ = ("_departed", "_line", "current", "kind", "previous", "revision")

    def __init__(self, kind: str, current: Version, previous: Version | None) -> None:
        #: ADDED, MODIFIED or DELETED
        self.kind = kind
        #: the new state; of a deleted object the last one, with the revision of the deletion
        self.current = current
        self.previous = previous
        self.revision = current.revision
        self._departed: Version | None = None
        self._line: tuple[str, bytes, bytes] | None = None

    def state(self, kind: str) -> Version:
        """Return the state that a watcher sees for this kind of change.

        An object that no longer matches a watcher's selector is shown in its last matching state.
        """
        if kind != DELETED or self.kind == DELETED or self.previous is None:
            return self.current
        if self._departed is None:
            obj = dict(self.previous.obj)
            obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.revision)}
            self._departed = Version(self.current.key, obj, self.revision, encode(obj))
        return self._departed

    def line(self, kind: str, opening: bytes) -> bytes:
        """Return the line of a watch; ``opening`` is the JSON with kind and apiVersion.

        The last line is cached: watchers of the same kind receive the same bytes.
        """
        known = self._line
        if known is not None and known[0] == kind and known[1] is opening:
            return known[2]
        line = watch_line(kind, opening, self.state(kind).body)
        self._line = kind, opening, line
        return line

    def forget_line(self) -> None:
        """Drop the bytes once all watchers have them: the history does not need them."""
        self._line = None


def opening_of(kind: str, api_version: str) -> bytes:
    """Return the first bytes of an object's JSON, up to its first field."""
    return f'{{"kind":"{kind}","apiVersion":"{api_version}",'.encode()


def whole(opening: bytes, body: bytes) -> bytes:
    """Return an object's JSON with kind and apiVersion."""
    return opening + body[1:]


def watch_line(kind: str, opening: bytes, body: bytes) -> bytes:
    """Return one event of a watch."""
    return b'{"type":"%b","object":%b%b}\n' % (kind.encode(), opening, body[1:])
