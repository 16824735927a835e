"""Pools of devices: which of their slices count, and whether devices may be allocated from them.

    slices ──> Pool ── the slices that a node can use ──> PoolView: complete? valid? in which order?

A pool is what its driver publishes as its newest generation. Its slices come one by one, so a pool
may be incomplete for a while, and a driver may get it wrong, which makes it invalid: then nothing
is allocated from it. Both depend on the node, as slices do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from kubesched.api import quantity
from kubesched.api.core import NodeSelector
from kubesched.api.resource import DeviceCounter, ResourceSlice, ResourceSliceSpec
from kubesched.cluster.device_uses import PoolKey
from kubesched.cluster.node_selector import SelectorMatch
from kubesched.errors import ObjectError, require

#: Set of counters → counter → amount in nano units.
Counters = Mapping[str, Mapping[str, int]]


class PoolRules(Struct, frozen=True):
    """What the feature gates decide about pools."""

    #: slices with shared counters, or with devices that select their nodes, count
    partitionable: bool = True
    #: slices with shared counters count for all nodes, not only for those that they are for
    counters_everywhere: bool = False
    #: slices with devices that name compatibility groups count
    compatibility_groups: bool = False
    #: devices for which kubelets skip operations: whether nodes that declare the feature can
    #: use them; None if all nodes can, able or not
    skips_operations: bool | None = None


class Place(NamedTuple):
    """Where devices can be used: on one node, on all, or on those that a selector matches."""

    node_name: str
    is_everywhere: bool
    selector: SelectorMatch | None


NOWHERE = Place("", is_everywhere=False, selector=None)


class PoolSlice:
    """A slice and the rows of its devices."""

    __slots__ = (
        "counter_users",
        "device_places",
        "has_binding_conditions",
        "has_compatibility_groups",
        "has_duplicates",
        "name",
        "needed_counters",
        "node_name",
        "place",
        "rows",
        "spec",
    )

    def __init__(self, resource_slice: ResourceSlice, rows: tuple[int, ...]) -> None:
        spec = resource_slice.spec
        self.name = resource_slice.metadata.name
        self.spec = spec
        self.rows = rows
        devices = spec.devices
        #: whether two of its devices have the same name
        self.has_duplicates = len({each.name for each in devices}) < len(devices)
        self.has_binding_conditions = any(each.binding_conditions for each in devices)
        #: rows of devices that draw on counters, and whether some of these name groups
        self.counter_users = tuple(
            [row for row, each in zip(rows, devices, strict=True) if each.consumes_counters]
        )
        used = [use for each in devices for use in each.consumes_counters]
        self.has_compatibility_groups = any(each.compatibility_groups for each in used)
        #: set of counters → those that its devices draw on
        self.needed_counters: dict[str, set[str]] = {}
        for each in used:
            self.needed_counters.setdefault(each.counter_set, set()).update(each.counters)
        #: None if each device has a node selection of its own
        self.place: Place | None = _place_of(spec)
        #: the only node that can use it, "" if it does not name one
        self.node_name = self.place.node_name if self.place is not None else ""
        self.device_places: tuple[Place, ...] | None = None
        if self.place is None:
            self.device_places = tuple(
                _place(each.node_name, each.all_nodes, each.node_selector) for each in spec.devices
            )


class PoolView:
    """A pool as some nodes see it."""

    __slots__ = (
        "counter_users",
        "counters",
        "has_binding_conditions",
        "is_incomplete",
        "is_invalid",
        "key",
        "rows",
        "unreachable",
        "unusable",
    )

    def __init__(
        self, key: PoolKey, *, is_incomplete: bool = False, is_invalid: bool = False
    ) -> None:
        self.key = key
        #: slices are missing
        self.is_incomplete = is_incomplete
        #: the driver contradicts itself
        self.is_invalid = is_invalid
        #: devices in the order in which they are allocated
        self.rows: tuple[int, ...] = ()
        #: those of them that the nodes cannot use
        self.unreachable: frozenset[int] = frozenset()
        #: those that are selected like all others, and then not taken
        self.unusable: frozenset[int] = frozenset()
        #: what devices of the pool share
        self.counters: Counters = {}
        #: all devices of the pool that draw on counters, those of other nodes included
        self.counter_users: tuple[int, ...] = ()
        #: drivers have work to do before pods with its devices can be bound: it comes last
        self.has_binding_conditions = False

    @property
    def is_usable(self) -> bool:
        """Whether devices may be allocated from it."""
        return not self.is_incomplete and not self.is_invalid

    @property
    def layout(self) -> Hashable:
        """What two pools have in common that differ only in the devices at each place."""
        if not self.is_usable:
            return "incomplete" if self.is_incomplete else "invalid"
        size = len(self.rows)
        if not (self.counters or self.unreachable or self.unusable):
            return size
        counters = [(name, frozenset(each.items())) for name, each in self.counters.items()]
        places = {row: place for place, row in enumerate(self.rows)}
        return (
            size,
            tuple(counters),
            frozenset(places[row] for row in self.unreachable),
            frozenset(places[row] for row in self.unusable),
            tuple([places.get(row) for row in self.counter_users]),
        )

    def __str__(self) -> str:
        return "/".join(self.key)


class Pool:
    """All slices of a pool, of every generation."""

    def __init__(self, key: PoolKey, rules: PoolRules) -> None:
        self.key = key
        self._rules = rules
        #: by name, in the order of names
        self.slices: tuple[PoolSlice, ...] = ()
        #: (names of slices that nodes can use, devices that they cannot see, and that they cannot
        #: take) → what they see
        self._views: dict[
            tuple[tuple[str, ...], frozenset[int], frozenset[int]], PoolView | None
        ] = {}

    def put(self, made: PoolSlice) -> None:
        """Add a slice."""
        others = (each for each in self.slices if each.name != made.name)
        self.slices = tuple(sorted((*others, made), key=lambda each: each.name))
        self._views.clear()

    def remove(self, name: str) -> None:
        """Remove a slice."""
        self.slices = tuple(each for each in self.slices if each.name != name)
        self._views.clear()

    def changed(self) -> None:
        """Make new views: devices are not as they were."""
        self._views.clear()

    @property
    def node_names(self) -> frozenset[str]:
        """The nodes that slices name."""
        return frozenset(each.node_name for each in self.slices if self._names_node(each))

    @property
    def shared(self) -> tuple[PoolSlice, ...]:
        """The slices that more than one node may be able to use."""
        return tuple(each for each in self.slices if not self._names_node(each))

    def of_node(self, name: str) -> list[PoolSlice]:
        """Return the slices that count, and name a node."""
        return [
            each
            for each in self.slices
            if each.node_name == name and self._names_node(each) and self.counts(each)
        ]

    def is_everywhere(self, each: PoolSlice) -> bool:
        """Return whether a slice counts for all nodes, wherever it is for."""
        return self._rules.counters_everywhere and bool(each.spec.shared_counters)

    def _names_node(self, each: PoolSlice) -> bool:
        return bool(each.node_name) and not self.is_everywhere(each)

    def counts(self, each: PoolSlice) -> bool:
        """Return whether a slice counts at all, given the feature gates."""
        spec = each.spec
        if not self._rules.partitionable and (
            spec.per_device_node_selection is not None or spec.shared_counters
        ):
            return False
        return self._rules.compatibility_groups or not each.has_compatibility_groups

    def view(
        self, usable: Sequence[PoolSlice], unreachable: frozenset[int], *, can_skip: bool
    ) -> PoolView | None:
        """Return what nodes see that can use some slices, but not some of their devices.

        `can_skip`: whether their kubelets can skip operations. None if these slices are
        being replaced: there are newer ones, for other nodes.
        """
        unusable: frozenset[int] = frozenset()
        skips = self._rules.skips_operations
        if skips is not None and not (skips and can_skip):
            skipping = (each for each in usable if each.spec.skip_node_operations)
            unusable = frozenset(row for each in skipping for row in each.rows)
        key = tuple([each.name for each in usable]), unreachable, unusable
        if key not in self._views:
            self._views[key] = self._make_view(usable, unreachable, unusable)
        return self._views[key]

    def _make_view(
        self, usable: Sequence[PoolSlice], unreachable: frozenset[int], unusable: frozenset[int]
    ) -> PoolView | None:
        generation = max(each.spec.pool.generation for each in usable)
        current = [each for each in usable if each.spec.pool.generation == generation]
        wanted = current[0].spec.pool.resource_slice_count
        everything = current
        if len(current) != wanted:
            if any(each.spec.pool.generation > generation for each in self.slices):
                return None
            everything = [
                each
                for each in self.slices
                if each.spec.pool.generation == generation
                and (self._rules.compatibility_groups or not each.has_compatibility_groups)
            ]
            if len(everything) != wanted:
                return PoolView(self.key, is_incomplete=True)
        view = self._build(current, everything, unreachable)
        view.unusable = unusable and unusable & frozenset(view.rows)
        return view

    def _build(
        self,
        current: Sequence[PoolSlice],
        everything: Sequence[PoolSlice],
        unreachable: frozenset[int],
    ) -> PoolView:
        partitionable = self._rules.partitionable
        own = [each for each in current if not (partitionable and each.spec.shared_counters)]
        if _have_duplicates(own):
            return PoolView(self.key, is_invalid=True)
        view = PoolView(self.key)
        view.rows = own[0].rows if len(own) == 1 else tuple(row for s in own for row in s.rows)
        view.unreachable = unreachable and unreachable & frozenset(view.rows)
        if partitionable:
            counters = _counters(each.spec for each in everything)
            users = [
                each for each in everything if each.counter_users and not each.spec.shared_counters
            ]
            if counters is None or not all(_are_there(each, counters) for each in users):
                return PoolView(self.key, is_invalid=True)
            view.counters = counters
            view.counter_users = tuple(row for each in users for row in each.counter_users)
        view.has_binding_conditions = any(each.has_binding_conditions for each in own)
        return view

    def validate(self) -> None:
        """Check that slices are in order, and that views are what building them anew gives."""
        names = [each.name for each in self.slices]
        require(names == sorted(set(names)), f"slices of {self.key} are in order")
        by_name = {each.name: each for each in self.slices}
        for (usable, unreachable, unusable), known in self._views.items():
            anew = self._make_view([by_name[name] for name in usable], unreachable, unusable)
            require(_fields(known) == _fields(anew), f"a view of {self.key}")


def _fields(view: PoolView | None) -> dict[str, object] | None:
    return None if view is None else {name: getattr(view, name) for name in PoolView.__slots__}


def _place_of(spec: ResourceSliceSpec) -> Place | None:
    """Return where a slice can be used; None if each device has a node selection of its own."""
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return _place(spec.node_name, spec.all_nodes, spec.node_selector)
    # Without any of these, its node selection is of an unknown form, and matches no node.
    return None if spec.per_device_node_selection else NOWHERE


def _place(node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> Place:
    if node_name:
        return Place(node_name, is_everywhere=False, selector=None)
    if all_nodes:
        return Place("", is_everywhere=True, selector=None)
    match = None if selector is None else SelectorMatch(None, selector)
    return Place("", is_everywhere=False, selector=match)


def _have_duplicates(slices: Sequence[PoolSlice]) -> bool:
    """Return whether two devices of some slices have the same name."""
    if len(slices) == 1:
        return slices[0].has_duplicates
    names = [device.name for each in slices for device in each.spec.devices]
    return len(set(names)) < len(names)


def amounts(counters: Mapping[str, DeviceCounter]) -> dict[str, int]:
    """Return counters in nano units; one that cannot be read is empty."""
    return {name: _amount(counter) for name, counter in counters.items()}


def _amount(counter: DeviceCounter) -> int:
    try:
        return quantity.nano(counter.value)
    except ObjectError:
        return 0


def _counters(specs: Iterable[ResourceSliceSpec]) -> Counters | None:
    """Return all sets of counters; None if two have the same name."""
    found: dict[str, dict[str, int]] = {}
    for spec in specs:
        for each in spec.shared_counters:
            if each.name in found:
                return None
            found[each.name] = amounts(each.counters)
    return found


def _are_there(made: PoolSlice, counters: Counters) -> bool:
    """Return whether all counters exist that devices of a slice draw on."""
    return all(
        name in counters and needed <= counters[name].keys()
        for name, needed in made.needed_counters.items()
    )
