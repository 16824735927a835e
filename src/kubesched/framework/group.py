"""What plugins see of a group of pods that is being scheduled.

GroupInfo ──> PlacementGenerate ──> Placement, a set of rows
              each member in turn, within one placement ──> Assignment
              PlacementFeasible(Progress) before the first and after each
              PlacementScore(Assignments) ──> the best placement
none fits ──> PodGroupPostFilter, which may try the group again (GroupTrial)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, overload

import numpy as np
from msgspec import Struct

from kubesched.api.scheduling import CompositePodGroup, PodGroup
from kubesched.cluster.arrays import BoolArray, IndexArray
from kubesched.cluster.node_order import NodeOrder
from kubesched.cluster.pod_groups import GroupKey, GroupKind
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import Status


class GroupInfo(Struct, frozen=True):
    """A group, with the members that are to be placed."""

    key: GroupKey
    group: PodGroup | CompositePodGroup
    #: in the order in which they are tried; of a composite group those of all groups below
    pods: tuple[PodInfo, ...]
    #: the groups of a composite group, in the order in which they are tried
    children: tuple[GroupInfo, ...] = ()

    @property
    def is_composite(self) -> bool:
        """Whether it is a group of groups."""
        return self.key.kind is GroupKind.COMPOSITE

    @property
    def priority(self) -> int:
        """The group's priority, 0 if it has none."""
        return self.group.spec.priority or 0

    @property
    def topology_key(self) -> str | None:
        """The label of which all nodes must have the same value, None if there is none."""
        constraints = self.group.spec.scheduling_constraints
        return constraints.topology[0].key if constraints and constraints.topology else None


class Placement:
    """Nodes that a group may be placed on, as a mask over the rows of the node table."""

    __slots__ = ("_in_order", "_order", "count", "name", "rows")

    def __init__(self, name: str, rows: BoolArray) -> None:
        self.name = name
        self.rows = rows
        #: how many nodes there are
        self.count = int(np.count_nonzero(rows))
        #: the numbers of the rows, and the node order that they are in
        self._in_order: IndexArray | None = None
        self._order: IndexArray | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placement):
            return NotImplemented
        return self.name == other.name and np.array_equal(self.rows, other.rows)

    def __hash__(self) -> int:
        return hash(self.name)

    def in_order(self, order: NodeOrder) -> IndexArray:
        """Return the numbers of the rows, in node order."""
        everything = order.rows()
        if self._in_order is None or self._order is not everything:
            self._order, self._in_order = everything, everything[self.rows[everything]]
        return self._in_order


class Assignment(Struct, frozen=True, eq=False):
    """The node that was found for a member."""

    pod: PodInfo
    node_name: str
    #: as the plugins left it
    state: CycleState


class AlikeAssignments(Sequence[Assignment]):
    """The nodes that were found for equal members, each created on access."""

    __slots__ = ("_make", "pods")

    def __init__(self, pods: Sequence[PodInfo], make: Callable[[int], Assignment]) -> None:
        self.pods = pods
        self._make = make

    def __len__(self) -> int:
        return len(self.pods)

    @overload
    def __getitem__(self, index: int) -> Assignment: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Assignment]: ...

    def __getitem__(self, index: int | slice) -> Assignment | Sequence[Assignment]:
        """Return one of them, or some."""
        numbers = range(len(self.pods))[index]
        return self._make(numbers) if isinstance(numbers, int) else [*map(self._make, numbers)]


class Assignments(Struct, frozen=True, eq=False):
    """The nodes that were found for the members within one placement."""

    placement: Placement
    assigned: Sequence[Assignment]
    #: the cycle state of the placement
    state: CycleState

    def pods(self) -> Sequence[PodInfo]:
        """Return the members that have a node; often the same object for all placements."""
        if isinstance(self.assigned, AlikeAssignments):
            return self.assigned.pods
        return [each.pod for each in self.assigned]


class Progress(NamedTuple):
    """How far an attempt within a placement has come: pods, or groups of a composite group."""

    #: not tried yet
    remaining: int
    #: with a node, from this attempt or before it
    scheduled: int


class GroupTrial(Protocol):
    """Lets a PodGroupPostFilter plugin see what would become of the group."""

    def schedule(self) -> tuple[Sequence[Assignment], Status]:
        """Try the group on the cluster as it is now; changes nothing."""

    def concerns(
        self, assigned: Sequence[Assignment], changed: frozenset[int], pods: Sequence[PodInfo]
    ) -> bool:
        """Return whether pods that come back to some rows can matter to members on their nodes."""

    def still_fits(
        self, assigned: Sequence[Assignment], changed: frozenset[int], pods: Sequence[PodInfo]
    ) -> bool:
        """Return whether all members still fit on their nodes, after pods came back to some rows.

        They are placed one after the other, and taken away again.
        """


class PodGroupPostFilterResult(Struct, frozen=True):
    """What to do for a group that could not be placed."""

    status: Status
    #: uid → node to nominate the member to, "" to take a nomination back
    nominations: Mapping[str, str] = {}
