"""Cases of pod groups, which go through the queue and the group cycle (FORMAT-podgroups.md)."""

from __future__ import annotations

from typing import Final

from .answers import CaseCluster
from .comparison import Difference
from .vectors import Vector

NOT_BUILT: Final = "pod groups are not scheduled by this version: the group cycle is not built"


def group_differences(vector: Vector) -> list[Difference]:
    """Compare the cluster that the case makes; there is no group cycle yet to compare attempts."""
    here = CaseCluster(vector.case)
    order, found = here.names(here.cluster.table.order.rows()), []
    if order != vector.expect["nodeOrder"]:
        found.append(Difference("nodeOrder", "", vector.expect["nodeOrder"], order))
    return [*found, Difference("attempts", "", vector.expect["attempts"], NOT_BUILT)]
