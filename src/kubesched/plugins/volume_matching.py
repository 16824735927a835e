"""Matches claims with existing volumes: the smallest sufficient one, on all nodes at once.

    Candidates, independent of the node ── rows that can reach them ──> VolumeChoice

A volume that is reserved for the claim (its ``claimRef`` names the claim) is chosen where it can be
reached, and on other nodes the claim gets none. Otherwise the smallest volume is chosen that can be
reached from the node and that no other claim of the pod has chosen there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kubesched.api import quantity
from kubesched.api.core import NodeSelector, ResourceList
from kubesched.api.storage import (
    ANNOTATION_BOUND_BY_CONTROLLER,
    ClaimReference,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array
from kubesched.errors import QuantityError
from kubesched.plugins.volume_topology import Topology

STORAGE = "storage"
FILESYSTEM = "Filesystem"
AVAILABLE = "Available"

#: More than every valid amount: no volume has it.
BEYOND_COUNTING_NANO = 10 ** (quantity.MAX_INTEGER_DIGITS + 10)

#: In a choice: not decided, or no volume.
NO_VOLUME = -1
REFUSED = -2

#: (Volume, row) pairs per batch, as a multiple of the number of rows.
PAIRS_PER_ROW = 4

#: Returns the rows that a volume can be reached from.
RowsOf = Callable[[Topology | None], IndexArray]


# --- one claim, one volume ----------------------------------------------------------------------


def requested_nano(claim: PersistentVolumeClaim) -> int:
    """Return the requested storage of a claim, in billionths of a byte; 0 if there is none."""
    resources = claim.spec.resources
    return _storage_nano(None if resources is None else resources.requests)


def capacity_nano(volume: PersistentVolume) -> int:
    """Return the size of a volume, in billionths of a byte."""
    return _storage_nano(volume.spec.capacity)


def _storage_nano(amounts: ResourceList | None) -> int:
    text = amounts.get(STORAGE) if amounts else None
    if text is None:
        return 0
    try:
        return quantity.nano(text)
    except QuantityError:
        return BEYOND_COUNTING_NANO


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume is reserved for a claim."""
    reference, meta = volume.spec.claim_ref, claim.metadata
    return (
        reference is not None
        and reference.name == meta.name
        and reference.namespace == meta.namespace
        and reference.uid in ("", meta.uid)
    )


def bound_to_claim(
    volume: PersistentVolume, claim: PersistentVolumeClaim
) -> tuple[PersistentVolume, bool]:
    """Return the volume bound to a claim, and whether that changes it."""
    meta, annotations = claim.metadata, volume.metadata.annotations or {}
    bound, changed = volume, False
    reference = volume.spec.claim_ref
    if (
        reference is None
        or (reference.name, reference.namespace) != (meta.name, meta.namespace)
        or reference.uid != meta.uid
    ):
        wanted = ClaimReference(
            kind="PersistentVolumeClaim",
            api_version="v1",
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
        )
        bound, changed = replace(bound, spec=replace(bound.spec, claim_ref=wanted)), True
    # The annotation marks a volume that the controller reserved, and not the user.
    if not is_bound_to(volume, claim) and ANNOTATION_BOUND_BY_CONTROLLER not in annotations:
        annotated = {**annotations, ANNOTATION_BOUND_BY_CONTROLLER: "yes"}
        bound, changed = (
            replace(bound, metadata=replace(bound.metadata, annotations=annotated)),
            True,
        )
    return bound, changed


def suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume that is reserved for a claim satisfies it."""
    wanted, offered = claim.spec, volume.spec
    return (
        capacity_nano(volume) >= requested_nano(claim)
        and (wanted.volume_mode or FILESYSTEM) == (offered.volume_mode or FILESYSTEM)
        # Without the feature gate the claim has none, and volumes that have one do not match.
        and (wanted.volume_attributes_class_name or "")
        == (offered.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def required_nodes(volume: PersistentVolume) -> NodeSelector | None:
    """Return the nodes that a volume can be reached from; None means all."""
    affinity = volume.spec.node_affinity
    return affinity.required if affinity is not None else None


# --- one claim, several volumes -----------------------------------------------------------------


class CandidateVolume(Struct, frozen=True):
    """A volume that a claim can bind to."""

    volume: PersistentVolume
    size_nano: int
    #: where it can be reached from; None means everywhere
    topology: Topology | None = None


class Candidates(Struct, frozen=True):
    """Volumes that a claim can bind to where they can be reached."""

    #: reserved for this claim, by name; the first one counts
    prebound: tuple[CandidateVolume, ...] = ()
    #: the smallest first
    free: tuple[CandidateVolume, ...] = ()


# --- one claim, all rows ------------------------------------------------------------------------


class VolumeChoice(Struct, frozen=True):
    """The volume that is chosen for a claim on each row."""

    claim: PersistentVolumeClaim
    candidates: tuple[CandidateVolume, ...]
    #: row → index into `candidates`, or less than 0 for none
    numbers: Int32Array

    def at(self, row: int) -> PersistentVolume | None:
        """Return the volume on a row."""
        number = int(self.numbers[row])
        return self.candidates[number].volume if number >= 0 else None


def choose(
    claim: PersistentVolumeClaim,
    found: Candidates,
    rows_of: RowsOf,
    *,
    size: int,
    taken: Sequence[VolumeChoice] = (),
) -> VolumeChoice:
    """Choose a volume on each of `size` rows; `taken` are the choices of the pod's other claims."""
    everything = (*found.prebound, *found.free)
    numbers: Int32Array = np.full(size, NO_VOLUME, dtype=np.int32)
    others = [_renumbered(other, everything) for other in taken]
    for number, kept in enumerate(found.prebound):
        open_to: BoolArray = numbers == NO_VOLUME
        for other in others:
            open_to &= other != number
        numbers[open_to] = REFUSED
        reached = rows_of(kept.topology)
        numbers[reached[open_to[reached]]] = number
    undecided = int(np.count_nonzero(numbers == NO_VOLUME))
    first = len(found.prebound)
    for pairs in _batches(found.free, rows_of, first=first, limit=PAIRS_PER_ROW * size):
        if not undecided:
            break
        _take_smallest(numbers, pairs, others)
        undecided = int(np.count_nonzero(numbers == NO_VOLUME))
    return VolumeChoice(claim, everything, numbers)


def _take_smallest(
    numbers: Int32Array, pairs: tuple[IndexArray, Int32Array], others: Sequence[Int32Array]
) -> None:
    rows, volumes = pairs
    open_to: BoolArray = numbers[rows] == NO_VOLUME
    for other in others:
        open_to &= other[rows] != volumes
    # Written back to front, so that of several volumes for a row the first, the smallest, stays.
    numbers[rows[open_to][::-1]] = volumes[open_to][::-1]


def _batches(
    candidates: Sequence[CandidateVolume], rows_of: RowsOf, *, first: int, limit: int
) -> Iterator[tuple[IndexArray, Int32Array]]:
    """Yield pairs of rows and volume numbers, in the order of the volumes, in batches."""
    batch: list[IndexArray] = []
    numbers: list[int] = []
    pairs = 0
    for number, candidate in enumerate(candidates, start=first):
        rows = rows_of(candidate.topology)
        batch.append(rows)
        numbers.append(number)
        pairs += len(rows)
        if pairs >= limit:
            yield _paired(batch, numbers)
            batch, numbers, pairs = [], [], 0
    if batch:
        yield _paired(batch, numbers)


def _paired(batch: Sequence[IndexArray], numbers: Sequence[int]) -> tuple[IndexArray, Int32Array]:
    counts = [len(rows) for rows in batch]
    return np.concatenate(batch), np.repeat(np.array(numbers, dtype=np.int32), counts)


def _renumbered(other: VolumeChoice, candidates: Sequence[CandidateVolume]) -> Int32Array:
    """Return another claim's choice with the indexes of our list; -1 for volumes not in it."""
    place = {each.volume.metadata.name: number for number, each in enumerate(candidates)}
    table = [place.get(each.volume.metadata.name, NO_VOLUME) for each in other.candidates]
    # The last two places are what negative numbers point to.
    return np.array([*table, NO_VOLUME, NO_VOLUME], dtype=np.int32)[other.numbers]
