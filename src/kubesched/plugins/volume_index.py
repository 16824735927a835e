"""Volumes that claims could take, kept in order as volumes come, go and are taken.

    journal of volumes ──> class ──> kept for a claim, by claim
                               └───> free, by what they are: the smallest first

Of the volumes of a class, thousands may be free, and one is taken at a time. Which of them a claim
could take is then a matter of finding the right lists and cutting them at the claim's size.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator

from kubesched.api import labels
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.cluster.storage import ClaimKey, Volumes
from kubesched.errors import ObjectError, SelectorError, require
from kubesched.plugins.volume_matching import (
    AVAILABLE,
    FILESYSTEM,
    Candidate,
    Candidates,
    capacity_nano,
    is_bound_to,
    requested_nano,
    required_nodes,
    suits,
)
from kubesched.plugins.volume_topology import Topologies

#: Volume mode, attributes class, access modes.
Kind = tuple[str, str, tuple[str, ...]]
#: In order of size; equally large ones by name: any would do, but always the same.
Ordered = list[tuple[int, str, Candidate]]


class _ClassVolumes:
    """The volumes of one class."""

    def __init__(self) -> None:
        #: claim → volume → candidate
        self.kept: dict[ClaimKey, dict[str, Candidate]] = {}
        #: those that are available and nobody's
        self.free: dict[Kind, Ordered] = {}

    def add(self, candidate: Candidate) -> None:
        """Note a volume."""
        volume = candidate.volume
        name, reference = volume.metadata.name, volume.spec.claim_ref
        if reference is not None:
            self.kept.setdefault((reference.namespace, reference.name), {})[name] = candidate
        elif _is_free(volume):
            entry = (candidate.size_nano, name, candidate)
            insort(self.free.setdefault(_kind(volume), []), entry, key=lambda each: each[:2])

    def remove(self, candidate: Candidate) -> None:
        """Forget a volume, in the version in which it was noted."""
        volume = candidate.volume
        name, reference = volume.metadata.name, volume.spec.claim_ref
        if reference is not None:
            key = (reference.namespace, reference.name)
            del self.kept[key][name]
            if not self.kept[key]:
                del self.kept[key]
        elif _is_free(volume):
            kind = _kind(volume)
            ordered = self.free[kind]
            place = (candidate.size_nano, name)
            del ordered[bisect_left(ordered, place, key=lambda each: each[:2])]
            if not ordered:
                del self.free[kind]

    def free_for(self, claim: PersistentVolumeClaim) -> Iterator[Candidate]:
        """Return free volumes that are what a claim asks for and large enough, in order."""
        wanted = claim.spec
        modes = set(wanted.access_modes)
        attributes_class = wanted.volume_attributes_class_name or ""
        volume_mode = wanted.volume_mode or FILESYSTEM
        smallest = (requested_nano(claim), "")
        fitting = [
            ordered[bisect_left(ordered, smallest, key=lambda each: each[:2]) :]
            for kind, ordered in self.free.items()
            if kind[:2] == (volume_mode, attributes_class) and modes.issubset(kind[2])
        ]
        merged = fitting[0] if len(fitting) == 1 else heapq.merge(*fitting, key=lambda e: e[:2])
        return (candidate for _, _, candidate in merged)


class VolumeIndex:
    """The volumes of all classes."""

    def __init__(self, volumes: Volumes, *, attributes_classes: bool = True) -> None:
        self._volumes = volumes
        #: the feature gate VolumeAttributesClass
        self._attributes_classes = attributes_classes
        self._topologies = Topologies()
        self._classes: dict[str, _ClassVolumes] = {}
        #: volume → how it was noted
        self._noted: dict[str, Candidate] = {}
        #: of the volumes, up to which they were looked at
        self._version = 0

    def candidates(self, claim: PersistentVolumeClaim) -> Candidates:
        """Return what a claim could take; raises ObjectError if the claim makes no sense."""
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
        self._catch_up()
        found = self._classes.get(claim.storage_class)
        if found is None:
            return Candidates()
        # Several may be kept for one claim; which of them counts must not be a matter of chance.
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

    def _catch_up(self) -> None:
        changed = self._volumes.changed_since(self._version)
        self._version = self._volumes.version
        if changed is None:
            self._classes.clear()
            self._noted.clear()
            changed = {each.metadata.name for each in self._volumes}
        for name in changed:
            self._look_at(name)

    def _look_at(self, name: str) -> None:
        known = self._noted.pop(name, None)
        if known is not None:
            self._classes[known.volume.storage_class].remove(known)
        volume = self._volumes.get(name)
        if volume is not None:
            selector = required_nodes(volume)
            topology = None if selector is None else self._topologies.of(selector)
            candidate = self._noted[name] = Candidate(volume, capacity_nano(volume), topology)
            self._classes.setdefault(volume.storage_class, _ClassVolumes()).add(candidate)

    def validate(self) -> None:
        """Check that every volume is noted as it is, and that lists are in order."""
        self._catch_up()
        shown = {each.metadata.name: each for each in self._volumes}
        require({name: each.volume for name, each in self._noted.items()} == shown, "volumes noted")
        listed: list[str] = []
        for each in self._classes.values():
            for ordered in each.free.values():
                require(ordered == sorted(ordered, key=lambda entry: entry[:2]), "in order")
                listed += [name for _, name, _ in ordered]
            listed += [name for kept in each.kept.values() for name in kept]
        wanted = [n for n, each in shown.items() if each.spec.claim_ref or _is_free(each)]
        require(sorted(listed) == sorted(wanted), "each volume once")


def _is_free(volume: PersistentVolume) -> bool:
    return volume.status.phase == AVAILABLE and volume.metadata.deletion_timestamp is None


def _kind(volume: PersistentVolume) -> Kind:
    spec = volume.spec
    return (
        spec.volume_mode or FILESYSTEM,
        spec.volume_attributes_class_name or "",
        spec.access_modes,
    )
