"""Snapshot files: gzip, one JSON object per line, each as the API server would return it.

    {"kind": "Snapshot", "apiVersion": "kubesched/v1", "source": …, "takenAt": …, "notes": […]}
    {"apiVersion": "v1", "kind": "Node", "metadata": …}
    …

Only fields that scheduling reads are kept: no environment, no commands, no secrets' contents.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kubesched import output_file
from kubesched.api.decoding import decoder_of
from kubesched.api.meta import ApiStruct, ObjectMeta
from kubesched.client.meta import UNREADABLE
from kubesched.errors import ObjectError
from kubesched.kinds import KINDS, kind_of
from kubesched.snapshot.contents import Snapshot

API_VERSION = "kubesched/v1"
HEADER_KIND = "Snapshot"
#: Holds a copy of the object as applied, with all that a snapshot leaves out.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_LEVEL = 6


class _Header(ApiStruct, frozen=True):
    api_version: str
    kind: str
    source: str = ""
    taken_at: str = ""
    notes: tuple[str, ...] = ()


class _ManifestIdentity(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""


_encode = msgspec.json.Encoder().encode
_identify = msgspec.json.Decoder(_ManifestIdentity).decode


def write(snapshot: Snapshot, path: Path, *, taken_at: str) -> None:
    """Write a snapshot; an existing file stays until the new one is complete.

    Raises OutputError.
    """
    header = _Header(
        api_version=API_VERSION,
        kind=HEADER_KIND,
        source=snapshot.source,
        taken_at=taken_at,
        notes=tuple(snapshot.notes),
    )
    with (
        output_file.writing(path) as file,
        gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=file) as out,
    ):
        out.write(_encode(header) + b"\n")
        for line in _lines(snapshot):
            out.write(line)


def _lines(snapshot: Snapshot) -> Iterator[bytes]:
    for kind in KINDS.values():
        identity = _encode({"apiVersion": kind.path.api_version, "kind": kind.called})
        for obj in snapshot.objects[kind.name]:
            members = _encode(_without_last_applied(obj))
            yield identity[:-1] + (b"," + members[1:] if members != b"{}" else b"}") + b"\n"


def _without_last_applied(obj: object) -> object:
    meta = getattr(obj, "metadata", None)
    if not isinstance(meta, ObjectMeta) or LAST_APPLIED not in (meta.annotations or {}):
        return obj
    kept = {key: text for key, text in (meta.annotations or {}).items() if key != LAST_APPLIED}
    return replace(obj, metadata=replace(meta, annotations=kept or None))  # type: ignore[type-var]  # a struct


def read(path: Path, *, strict: bool = False) -> Snapshot:
    """Read a snapshot; raises ObjectError if it is not one.

    Undecodable lines are noted; with `strict`, they are an error.
    """
    try:
        with gzip.open(path, "rb") as lines:
            header = _read_header(path, lines.readline())
            snapshot = Snapshot(source=str(path), notes=list(header.notes))
            for number, line in enumerate(lines, start=2):
                _read_line(snapshot, number, line, strict=strict)
    except (EOFError, zlib.error):
        raise ObjectError(
            f"{path}: the file is cut off or damaged: take the snapshot again"
        ) from None
    except gzip.BadGzipFile:
        raise ObjectError(f"{path}: not a snapshot; for manifests use --manifests") from None
    except OSError as failed:
        raise ObjectError(f"cannot read {path}: {failed.strerror}") from None
    return snapshot


def _read_header(path: Path, line: bytes) -> _Header:
    try:
        header = msgspec.json.decode(line, type=_Header)
    except UNREADABLE:
        header = _Header(api_version="", kind="")
    if header.kind != HEADER_KIND or not header.api_version.startswith("kubesched/"):
        raise ObjectError(f"{path}: not a snapshot: its first line does not say so")
    if header.api_version != API_VERSION:
        raise ObjectError(
            f"{path}: written by another version of kubesched ({header.api_version}), "
            f"this one reads {API_VERSION}"
        )
    return header


def _read_line(snapshot: Snapshot, number: int, line: bytes, *, strict: bool) -> None:
    try:
        identity = _identify(line)
        kind = kind_of(identity.api_version, identity.kind)
        if kind is not None:
            snapshot.add(kind.name, decoder_of(kind.type).decode(line))
    except UNREADABLE as unreadable:
        if strict:
            raise ObjectError(f"{snapshot.source}, line {number}: {unreadable}") from None
        snapshot.notes.append(f"line {number} left out, cannot be read: {unreadable}")
