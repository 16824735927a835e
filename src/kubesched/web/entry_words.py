"""What an entry of a recording was, in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kubesched.recording.entries import (
    Answered,
    AnyEntry,
    Asking,
    Assumed,
    CheckpointEnd,
    ClaimDecided,
    ClaimDropped,
    Configured,
    Decided,
    Forgotten,
    Gone,
    GroupDecided,
    Moved,
    Nominated,
    Pending,
    Put,
    Raised,
    Removed,
    Returned,
    Unnominated,
    VolumeAssumed,
    VolumeRestored,
)

#: Returns namespace/name of a pod or claim by its uid.
NameOf = Callable[[str], str]


def _decided(entry: Decided, _: NameOf) -> str:
    pod = _path(entry.namespace, entry.name)
    if entry.node:
        return f"pod {pod} was given node {entry.node}"
    nominated = f", but may get {entry.nominated} after preemption" if entry.nominated else ""
    return f"pod {pod} was given no node{nominated}"


def _group_decided(entry: GroupDecided, _: NameOf) -> str:
    placed = sum(bool(each.node) for each in entry.members)
    group = _path(entry.namespace, entry.name)
    return f"{placed} of {len(entry.members)} pods of group {group} were given nodes"


def _moved(entry: Moved, name_of: NameOf) -> str:
    # Several are members of one group.
    several = len(entry.uids) > 1
    who = f"{len(entry.uids)} pods of a group" if several else f"pod {name_of(entry.uids[0])}"
    gate = f" by {entry.plugin}" if entry.plugin else ""
    return f"{who} moved to {entry.queue}{gate}: {entry.event}"


def _removed(entry: Removed, name_of: NameOf) -> str:
    return _path(entry.namespace, entry.name) if entry.name else name_of(entry.uid)


def _dropped(entry: ClaimDropped, name_of: NameOf) -> str:
    done = "was written" if entry.written else "was given up"
    return f"the allocation of claim {name_of(entry.uid)} {done}"


def _full_name(obj: Any) -> str:  # noqa: ANN401 (of any kind)
    return _path(obj.metadata.namespace, obj.metadata.name)


def _path(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


#: Kind of entry → how to describe one of it.
WORDS: Final[dict[type[AnyEntry], Callable[[Any, NameOf], str]]] = {
    Put: lambda each, _: f"{each.kind} {_full_name(each.object)} was added or changed",
    Removed: lambda each, name_of: f"{each.kind} {_removed(each, name_of)} was removed",
    Pending: lambda each, _: f"pending pod {_full_name(each.pod)} was added or changed",
    Gone: lambda each, name_of: f"pod {name_of(each.uid)} is no longer pending",
    Configured: lambda *_: "the configuration was replaced",
    Decided: _decided,
    GroupDecided: _group_decided,
    Asking: lambda each, name_of: f"extenders were called about pod {name_of(each.uid)}",
    Answered: lambda each, _: f"extenders answered{each.error and f': {each.error}'}",
    Raised: lambda each, name_of: f"the attempt at pod {name_of(each.uid)} failed: {each.error}",
    Assumed: lambda each, name_of: f"pod {name_of(each.uid)} was assumed on {each.node}",
    Forgotten: lambda each, name_of: f"the assumption of pod {name_of(each.uid)} was undone",
    Returned: lambda each, name_of: f"pod {name_of(each.uid)} was not bound: {each.message}",
    Moved: _moved,
    Nominated: lambda each, name_of: f"pod {name_of(each.uid)} was nominated to {each.node}",
    Unnominated: lambda each, name_of: f"the nomination of pod {name_of(each.uid)} was cleared",
    VolumeAssumed: lambda each, _: f"{each.kind} {_full_name(each.object)} was assumed",
    VolumeRestored: lambda each, _: (
        f"the assumption of {each.kind} {_path(each.namespace, each.name)} was undone"
    ),
    ClaimDecided: lambda each, name_of: f"devices were allocated to claim {name_of(each.uid)}",
    ClaimDropped: _dropped,
    CheckpointEnd: lambda *_: "a file of the recording began",
}


def words_of(entry: AnyEntry | None, name_of: NameOf) -> str:
    """Describe an entry; "" where a file of the recording begins."""
    return "" if entry is None else WORDS[type(entry)](entry, name_of)
