"""The feasible nodes of a pod, and their scores: what the two halves of an attempt return."""

from __future__ import annotations

from random import Random

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.framework.plan import SignaturePlan
from kubesched.framework.pre_filtering import UNRESTRICTED
from kubesched.framework.totals import INFEASIBLE, BestRows, best_of


class FeasibleNodes:
    """The feasible nodes of a pod, at least one."""

    __slots__ = ("count", "is_nominated", "mask", "nodes", "plan", "restriction")

    def __init__(self, plan: SignaturePlan, nodes: NodeRows, mask: BoolArray | None) -> None:
        self.plan = plan
        self.nodes = nodes
        self.count = nodes.count
        #: which rows of the table these are; None if they are all that pass row-local filters
        self.mask = mask
        #: the nodes that PreFilter plugins had left
        self.restriction = UNRESTRICTED
        #: whether it is the pod's nominated node, and others were not evaluated
        self.is_nominated = False

    def __len__(self) -> int:
        return self.count

    def rows(self) -> IndexArray:
        """Return the rows in node order."""
        mask = self.plan.passing.mask if self.mask is None else self.mask
        order = self.nodes.table.order.rows()
        return order[mask[order]]

    def narrowed(self, rows: IndexArray) -> FeasibleNodes:
        """Return some of the nodes."""
        return feasible_nodes(self.plan, NodeRows(self.nodes.table, rows))


def feasible_nodes(plan: SignaturePlan, nodes: NodeRows) -> FeasibleNodes:
    """Make some nodes the feasible ones of a pod."""
    mask = np.zeros(nodes.table.size, dtype=np.bool_)
    mask[nodes.rows] = True
    return FeasibleNodes(plan, nodes, mask)


class Scored:
    """The scores of feasible nodes."""

    __slots__ = ("_added", "_found", "_row_local")

    def __init__(
        self, found: FeasibleNodes, row_local: Int64Array, added: Int64Array | None
    ) -> None:
        self._found = found
        #: row-local totals of all rows
        self._row_local = row_local
        #: scores of cluster-wide plugins for each feasible node; None for 0
        self._added = added

    def rows(self) -> IndexArray:
        """Return the row of each feasible node, in the order of `FeasibleNodes.nodes`."""
        return self._found.nodes.row_numbers()

    def totals(self) -> Int64Array:
        """Return the total of each feasible node, in the order of `FeasibleNodes.nodes`."""
        totals = self._row_local[self._found.nodes.rows]
        return totals if self._added is None else totals + self._added

    def pick(self, random: Random) -> int:
        """Return one of the best rows; ties are broken at random, in node order."""
        return self.one_of(self.best(), random)

    def one_of(self, best: BestRows, random: Random) -> int:
        """Return one of the best rows, chosen at random in node order."""
        return best.nth(random.randrange(len(best)), self._found.nodes.table.order)

    def best(self) -> BestRows:
        """Return the rows with the highest total."""
        found, view = self._found, self._found.plan.totals
        if self._added is None and self._row_local is view.totals:
            best = view.best()
            if found.mask is None:
                return best
            among = best.among(found.mask)
            return among or best_of(np.where(found.mask, view.totals, INFEASIBLE))
        totals, size = self.totals(), found.nodes.table.size
        return best_of(totals if len(totals) == size else spread(totals, found.nodes))


def spread(totals: Int64Array, nodes: NodeRows) -> Int64Array:
    """Expand the totals of some rows to all rows."""
    everywhere = np.full(nodes.table.size, INFEASIBLE, dtype=np.int64)
    everywhere[nodes.rows] = totals
    return everywhere
