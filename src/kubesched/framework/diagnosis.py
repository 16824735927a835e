"""Why a pod is unschedulable, and its message.

The message is interface: users and autoscalers read it. It counts reasons over all nodes and sorts
them as text, counts included, as kube-scheduler does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array
from kubesched.cluster.node_table import NodeTable
from kubesched.framework.status import Code, Status, unresolvable

NO_NODES_AVAILABLE = "no nodes available to schedule pods"


def refused_by_chosen_node(status: Status) -> Status:
    """Return a rejection by the chosen node, worded as if there were no other node."""
    text = f"0/1 nodes are available:{_listed(Counter(status.reasons))}"
    return Status(status.code, (text,), status.plugin)


class Diagnosis:
    """The status of every node in an attempt that found no feasible node."""

    def __init__(
        self,
        table: NodeTable,
        *,
        numbers: Int32Array | None = None,
        statuses: list[Status] | None = None,
        absent: Status | None = None,
        pre_filter: Status | None = None,
    ) -> None:
        self._table = table
        #: row → index into `_statuses`; 0 for nodes that were not evaluated
        self._numbers = numbers
        self._statuses = statuses or []
        #: number → how many nodes have it, at some version of the nodes
        self._counts: dict[int, int] = {}
        self._counted_at = -1
        #: the status of nodes that were not evaluated
        self._absent = absent or unresolvable()
        #: set if PreFilter rejected the pod before any node was evaluated
        self.pre_filter = pre_filter
        #: the only nodes that count, None for all: the placement of the pod's group
        self.placement: BoolArray | None = None
        self.post_filter_message = ""
        #: plugins that rejected the pod
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()

    def blame(self, status: Status) -> None:
        """Note which plugin rejected the pod with a status."""
        if status.plugin:
            self.unschedulable_plugins.add(status.plugin)
            if status.code is Code.PENDING:
                self.pending_plugins.add(status.plugin)

    def status_of(self, row: int) -> Status:
        """Return the status of a node."""
        if self.pre_filter is not None:
            return self.pre_filter
        # Nodes may have been added since, while extenders were called.
        if self._numbers is None or row >= len(self._numbers):
            return self._absent
        return self._status(int(self._numbers[row]))

    def _status(self, number: int) -> Status:
        return self._statuses[number] if number else self._absent

    def rows_with(self, code: Code) -> IndexArray:
        """Return the rows whose status has a code, in node order."""
        rows = self._table.order.rows()
        if self.pre_filter is not None:
            return rows if self.pre_filter.code is code else rows[:0]
        if self._numbers is None:
            return rows if self._absent.code is code else rows[:0]
        # Of all statuses in the book, only a few occur in this attempt.
        counts = self.counts()
        wanted = [number for number in counts if self._status(number).code is code]
        if len(self._numbers) < self._table.size:
            rows = rows[rows < len(self._numbers)]
        if len(wanted) == len(counts):
            return rows
        has_code = np.zeros(max(counts, default=0) + 1, dtype=np.bool_)
        has_code[wanted] = True
        return rows[has_code.take(self._numbers[rows])]

    def rows_rejected_with(self, status: Status) -> IndexArray:
        """Return the rows whose answer is a certain one."""
        if self._numbers is None:
            return self._table.order.rows()[:0]
        wanted = [number for number in self.counts() if self._status(number) == status]
        rows = self._table.order.rows()
        rows = rows[rows < len(self._numbers)]
        return rows[np.isin(self._numbers[rows], wanted)]

    def rejections(self) -> Iterator[tuple[Status, IndexArray]]:
        """Return each status that rejects nodes, and the rows of those, in node order."""
        rows = self._table.order.rows()
        if self.pre_filter is not None:
            yield self.pre_filter, rows
        elif self._numbers is None:
            yield self._absent, rows
        else:
            numbers = self._numbers[rows]
            for number in np.unique(numbers).tolist():
                if self._status(number).reasons:
                    yield self._status(number), rows[numbers == number]

    def counts(self) -> dict[int, int]:
        """Return the number of nodes per status number."""
        table, numbers = self._table, self._numbers
        if self._counted_at != table.node_changes.position:
            self._counted_at = table.node_changes.position
            if numbers is None:
                self._counts = {0: self._total()}
            else:
                if self.placement is not None:
                    numbers = numbers[self.placement]
                elif not len(table) == table.size == len(numbers):
                    numbers = numbers[table.valid[: len(numbers)]]
                how_many = np.bincount(numbers)
                found = how_many.nonzero()[0].tolist()
                self._counts = {number: int(how_many[number]) for number in found}
        return self._counts

    def _total(self) -> int:
        """Return how many nodes count."""
        if self.placement is None:
            return len(self._table)
        return int(np.count_nonzero(self.placement))

    def message(self) -> str:
        """Return the text of the pod's condition and event."""
        total = self._total()
        if total == 0:
            return NO_NODES_AVAILABLE
        text = f"0/{total} nodes are available:"
        if self.pre_filter is None:
            text += _listed(self.reason_counts())
        elif self.pre_filter.message:
            text += f" {self.pre_filter.message}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text

    def reason_counts(self) -> Counter[str]:
        """Return how many nodes have each reason."""
        counts: Counter[str] = Counter()
        for number, count in self.counts().items():
            for reason in self._status(number).reasons:
                counts[reason] += count
        return counts


def _listed(counts: Counter[str]) -> str:
    """Return reasons with their counts as a sentence, "" if there are none."""
    listed = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f" {', '.join(listed)}." if listed else ""
