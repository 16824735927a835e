"""Where a new volume can be made for a claim: allowed topologies, and space that is left.

Space counts only for CSI drivers that say so; then some CSIStorageCapacity of the class must be for
the node and be large enough. A driver may report one for each node, so what they say is kept as
arrays of (capacity, row) pairs until a capacity or a label changes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from kubesched.api import quantity
from kubesched.api.core import QuantityText
from kubesched.api.storage import (
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
)
from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array, Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.recent import Recent
from kubesched.cluster.storage import Storage
from kubesched.errors import ObjectError, QuantityError
from kubesched.plugins.volume_matching import STORAGE
from kubesched.plugins.volume_topology import (
    Topology,
    TopologyRows,
    of_allowed_topologies,
    of_label_selector,
)

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
#: For a class, in a place of `Space.numbers`: no capacity is large enough.
NO_SPACE: Final = -1


class Space(Struct, frozen=True):
    """The capacity that a claim would use on each row."""

    capacities: tuple[CSIStorageCapacity, ...]
    #: row → index into `capacities`, NO_SPACE where there is none
    numbers: Int32Array

    def at(self, row: int) -> CSIStorageCapacity | None:
        """Return the capacity for a row."""
        number = int(self.numbers[row])
        return None if number == NO_SPACE else self.capacities[number]


class Provisioning(Struct, frozen=True):
    """Where a volume can be made for a claim."""

    claim: PersistentVolumeClaim
    #: rows that the class allows; None means all, a class without provisioner allows none
    allowed: BoolArray | None
    #: None if space does not matter
    space: Space | None = None


class _ClassSpace:
    """All capacities of a class, and the rows that each is for."""

    def __init__(self, capacities: list[CSIStorageCapacity], places: TopologyRows) -> None:
        self.capacities = tuple(capacities)
        #: largest volume that each allows
        self._limits: Int64Array = np.array(
            [-1 if (limit := volume_limit(each)) is None else limit for each in capacities],
            dtype=np.int64,
        )
        rows = [places.find(of_label_selector(each.node_topology)) for each in capacities]
        counts = [len(each) for each in rows]
        self._rows: IndexArray = np.concatenate(rows) if rows else np.zeros(0, dtype=np.intp)
        self._owners: Int32Array = np.repeat(np.arange(len(rows), dtype=np.int32), counts)

    def for_volume_of(self, size_bytes: int, table_size: int) -> Space:
        """Return the first capacity for each row that allows a volume of a size."""
        numbers: Int32Array = np.full(table_size, NO_SPACE, dtype=np.int32)
        enough = self._limits[self._owners] >= size_bytes
        # Written back to front, so that of several capacities for a row the first stays.
        numbers[self._rows[enough][::-1]] = self._owners[enough][::-1]
        return Space(self.capacities, numbers)


class Provisioner:
    """Answers where volumes can be made."""

    def __init__(self, storage: Storage, table: NodeTable, places: TopologyRows) -> None:
        self._storage = storage
        self._table = table
        self._places = places
        self._topologies: Recent[tuple[TopologySelectorTerm, ...], Topology] = Recent()
        #: class → its capacities, as of the versions of what they were made from
        self._space: dict[str, _ClassSpace] = {}
        self._made_from: tuple[int, int] = (-1, -1)

    def where(self, claim: PersistentVolumeClaim) -> Provisioning:
        """Tell where a volume can be made for a claim; raises ObjectError if it has no class."""
        class_name = claim.storage_class
        meta = claim.metadata
        if not class_name:
            raise ObjectError(f'no class for claim "{meta.namespace}/{meta.name}"')
        storage_class = self._storage.classes.get(class_name)
        if storage_class is None:
            raise ObjectError(f'failed to find storage class "{class_name}"')
        nodes = NodeRows.all_of(self._table)
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return Provisioning(claim, nodes.none())
        topology = self._allowed(storage_class)
        allowed = None if topology is None else topology(nodes)
        return Provisioning(claim, allowed, self._space_for(claim, storage_class))

    def _allowed(self, storage_class: StorageClass) -> Topology | None:
        terms = storage_class.allowed_topologies
        found = self._topologies.get(terms)
        if found is None:
            found = of_allowed_topologies(terms)
            if found is not None:
                self._topologies[terms] = found
        return found

    def _space_for(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> Space | None:
        requests = claim.spec.resources and claim.spec.resources.requests
        text = requests.get(STORAGE) if requests else None
        driver = self._storage.drivers.get(storage_class.provisioner)
        if text is None or driver is None or not driver.spec.storage_capacity:
            return None
        size_bytes = bytes_of(text)
        return self._class_space(storage_class.metadata.name).for_volume_of(
            size_bytes, self._table.size
        )

    def _class_space(self, class_name: str) -> _ClassSpace:
        made_from = (self._storage.capacities.version, self._table.node_changes.position)
        if made_from != self._made_from:
            self._made_from = made_from
            self._space.clear()
        found = self._space.get(class_name)
        if found is None:
            capacities = self._storage.capacities.of_class(class_name)
            found = self._space[class_name] = _ClassSpace(capacities, self._places)
        return found


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return the size of the largest volume that can be made, in bytes; None if unknown."""
    text = capacity.maximum_volume_size
    if text is None:
        text = capacity.capacity
    return None if text is None else bytes_of(text)


def bytes_of(text: QuantityText) -> int:
    """Return an amount of storage; what is beyond counting counts as the most that there is."""
    try:
        return quantity.value(text)
    except QuantityError:
        return quantity.INT64_MAX
