"""What plugins see of a group of pods that is being scheduled.

GroupInfo ──> PlacementGenerate ──> Placement, a set of rows
              each member in turn, within one placement ──> Assignment
              PlacementFeasible(Progress) before the first and after each
              PlacementScore(Assignments) ──> the best placement
none fits ──> PodGroupPostFilter, which may try the group again (GroupTrial)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from msgspec import Struct

from kubesched.api.scheduling import CompositePodGroup, PodGroup
from kubesched.cluster.arrays import BoolArray
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


class Placement(Struct, frozen=True, eq=False):
    """Nodes that a group may be placed on, as a mask over the rows of the node table."""

    name: str
    rows: BoolArray

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return int(np.count_nonzero(self.rows))


class Assignment(Struct, frozen=True, eq=False):
    """The node that was found for a member."""

    pod: PodInfo
    node_name: str
    #: as the plugins left it
    state: CycleState


class Assignments(Struct, frozen=True, eq=False):
    """The nodes that were found for the members within one placement."""

    placement: Placement
    assigned: Sequence[Assignment]
    #: what plugins remember about the placement
    state: CycleState


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

    def still_fits(self, assigned: Sequence[Assignment], changed: frozenset[int]) -> bool:
        """Tell whether all members still fit on their nodes, after some rows have changed.

        They are placed one after the other, and taken away again.
        """


class PodGroupPostFilterResult(Struct, frozen=True):
    """What to do for a group that could not be placed."""

    status: Status
    #: uid → node to nominate the member to, "" to take a nomination back
    nominations: Mapping[str, str] = {}
