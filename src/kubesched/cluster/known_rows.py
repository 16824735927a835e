"""Which rows something was found out about, for as long as it holds.

Whom to evict from a node depends on its pods, on who is nominated to it, and on the disruption
budgets. It takes long to find out, and pods of one shape and priority would find out the same: so
it is kept, and a row is no longer known when one of these changes.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.arrays import BoolArray, grown
from kubesched.cluster.cluster import Cluster


class KnownRows:
    """Marks rows as known, and follows what happens to them."""

    def __init__(self, cluster: Cluster) -> None:
        self._table = cluster.table
        self._nominator = cluster.nominator
        self._budgets = cluster.budgets
        self._known: BoolArray = np.zeros(0, dtype=np.bool_)
        #: up to where the logs were read: of rows, of pods' new versions, of nominations, budgets
        self._read = -1, -1, -1, -1

    def current(self) -> BoolArray:
        """Return which rows are still known; whoever finds out more marks it here."""
        table = self._table
        if len(self._known) < table.size:
            self._known = grown(self._known, (table.size,), fill=False)
        rows_at, versions_at, nominations_at, budgets_at = self._read
        self._read = (
            table.row_changes.position,
            table.version_changes.position,
            self._nominator.version,
            self._budgets.version,
        )
        rows = table.row_changes.rows_since(rows_at)
        versions = table.version_changes.rows_since(versions_at)
        names = self._nominator.changed_since(nominations_at)
        if rows is None or versions is None or names is None or self._read[3] != budgets_at:
            self._known[:] = False
            return self._known
        self._known[rows] = False
        self._known[versions] = False
        for name in names:
            row = table.row_of(name)
            if row is not None:
                self._known[row] = False
        return self._known
