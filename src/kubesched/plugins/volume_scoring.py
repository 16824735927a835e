"""Scores the utilization of storage by a pod's volumes: gate StorageCapacityScoring.

For each class, requested · 100 / capacity is mapped by the shape of the arguments; the score of a
node is the mean over the classes, rounded half up. Existing volumes count if there are any,
otherwise the storage capacity that volumes are provisioned from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubesched.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from kubesched.config.args import UtilizationShapePoint
from kubesched.plugins.resource_scoring import broken_linear
from kubesched.plugins.volume_matching import STORAGE
from kubesched.plugins.volume_provisioning import bytes_of

#: (requested, capacity) of one class, in bytes → score
ClassScorer = Callable[[int, int], int]


def class_scorer(shape: Sequence[UtilizationShapePoint]) -> ClassScorer:
    """Return the score of one class as a function of the requested share of the capacity."""
    by_percent: list[int] = broken_linear(shape).tolist()

    def score(requested: int, capacity: int) -> int:
        full = capacity == 0 or requested > capacity
        return by_percent[100 if full else requested * 100 // capacity]

    return score


def node_score(
    scorer: ClassScorer,
    bindings: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]],
    provisions: Sequence[tuple[PersistentVolumeClaim, CSIStorageCapacity | None]],
) -> int:
    """Score a node by the volumes that a pod would have there."""
    #: class → requested, capacity
    classes: dict[str, tuple[int, int]] = {}
    for volume, claim in bindings:
        name = volume.spec.storage_class_name
        requested, capacity = classes.get(name, (0, 0))
        classes[name] = (requested + _requested(claim), capacity + _capacity(volume))
    for claim, space in () if bindings else provisions:
        if space is not None:
            requested, _ = classes.get(claim.storage_class, (0, 0))
            # Several volumes of a class are provisioned from the same capacity.
            there = bytes_of(space.capacity) if space.capacity is not None else 0
            classes[claim.storage_class] = (requested + _requested(claim), there)
    if not classes:
        return 0
    total = sum(scorer(requested, capacity) for requested, capacity in classes.values())
    return (2 * total + len(classes)) // (2 * len(classes))


def _requested(claim: PersistentVolumeClaim) -> int:
    requests = claim.spec.resources and claim.spec.resources.requests
    return bytes_of(requests[STORAGE]) if requests and STORAGE in requests else 0


def _capacity(volume: PersistentVolume) -> int:
    capacity = volume.spec.capacity or {}
    return bytes_of(capacity[STORAGE]) if STORAGE in capacity else 0
