"""The difference between two versions of a pod, as a minimal JSON Patch (RFC 6902).

Our structs hold only the fields that scheduling reads. A patch with a whole new list or map would
drop all others, such as ``tolerationSeconds``: so single elements of lists and single keys of maps
are added and removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from kubesched.api.core import Pod
from kubesched.api.resource import ResourceClaim
from kubesched.explain.report import Operation

#: Path of a JSON Patch, as a list of keys and indices.
Path = tuple[str | int, ...]


def plain(value: object) -> Any:  # noqa: ANN401 (any JSON value)
    """Convert structs to plain JSON values."""
    return msgspec.json.decode(msgspec.json.encode(value))


def differences(before: Pod, after: Pod) -> tuple[Operation, ...]:
    """Return the operations that turn the spec of one pod into that of the other."""
    return tuple(
        Operation(op, pointer(("spec", *path)), value)
        for op, path, value in edits(plain(before.spec), plain(after.spec))
    )


def claim_differences(before: ResourceClaim, after: ResourceClaim) -> tuple[Operation, ...]:
    """Return the operations that turn the spec of one claim into that of the other."""
    return tuple(
        Operation(op, pointer(("spec", *path)), value)
        for op, path, value in edits(plain(before.spec), plain(after.spec))
    )


def pointer(path: Sequence[str | int]) -> str:
    """Return a path as a JSON Pointer (RFC 6901)."""
    return "".join(f"/{str(each).replace('~', '~0').replace('/', '~1')}" for each in path)


def edits(old: Any, new: Any, path: Path = ()) -> Iterator[tuple[str, Path, Any]]:  # noqa: ANN401
    """Yield (operation, path, value), in an order in which they can be applied."""
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key in new:
                yield from edits(value, new[key], (*path, key))
            else:
                yield "remove", (*path, key), UNSET
        for key, value in new.items():
            if key not in old:
                yield "add", (*path, key), value
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_edits(old, new, path)
    else:
        yield "replace", path, new


def _list_edits(old: list[Any], new: list[Any], path: Path) -> Iterator[tuple[str, Path, Any]]:
    if len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from edits(before, after, (*path, index))
    elif new[: len(old)] == old:
        for added in new[len(old) :]:
            yield "add", (*path, "-"), added
    else:
        # Remove elements from the end, as later ones move up.
        for index in reversed(_missing(old, new)):
            yield "remove", (*path, index), UNSET


def _missing(old: list[Any], new: list[Any]) -> list[int]:
    """Return the indexes of elements that a shorter list lacks."""
    rest = iter(new)
    wanted = next(rest, None)
    missing = []
    for index, each in enumerate(old):
        if each == wanted:
            wanted = next(rest, None)
        else:
            missing.append(index)
    return missing
