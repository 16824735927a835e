"""An index of volumes that claims can bind to, incrementally maintained.

    log of volumes ──> class ──> reserved for a claim, by claim
                           └───> free, by mode and access modes: the smallest first ──> their rows

A class may have thousands of free volumes, and one is bound at a time. The volumes for a claim are
then the ends of a few sorted lists, from the claim's size on. In the most frequent case, many
volumes that one host each can reach and a single claim, their rows are cached in the same order,
and choosing one on each row is a single array operation.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from kubesched.api import labels
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.cluster.arrays import Int32Array
from kubesched.cluster.incremental import View
from kubesched.cluster.storage import ClaimKey, Volumes
from kubesched.errors import ObjectError, SelectorError
from kubesched.plugins.volume_matching import (
    AVAILABLE,
    FILESYSTEM,
    NO_VOLUME,
    Candidates,
    CandidateVolume,
    VolumeChoice,
    capacity_nano,
    is_bound_to,
    requested_nano,
    required_nodes,
    suits,
)
from kubesched.plugins.volume_topology import RowPairs, Topologies, TopologyRows

#: Volume mode, attributes class, access modes.
Kind = tuple[str, str, tuple[str, ...]]
#: (Volume, row) pairs that are cached per volume, and per row: where a volume can be reached from
#: many rows, the first few volumes suffice for all rows, and the others need no pairs.
MAX_PAIRS = 4


class _Ordered:
    """Free volumes by size, then by name, so that the choice is reproducible.

    Their rows are cached on first use.
    """

    def __init__(self) -> None:
        self.keys: list[tuple[int, str]] = []
        self.candidates: list[CandidateVolume] = []
        self._pairs: RowPairs | None = None
        self._places: TopologyRows | None = None
        #: the candidates as a tuple that callers may retain; None until requested
        self._shown: tuple[CandidateVolume, ...] | None = None

    def add(self, candidate: CandidateVolume) -> None:
        """Add a volume."""
        key = _place(candidate)
        place = bisect_left(self.keys, key)
        self.keys.insert(place, key)
        self.candidates.insert(place, candidate)
        self._shown = None
        if self._pairs is not None:
            self._pairs.insert(place, candidate.topology)

    def remove(self, candidate: CandidateVolume) -> None:
        """Remove a volume."""
        place = bisect_left(self.keys, _place(candidate))
        del self.keys[place], self.candidates[place]
        self._shown = None
        if self._pairs is not None:
            self._pairs.remove(place)

    def first_of_size(self, size_nano: int) -> int:
        """Return the position of the first volume that is large enough."""
        return bisect_left(self.keys, (size_nano, ""))

    def smallest(
        self, claim: PersistentVolumeClaim, places: TopologyRows, table_size: int
    ) -> VolumeChoice | None:
        """Choose the smallest sufficient volume on each row; None if there are too many pairs."""
        if self._pairs is None or self._places is not places:
            self._places = places
            self._pairs = RowPairs(places, (each.topology for each in self.candidates))
        if self._pairs.count() > MAX_PAIRS * (table_size + len(self.candidates)):
            return None
        if self._shown is None:
            self._shown = tuple(self.candidates)
        numbers: Int32Array = np.full(table_size, NO_VOLUME, dtype=np.int32)
        volumes, rows = self._pairs.pairs(self.first_of_size(requested_nano(claim)))
        # Written back to front, so that of several volumes for a row the first one stays.
        numbers[rows[::-1]] = volumes[::-1]
        return VolumeChoice(claim, self._shown, numbers)


class _ClassVolumes:
    """The volumes of one class."""

    def __init__(self) -> None:
        #: claim → volume → candidate
        self.kept: dict[ClaimKey, dict[str, CandidateVolume]] = {}
        #: available volumes without a claim
        self.free: dict[Kind, _Ordered] = {}

    def add(self, candidate: CandidateVolume) -> None:
        """Add a volume."""
        volume = candidate.volume
        name, reference = volume.metadata.name, volume.spec.claim_ref
        if reference is not None:
            self.kept.setdefault((reference.namespace, reference.name), {})[name] = candidate
        elif _is_free(volume):
            self.free.setdefault(_kind(volume), _Ordered()).add(candidate)

    def remove(self, candidate: CandidateVolume) -> None:
        """Remove a volume, in the version in which it was added."""
        volume = candidate.volume
        name, reference = volume.metadata.name, volume.spec.claim_ref
        if reference is not None:
            key = (reference.namespace, reference.name)
            del self.kept[key][name]
            if not self.kept[key]:
                del self.kept[key]
        elif _is_free(volume):
            kind = _kind(volume)
            self.free[kind].remove(candidate)
            if not self.free[kind].keys:
                del self.free[kind]

    def lists_for(self, claim: PersistentVolumeClaim) -> list[_Ordered]:
        """Return the lists of free volumes that match a claim, of any size."""
        wanted = claim.spec
        modes = set(wanted.access_modes)
        attributes_class = wanted.volume_attributes_class_name or ""
        volume_mode = wanted.volume_mode or FILESYSTEM
        return [
            ordered
            for kind, ordered in self.free.items()
            if kind[:2] == (volume_mode, attributes_class) and modes.issubset(kind[2])
        ]

    def free_for(self, claim: PersistentVolumeClaim) -> Iterator[CandidateVolume]:
        """Return free volumes that match a claim and are large enough, in order."""
        size_nano = requested_nano(claim)
        fitting = [
            ordered.candidates[ordered.first_of_size(size_nano) :]
            for ordered in self.lists_for(claim)
        ]
        return iter(fitting[0]) if len(fitting) == 1 else heapq.merge(*fitting, key=_place)


class VolumeIndex(View):
    """The volumes of all classes."""

    def __init__(self, volumes: Volumes, *, attributes_classes: bool = True) -> None:
        super().__init__(volumes.changes)
        self._volumes = volumes
        #: the feature gate VolumeAttributesClass
        self._attributes_classes = attributes_classes
        self._topologies = Topologies()
        self._classes: dict[str, _ClassVolumes] = {}
        #: volume → the version in the index
        self._noted: dict[str, CandidateVolume] = {}

    def candidates(self, claim: PersistentVolumeClaim) -> Candidates:
        """Return the volumes that a claim can bind to; raises ObjectError if it is invalid."""
        meta, wanted = claim.metadata, claim.spec
        if wanted.volume_attributes_class_name and not self._attributes_classes:
            raise ObjectError(
                f"unsupported volumeAttributesClassName is set on claim {meta.namespace}/"
                f"{meta.name} when the feature-gate VolumeAttributesClass is disabled"
            )
        try:
            selector = wanted.selector and labels.from_label_selector(wanted.selector)
        except SelectorError as malformed:
            raise ObjectError(
                "error creating internal label selector for claim: "
                f"{meta.namespace}/{meta.name}: {malformed}"
            ) from None
        self.refresh()
        found = self._classes.get(claim.storage_class)
        if found is None:
            return Candidates()
        # Several may be reserved for one claim; sort them, so that the choice is reproducible.
        kept = sorted(found.kept.get((meta.namespace, meta.name), {}).items())
        free = found.free_for(claim)
        if isinstance(selector, labels.Selector):
            matches = selector.matches
            free = (each for each in free if matches(each.volume.metadata.labels or {}))
        return Candidates(
            tuple(
                each
                for _, each in kept
                if is_bound_to(each.volume, claim) and suits(each.volume, claim)
            ),
            tuple(free),
        )

    def smallest(
        self, claim: PersistentVolumeClaim, places: TopologyRows, *, table_size: int
    ) -> VolumeChoice | None:
        """Choose the smallest volume on each row for a claim without selector or reservation.

        None for other claims, or if there are too many (volume, row) pairs: then the caller
        evaluates `candidates`.
        """
        meta, wanted = claim.metadata, claim.spec
        self.refresh()
        found = self._classes.get(claim.storage_class)
        if (
            found is None
            or (meta.namespace, meta.name) in found.kept
            or wanted.selector is not None
            or (wanted.volume_attributes_class_name and not self._attributes_classes)
        ):
            return None
        lists = found.lists_for(claim)
        return lists[0].smallest(claim, places, table_size) if len(lists) == 1 else None

    def rebuild(self) -> None:
        """Index all volumes."""
        self._classes, self._noted = {}, {}
        self.update([each.metadata.name for each in self._volumes])

    def update(self, names: list[str]) -> bool:
        """Index some volumes again."""
        for name in names:
            self._look_at(name)
        return True

    def _look_at(self, name: str) -> None:
        known = self._noted.pop(name, None)
        if known is not None:
            self._classes[known.volume.storage_class].remove(known)
        volume = self._volumes.get(name)
        if volume is not None:
            selector = required_nodes(volume)
            topology = None if selector is None else self._topologies.of(selector)
            candidate = self._noted[name] = CandidateVolume(volume, capacity_nano(volume), topology)
            self._classes.setdefault(volume.storage_class, _ClassVolumes()).add(candidate)

    @property
    def listed(self) -> dict[str, object]:
        """All volumes by class, as they are listed: reserved for claims, and free in order."""
        return {
            name: (each.kept, {kind: ordered.keys for kind, ordered in each.free.items()})
            for name, each in self._classes.items()
            if each.kept or each.free
        }

    derived = ("_noted", "listed")


def _place(candidate: CandidateVolume) -> tuple[int, str]:
    return candidate.size_nano, candidate.volume.metadata.name


def _is_free(volume: PersistentVolume) -> bool:
    return volume.status.phase == AVAILABLE and volume.metadata.deletion_timestamp is None


def _kind(volume: PersistentVolume) -> Kind:
    spec = volume.spec
    return (
        spec.volume_mode or FILESYSTEM,
        spec.volume_attributes_class_name or "",
        spec.access_modes,
    )
