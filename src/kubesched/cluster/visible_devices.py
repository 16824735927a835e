"""Which devices each node can use, pool by pool, in the order in which they are allocated.

Nodes that see the same pools in the same way have everything in common that matters to allocation,
so they share one `NodeDevices`, and what was found for it holds for all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array, grown
from kubesched.cluster.device_pools import Place, Pool, PoolSlice, PoolView
from kubesched.cluster.device_uses import PoolKey
from kubesched.cluster.incremental import Log, View
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.numbering import Numbering
from kubesched.errors import InvariantError, require

#: The feature that nodes declare whose kubelets can leave out operations on devices.
OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
#: The number of what nodes see that see no device.
NOTHING = 0


class NodeDevices:
    """The devices that some nodes can use."""

    __slots__ = (
        "_pool_of",
        "layout",
        "pool_keys",
        "pools",
        "relevant",
        "rows",
        "unreachable",
        "unusable",
    )

    def __init__(self, pools: tuple[PoolView, ...], layout: int) -> None:
        self.pools = pools
        self.pool_keys = [pool.key for pool in pools]
        #: equal for what differs only in the devices at each place
        self.layout = layout
        usable = [pool for pool in pools if pool.is_usable]
        #: of devices that may be allocated, in the order in which they are
        self.rows: tuple[int, ...] = tuple([row for pool in usable for row in pool.rows])
        #: those of them that are in a slice for these nodes, but not for these nodes themselves
        self.unreachable: frozenset[int] = frozenset().union(*[each.unreachable for each in usable])
        #: those that are selected like all others, and then not taken
        self.unusable: frozenset[int] = frozenset().union(*[each.unusable for each in usable])
        others: tuple[int, ...] = ()
        if any(pool.counter_users for pool in usable):
            own = set(self.rows)
            others = tuple(row for pool in usable for row in pool.counter_users if row not in own)
        #: the same rows, and then those of other nodes that draw on counters of these pools
        self.relevant = self.rows + others
        self._pool_of: dict[int, PoolView] | None = None

    def pool_of(self, row: int) -> PoolView:
        """Return the pool of a device that draws on counters."""
        if self._pool_of is None:
            usable = (pool for pool in self.pools if pool.is_usable)
            self._pool_of = {row: pool for pool in usable for row in pool.counter_users}
        return self._pool_of[row]

    @property
    def has_invalid_pool(self) -> bool:
        """Whether a driver contradicts itself about some pool."""
        return any(pool.is_invalid for pool in self.pools)


class _Shared(NamedTuple):
    """A slice that several nodes may use, and which of some nodes can."""

    slice: PoolSlice
    usable: BoolArray
    #: for slices with a node selection per device: device → which of the nodes can use it
    devices: tuple[BoolArray, ...]


class VisibleDevices(View):
    """For each row of the node table, what it sees."""

    derived = ("of_row",)

    def __init__(
        self, table: NodeTable, pools: Mapping[PoolKey, Pool], pool_changes: Log[PoolKey]
    ) -> None:
        super().__init__(table.node_changes, pool_changes)
        self._table = table
        self._pools = pools
        #: numbers of `NodeDevices` that were taken back, or given to others
        self.changes: Log[int] = Log()
        self._layouts: Numbering[tuple[Hashable, ...]] = Numbering()
        self._clear()

    def _clear(self) -> None:
        #: row → number of what it sees
        self.of_row: Int32Array = np.zeros(self._table.size, dtype=np.int32)
        #: number → what it is, None for numbers that are free
        self.by_number: list[NodeDevices | None] = [NodeDevices((), self._layouts(()))]
        self._numbers: dict[tuple[PoolView, ...], int] = {(): NOTHING}
        #: number → how many rows see it
        self._seen_by: Counter[int] = Counter({NOTHING: self._table.size})
        #: pool → numbers of those that have it
        self._with_pool: dict[PoolKey, set[int]] = {}
        self._free: list[int] = []
        #: node → its pools; and the pools that have slices for several nodes
        self._local: dict[str, set[PoolKey]] = {}
        self._several: set[PoolKey] = set()
        #: pool → the nodes that its slices name
        self._named: dict[PoolKey, frozenset[str]] = {}

    def of(self, row: int) -> NodeDevices:
        """Return what a row sees; the view must be refreshed."""
        return self.at(self.of_row.item(row))

    def at(self, number: int) -> NodeDevices:
        """Return what has a number."""
        found = self.by_number[number]
        if found is None:
            raise InvariantError(f"number {number} is not in use")
        return found

    def with_pool(self, key: PoolKey) -> Iterable[int]:
        """Return the numbers of what has a pool."""
        return self._with_pool.get(key, ())

    def rebuild(self) -> None:
        """Determine the visible pools of all nodes."""
        known = len(self.by_number)
        self._clear()
        for number in range(1, known):
            self.changes.record(number)
        for key in self._pools:
            self._place(key)
        self._look(np.arange(self._table.size, dtype=np.intp))

    def update(self, rows: list[int], keys: list[PoolKey]) -> bool:
        """Update nodes that changed, and those that see pools that did."""
        if len(self.of_row) < self._table.size:
            self._seen_by[NOTHING] += self._table.size - len(self.of_row)
            self.of_row = grown(self.of_row, (self._table.size,))
        affected = np.zeros(self._table.size, dtype=np.bool_)
        affected[rows] = True
        names: set[str] = set()
        is_shared = False
        for key in keys:
            is_shared = is_shared or key in self._several
            names |= self._named.get(key, frozenset())
            self._place(key)
            is_shared = is_shared or key in self._several
            names |= self._named.get(key, frozenset())
        affected |= is_shared
        affected[[row for name in names if (row := self._table.row_of(name)) is not None]] = True
        self._look(np.flatnonzero(affected))
        return True

    def _place(self, key: PoolKey) -> None:
        """Note which nodes may see a pool."""
        pool = self._pools.get(key)
        for name in self._named.pop(key, ()):
            self._local[name].discard(key)
            if not self._local[name]:
                del self._local[name]
        self._several.discard(key)
        if pool is None:
            return
        if pool.shared:
            self._several.add(key)
            return
        names = self._named[key] = pool.node_names
        for name in names:
            self._local.setdefault(name, set()).add(key)

    # --- what nodes see ---------------------------------------------------------------------------

    def _look(self, rows: IndexArray) -> None:
        """Find out what some rows see."""
        if not len(rows):
            return
        shared = {key: self._shared(self._pools[key], rows) for key in sorted(self._several)}
        for position, row in enumerate(rows.tolist()):
            pools: tuple[PoolView, ...] = ()
            if self._table.valid[row]:
                node = self._table.node_at(row)
                name = node.metadata.name
                can_skip = OPTIONAL_NODE_OPERATIONS in node.status.declared_features
                local = self._local.get(name, ())
                found = [self._local_view(key, name, can_skip=can_skip) for key in local]
                found += [
                    self._view(key, name, shared[key], position, can_skip=can_skip)
                    for key in shared
                ]
                there = [view for view in found if view is not None]
                pools = tuple(sorted(there, key=_order)) if there else ()
            self._see(row, pools)

    def _local_view(self, key: PoolKey, name: str, *, can_skip: bool) -> PoolView | None:
        pool = self._pools[key]
        own = pool.of_node(name)
        return pool.view(own, frozenset(), can_skip=can_skip) if own else None

    def _shared(self, pool: Pool, rows: IndexArray) -> list[_Shared]:
        nodes = NodeRows(self._table, rows)
        found = []
        for each in pool.shared:
            if not pool.counts(each):
                continue
            if pool.is_everywhere(each):
                found.append(_Shared(each, ~nodes.none(), ()))
            elif each.place is not None:
                found.append(_Shared(each, usable_on(each.place, nodes), ()))
            elif each.device_places is not None:
                devices = tuple(usable_on(place, nodes) for place in each.device_places)
                usable = np.logical_or.reduce(devices) if devices else nodes.none()
                found.append(_Shared(each, usable, devices))
        return found

    def _view(
        self, key: PoolKey, name: str, shared: list[_Shared], position: int, *, can_skip: bool
    ) -> PoolView | None:
        pool = self._pools[key]
        usable = pool.of_node(name)
        unreachable: set[int] = set()
        for each in shared:
            if each.usable[position]:
                usable.append(each.slice)
                pairs = zip(each.slice.rows, each.devices, strict=False)
                unreachable.update(row for row, can_use in pairs if not can_use[position])
        if not usable:
            return None
        usable.sort(key=lambda each: each.name)
        return pool.view(usable, frozenset(unreachable), can_skip=can_skip)

    def _see(self, row: int, pools: tuple[PoolView, ...]) -> None:
        before = self.of_row.item(row)
        number = self._numbers.get(pools)
        if number is None:
            number = self._number(pools)
        if number == before:
            return
        self.of_row[row] = number
        self._seen_by[number] += 1
        self._seen_by[before] -= 1
        if not self._seen_by[before] and before != NOTHING:
            self._drop(before)

    def _number(self, pools: tuple[PoolView, ...]) -> int:
        if self._free:
            number = self._free.pop()
        else:
            number = len(self.by_number)
            self.by_number.append(None)
        layout = self._layouts(tuple([pool.layout for pool in pools]))
        self.by_number[number] = NodeDevices(pools, layout)
        self._numbers[pools] = number
        for pool in pools:
            self._with_pool.setdefault(pool.key, set()).add(number)
        self.changes.record(number)
        return number

    def _drop(self, number: int) -> None:
        gone = self.at(number)
        del self._numbers[gone.pools], self._seen_by[number]
        for pool in gone.pools:
            numbers = self._with_pool[pool.key]
            numbers.discard(number)
            if not numbers:
                del self._with_pool[pool.key]
        self.by_number[number] = None
        self._free.append(number)
        self.changes.record(number)

    def validate(self) -> None:
        """Compare what each row sees with what it sees if it is looked at anew."""
        self.refresh()
        twin = VisibleDevices(self._table, self._pools, self._logs[1])
        twin.refresh()
        for row in range(self._table.size):
            require(self.of(row).pools == twin.of(row).pools, f"what row {row} sees")
        counted = Counter(self.of_row.tolist())
        require(+self._seen_by == +counted, "how many rows see something")
        numbers: dict[PoolKey, set[int]] = {}
        for number, known in enumerate(self.by_number):
            require((known is None) == (number in self._free), f"number {number} is free or used")
            for pool in () if known is None else known.pools:
                numbers.setdefault(pool.key, set()).add(number)
        require(numbers == self._with_pool, "numbers by pool")


def _order(view: PoolView) -> tuple[bool, PoolKey]:
    """Return what pools are ordered by: those whose drivers have work to do come last."""
    return view.has_binding_conditions, view.key


def usable_on(place: Place, nodes: NodeRows) -> BoolArray:
    """Return which nodes can use what is in a place."""
    if place.node_name:
        row = nodes.table.row_of(place.node_name)
        return nodes.row_numbers() == (-1 if row is None else row)
    if place.selector is not None:
        return place.selector(nodes)
    return np.full(len(nodes), place.is_everywhere)
