"""The rows on which a volume can be provisioned: allowed topologies, and storage capacity.

Capacity is checked only for CSI drivers that request it; then some CSIStorageCapacity of the class
must select the node and be large enough. A driver may publish one per node, and updates it whenever
a volume is provisioned; so capacities are arrays of (capacity, row) pairs, updated incrementally.
"""

from __future__ import annotations

from bisect import bisect_left
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
from kubesched.cluster.arrays import BoolArray, Int32Array, Int64Array
from kubesched.cluster.incremental import View
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.recent import Recent
from kubesched.cluster.storage import Capacities, Storage
from kubesched.errors import ObjectError, QuantityError
from kubesched.plugins.volume_matching import STORAGE
from kubesched.plugins.volume_topology import (
    RowPairs,
    Topologies,
    Topology,
    TopologyRows,
    of_allowed_topologies,
)

#: Namespace and name of a CSIStorageCapacity.
CapacityKey = tuple[str, str]

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
#: In `Space.numbers`: no capacity of the class is large enough.
NO_SPACE: Final = -1


class Space(Struct, frozen=True):
    """The CSIStorageCapacity that a claim would use on each row."""

    capacities: tuple[CSIStorageCapacity, ...]
    #: row → index into `capacities`, or NO_SPACE
    numbers: Int32Array

    def at(self, row: int) -> CSIStorageCapacity | None:
        """Return the capacity for a row."""
        number = int(self.numbers[row])
        return None if number == NO_SPACE else self.capacities[number]


class Provisioning(Struct, frozen=True):
    """The rows on which a volume can be provisioned for a claim."""

    claim: PersistentVolumeClaim
    #: rows that the class allows; None means all; none for a class without provisioner
    allowed: BoolArray | None
    #: None if capacity is not checked
    space: Space | None = None


class _ClassSpace:
    """All capacities of a class, and the rows that each selects."""

    def __init__(self, places: TopologyRows) -> None:
        #: sorted, so that the choice among several capacities of a row is reproducible
        self._keys: list[CapacityKey] = []
        self._capacities: list[CSIStorageCapacity] = []
        #: largest volume that each allows, -1 if unknown
        self._limits: list[int] = []
        self._pairs = RowPairs(places)
        #: capacities as a tuple that callers may retain, and limits as an array; computed on demand
        self._shown: tuple[CSIStorageCapacity, ...] | None = None
        self._limit_column: Int64Array | None = None

    def put(self, key: CapacityKey, capacity: CSIStorageCapacity, topology: Topology) -> None:
        """Add a capacity."""
        place = bisect_left(self._keys, key)
        self._keys.insert(place, key)
        self._capacities.insert(place, capacity)
        self._limits.insert(place, _limit(capacity))
        self._pairs.insert(place, topology)
        self._shown = self._limit_column = None

    def replace(self, key: CapacityKey, capacity: CSIStorageCapacity) -> bool:
        """Update a capacity; False if it selects other rows than before."""
        place = bisect_left(self._keys, key)
        if capacity.node_topology != self._capacities[place].node_topology:
            return False
        self._capacities[place] = capacity
        self._limits[place] = limit = _limit(capacity)
        self._shown = None
        if self._limit_column is not None:
            self._limit_column[place] = limit
        return True

    def remove(self, key: CapacityKey) -> None:
        """Remove a capacity."""
        place = bisect_left(self._keys, key)
        del self._keys[place], self._capacities[place], self._limits[place]
        self._pairs.remove(place)
        self._shown = self._limit_column = None

    def listed(self) -> dict[CapacityKey, CSIStorageCapacity]:
        """Return all capacities."""
        return dict(zip(self._keys, self._capacities, strict=True))

    def for_volume_of(self, size_bytes: int, table_size: int) -> Space:
        """Return the first capacity for each row that allows a volume of a size."""
        if self._shown is None:
            self._shown = tuple(self._capacities)
        if self._limit_column is None:
            self._limit_column = np.array(self._limits, dtype=np.int64)
        numbers: Int32Array = np.full(table_size, NO_SPACE, dtype=np.int32)
        owners, rows = self._pairs.pairs()
        enough = self._limit_column[owners] >= size_bytes
        # Written back to front, so that of several capacities for a row the first stays.
        numbers[rows[enough][::-1]] = owners[enough][::-1]
        return Space(self._shown, numbers)


class Spaces(View):
    """The capacities of the classes in use, incrementally maintained."""

    derived = ("listed", "_noted")

    def __init__(self, capacities: Capacities, places: TopologyRows) -> None:
        super().__init__(capacities.changes)
        self._capacities = capacities
        self._places = places
        self._topologies = Topologies()
        #: names of classes
        self._asked: set[str] = set()
        self._classes: dict[str, _ClassSpace] = {}
        #: capacity → the class that it is stored under
        self._noted: dict[CapacityKey, str] = {}

    def of_class(self, class_name: str) -> _ClassSpace:
        """Return the capacities of a class."""
        if class_name not in self._asked:
            self._asked.add(class_name)
            self.forget()
        self.refresh()
        return self._classes[class_name]

    @property
    def listed(self) -> dict[str, dict[CapacityKey, CSIStorageCapacity]]:
        """All capacities, by class."""
        return {name: space.listed() for name, space in self._classes.items()}

    def rebuild(self) -> None:
        """Look up all classes in use."""
        self._noted = {}
        self._classes = {name: _ClassSpace(self._places) for name in self._asked}
        for name in self._asked:
            self.update([self._capacities.key_of(each) for each in self._capacities.of_class(name)])

    def update(self, keys: list[CapacityKey]) -> bool:
        """Update changed capacities of the classes in use."""
        for key in keys:
            self._look_at(key)
        return True

    def _look_at(self, key: CapacityKey) -> None:
        capacity = self._capacities.get(*key)
        class_name = None if capacity is None else capacity.storage_class_name
        known = self._noted.get(key)
        if known is not None:
            space = self._classes[known]
            if capacity is not None and class_name == known and space.replace(key, capacity):
                return
            space.remove(key)
            del self._noted[key]
        if capacity is not None and class_name in self._classes:
            self._noted[key] = class_name
            topology = self._topologies.of_labels(capacity.node_topology)
            self._classes[class_name].put(key, capacity, topology)


class Provisioner:
    """Evaluates where volumes can be provisioned."""

    def __init__(self, storage: Storage, table: NodeTable, places: TopologyRows) -> None:
        self._storage = storage
        self._table = table
        self._topologies: Recent[tuple[TopologySelectorTerm, ...], Topology] = Recent()
        self._spaces = Spaces(storage.capacities, places)

    def where(self, claim: PersistentVolumeClaim) -> Provisioning:
        """Return where a volume can be provisioned; ObjectError if the claim has no class."""
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
        space = self._spaces.of_class(storage_class.metadata.name)
        return space.for_volume_of(size_bytes, self._table.size)


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return the size of the largest volume of a capacity, in bytes; None if unknown."""
    text = capacity.maximum_volume_size
    if text is None:
        text = capacity.capacity
    return None if text is None else bytes_of(text)


def _limit(capacity: CSIStorageCapacity) -> int:
    limit = volume_limit(capacity)
    return -1 if limit is None else limit


def bytes_of(text: QuantityText) -> int:
    """Return an amount of storage in bytes; amounts out of range count as the maximum."""
    try:
        return quantity.value(text)
    except QuantityError:
        return quantity.INT64_MAX
