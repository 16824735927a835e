"""Rows by the claims, and the disks without a claim, that their pods use.

Incrementally maintained, inside transactions too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from kubesched.cluster.pod_volumes import Disk, DiskKey, PodVolumes
from kubesched.errors import require

K = TypeVar("K")

#: key → row → number of uses by the row's pods, never 0
Uses = dict[K, dict[int, int]]
ClaimKey = tuple[str, str]


class VolumeUses:
    """Uses of claims and disks by pods on rows."""

    def __init__(self) -> None:
        #: row → number of its pods that have volumes which may be attached
        self._pods: dict[int, int] = {}
        #: of claims that pods name
        self._claims: Uses[ClaimKey] = {}
        #: of ephemeral claims
        self._ephemeral: Uses[ClaimKey] = {}
        #: of named claims, by name alone, in all namespaces
        self._names: Uses[str] = {}
        #: (disk, whether for reading only) → row → uses
        self._disks: Uses[tuple[DiskKey, bool]] = {}

    def add(self, row: int, volumes: PodVolumes) -> None:
        """Count the volumes of a pod on a row."""
        self._count(row, volumes, 1)

    def remove(self, row: int, volumes: PodVolumes) -> None:
        """Stop counting the volumes of a pod on a row."""
        self._count(row, volumes, -1)

    def _count(self, row: int, volumes: PodVolumes, amount: int) -> None:
        if volumes.attachable:
            _add_to(self._pods, row, amount)
        for mount in volumes.mounts:
            claim = mount.key
            if mount.ephemeral:
                _add(self._ephemeral, claim, row, amount)
            else:
                _add(self._claims, claim, row, amount)
                _add(self._names, mount.name, row, amount)
        for disk in volumes.disks:
            for key in disk.keys:
                _add(self._disks, (key, disk.read_only), row, amount)

    @property
    def rows(self) -> Collection[int]:
        """The rows whose pods have claims, or other volumes that may be attached; a live view."""
        return self._pods.keys()

    def is_claim_in_use(self, key: ClaimKey) -> bool:
        """Return whether some placed pod names a claim."""
        return key in self._claims

    def rows_using(self, key: ClaimKey) -> set[int]:
        """Return the rows whose pods use a claim, named or ephemeral."""
        return {*self._claims.get(key, ()), *self._ephemeral.get(key, ())}

    def uses_of_name(self, claim_name: str) -> Mapping[int, int]:
        """Return row → how often its pods name a claim of that name, in any namespace."""
        return self._names.get(claim_name, {})

    def rows_in_conflict(self, disks: Iterable[Disk]) -> set[int]:
        """Return the rows whose pods use a disk that conflicts with one of `disks`."""
        rows: set[int] = set()
        for disk in disks:
            for key in disk.keys:
                rows.update(self._disks.get((key, False), ()))
                if not disk.read_only:
                    rows.update(self._disks.get((key, True), ()))
        return rows

    def validate(self, pods: Iterable[tuple[int, PodVolumes]]) -> None:
        """Recount everything from the pods on rows."""
        counted = VolumeUses()
        for row, volumes in pods:
            counted.add(row, volumes)
        require(self._claims == counted._claims, "rows that use claims")
        require(self._ephemeral == counted._ephemeral, "rows that use ephemeral claims")
        require(self._names == counted._names, "rows that use claims of a name")
        require(self._disks == counted._disks, "rows that use disks")
        require(self._pods == counted._pods, "pods with volumes by row")


def _add(uses: Uses[K], key: K, row: int, amount: int) -> None:
    rows = uses.setdefault(key, {})
    _add_to(rows, row, amount)
    if not rows:
        del uses[key]


def _add_to(rows: dict[int, int], row: int, amount: int) -> None:
    rows[row] = rows.get(row, 0) + amount
    if not rows[row]:
        del rows[row]
