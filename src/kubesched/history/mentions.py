"""Finds the entries of a recording that mention a pod, without decoding all of them.

A pod's first entry has its name; later ones may have nothing but its uid. So one pass over the
lines is enough, and a line is decoded only if it contains the name.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Final

import msgspec
from msgspec import Struct, field

from kubesched.errors import ObjectError
from kubesched.recording.reader import Recording

Progress = Callable[[int], None]
#: Entries between two calls of a `Progress`.
TELL_EVERY: Final = 2000
_MOST_SIMILAR: Final = 3
_SIMILARITY: Final = 0.7


class _PodName(Struct, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Object(Struct, frozen=True, gc=False):
    metadata: _PodName = _PodName()


class _Names(Struct, frozen=True, gc=False):
    """The names in an entry."""

    form: str = field(name="is")
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""
    object: _Object | None = None
    pod: _Object | None = None
    members: tuple[_PodName, ...] = ()

    def pods(self) -> list[_PodName]:
        """Return the pods that the entry names."""
        if self.form == "put":
            return [self.object.metadata] if self.kind == "Pod" and self.object else []
        if self.form == "decided":
            return [_PodName(self.name, self.namespace, self.uid)]
        return [self.pod.metadata] if self.pod else list(self.members)


_names: Final = msgspec.json.Decoder(_Names).decode


class Mentions(Struct):
    """Where a recording mentions the pods of one name."""

    #: in the order of their first mention
    uids: list[str]
    #: numbers of the first and last entry
    first: int = 0
    last: int = 0


def find(
    recording: Recording, namespace: str, name: str, *, progress: Progress = lambda _: None
) -> Mentions:
    """Return where a pod is mentioned; raises ObjectError that names similar pods if nowhere."""
    wanted = b'"name":' + msgspec.json.encode(name)
    quoted: list[bytes] = []
    found = Mentions([])
    for number, line in recording.lines():
        if number % TELL_EVERY == 0:
            progress(number)
        if wanted in line:
            for uid in _uids(line, namespace, name):
                if uid not in found.uids:
                    found.first = found.first if found.uids else number
                    found.uids.append(uid)
                    quoted.append(msgspec.json.encode(uid))
        for each in quoted:
            if each in line:
                found.last = number
                break
    if not found.uids:
        raise ObjectError(_not_found(recording, namespace, name))
    return found


def _uids(line: bytes, namespace: str, name: str) -> list[str]:
    return [
        each.uid
        for each in _names(line).pods()
        if each.name == name and each.namespace == namespace and each.uid
    ]


def _not_found(recording: Recording, namespace: str, name: str) -> str:
    similar = _Similar(namespace, name)
    for _, line in recording.lines():
        # Every pod that waits for a node, or has one, is in such a line.
        if line.startswith((b'{"is":"pending"', b'{"is":"put"')):
            for each in _names(line).pods():
                similar.offer(each.namespace, each.name)
    hint = f"; it has {', '.join(similar.best())}" if similar.best() else ""
    if recording.header.redacted:
        hint += "; it is redacted, and pods have pseudonyms"
    path = recording.parts[-1].path
    return f"pod {namespace}/{name} is not in the recording {path}{hint}"


class _Similar:
    """The pods whose names are the closest to a name, of any number."""

    def __init__(self, namespace: str, name: str) -> None:
        self._namespace = namespace
        self._name = name
        self._matcher = SequenceMatcher(b=name, autojunk=False)
        #: similarity and name, the least similar first
        self._best: list[tuple[float, str]] = []

    def offer(self, namespace: str, name: str) -> None:
        """Look at a pod, which may have been seen before."""
        similarity = 1.0 if name == self._name else self._similarity(namespace, name)
        found = similarity, f"{namespace}/{name}"
        if similarity < _SIMILARITY or found in self._best:
            return
        heapq.heappush(self._best, found)
        if len(self._best) > _MOST_SIMILAR:
            heapq.heappop(self._best)

    def _similarity(self, namespace: str, name: str) -> float:
        if namespace != self._namespace:
            return 0.0
        matcher = self._matcher
        matcher.set_seq1(name)
        # Cheap upper bounds first: most names are nothing like it.
        if matcher.real_quick_ratio() < _SIMILARITY or matcher.quick_ratio() < _SIMILARITY:
            return 0.0
        return matcher.ratio()

    def best(self) -> list[str]:
        """Return the most similar ones, best first."""
        return [name for _, name in sorted(self._best, reverse=True)]
