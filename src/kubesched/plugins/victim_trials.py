"""Rows without their pods of lower priority, and which of these pods can stay.

Pods are reprieved in a given order, each if the preemptor still fits beside it. `SumsTrial` does
that for many rows at once. In each round it asks about all remaining pods of all rows: does the
preemptor fit if they come back in turn, up to this one, and does it if this one alone comes back?
The first answers are valid up to the first pod that has to stay out, or else the second ones up to
the first pod that can come back. So there are as many rounds as there are runs of pods that share
their fate, two of them for pods that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import SupposedRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.transaction import Transaction
from kubesched.framework.count_bounds import BoundedRows
from kubesched.framework.plan import SignaturePlan
from kubesched.framework.status_book import StatusBook
from kubesched.plugins.lower_pods import PodsByRow


class Trial(Protocol):
    """Hypothetical rows without some pods; an *element* is the index of a row among them."""

    def evict(self, pods: PodsByRow) -> Int32Array:
        """Remove pods from each row; return the number of each row's rejection then, 0 for none."""

    def reprieve(self, elements: IndexArray, turns: IndexArray | None) -> BoolArray:
        """Let the pods of some rows come back in turn; return which cannot: [element, place].

        `turns` are their places, [element, turn], if these are not the order.
        """


class SumsTrial:
    """Many rows at once, by sums of requests and counts of pods."""

    def __init__(
        self,
        cluster: Cluster,
        plan: SignaturePlan,
        pod: PodInfo,
        bounded: BoundedRows,
        *,
        kinds: Sequence[PodInfo],
        book: StatusBook,
    ) -> None:
        self._table = table = cluster.table
        self._plan = plan
        self._bounded = bounded
        self._kinds = kinds
        self._book = book
        self._resources = len(table.resources)
        rows = bounded.rows
        # The requests of nominated pods count; a pod that fits beside them fits without them, too.
        requested, pod_count = cluster.nominated_rows.reserved_on(rows, pod)
        requested += table.requested[:, rows]
        pod_count += table.pod_count[rows]
        #: [amount, element]: requests, number of pods, counts
        self._amounts = np.concatenate((requested, pod_count[np.newaxis], bounded.counts))

    def evict(self, pods: PodsByRow) -> Int32Array:
        """Subtract their amounts, and run the filters on all rows."""
        self._pods = pods
        #: of each pod: [amount, element, place]
        self._of_pods = self._amounts_of(pods)
        self._amounts -= self._of_pods.sum(axis=2)
        bounded, counts = self._bounded, self._amounts[self._resources + 1 :]
        by_row = self._rejections(self._amounts, np.arange(len(bounded.rows)))
        if not len(counts):
            return by_row
        beside = self._book.first(by_row, bounded.rejections(counts + bounded.reserved))
        return np.where(beside > 0, beside, bounded.rejections(counts))

    def reprieve(self, elements: IndexArray, turns: IndexArray | None) -> BoolArray:
        """Add the amounts of pods in as few steps as possible."""
        there, pods = self._pods.there[elements], self._of_pods[:, elements]
        if turns is None:
            return self._stay_out(pods, there, elements)
        # Each row's pods come first in any order of theirs, so the same turns are taken.
        in_turn = np.take_along_axis(pods, turns[np.newaxis], axis=2)
        out = np.zeros_like(there)
        np.put_along_axis(out, turns, self._stay_out(in_turn, there, elements), axis=1)
        return out

    def _stay_out(self, pods: Int64Array, there: BoolArray, elements: IndexArray) -> BoolArray:
        """Return which pods cannot come back, [element, turn], given their amounts."""
        #: of the pods before each turn, and of all
        sums = np.zeros((*pods.shape[:2], pods.shape[2] + 1), dtype=np.int64)
        np.cumsum(pods, axis=2, out=sums[:, :, 1:])
        amounts, stays_out = self._amounts[:, elements], np.zeros_like(there)
        lengths, turn = np.count_nonzero(there, axis=1), np.zeros(len(elements), dtype=np.intp)
        left = np.flatnonzero(lengths)
        while len(left):
            turns, waits = _waiting(turn[left], lengths[left])
            without = (amounts[:, left] - sums[:, left, turn[left]])[:, :, np.newaxis]
            in_turn = sums[:, left, turns[0] + 1 : turns[-1] + 2] + without
            stop = _first(waits & ~self._fits(in_turn, elements[left]), turns, lengths[left])
            amounts[:, left] = without[:, :, 0] + sums[:, left, stop]
            turn[left] = stop
            left = left[stop < lengths[left]]
            if len(left):
                turns, waits = _waiting(turn[left], lengths[left])
                shown = slice(turns[0], turns[-1] + 1)
                alone = pods[:, left, shown] + amounts[:, left, np.newaxis]
                back = _first(waits & self._fits(alone, elements[left]), turns, lengths[left])
                stays_out[left, shown] |= waits & (turns < back[:, np.newaxis])
                turn[left] = back
                left = left[back < lengths[left]]
        return stays_out

    def _amounts_of(self, pods: PodsByRow) -> Int64Array:
        """Return the amounts of pods: [amount, element, place]."""
        amounts = np.zeros((len(self._amounts), len(self._kinds) + 1), dtype=np.int64)
        present = np.zeros(len(self._kinds), dtype=np.bool_)
        present[pods.kinds[pods.there]] = True
        for kind in np.flatnonzero(present).tolist():
            pod = self._kinds[kind]
            pod.requests.resolve(self._table.resources)
            amounts[pod.requests.numbers, kind] = pod.requests.vector
            amounts[self._resources, kind] = 1
            for place in self._bounded.counting(pod):
                amounts[self._resources + 1 + place, kind] = 1
        return amounts[:, pods.kinds]

    def _fits(self, amounts: Int64Array, elements: IndexArray) -> BoolArray:
        """Tell where the preemptor fits, [element, turn], with amounts [amount, element, turn]."""
        asked = np.repeat(elements, amounts.shape[2])
        rejections = self._rejections(amounts.reshape(len(amounts), -1), asked)
        fits: BoolArray = (rejections == 0).reshape(amounts.shape[1:])
        counts = amounts[self._resources + 1 :]
        if len(counts):
            fits &= self._bounded.passes(counts, elements)
        return fits

    def _rejections(self, amounts: Int64Array, elements: IndexArray) -> Int32Array:
        """Run row-local filters on rows with such amounts."""
        number = self._resources
        nodes = SupposedRows(
            self._table,
            self._bounded.rows[elements],
            requested=amounts[:number],
            pod_count=amounts[number],
        )
        return self._plan.rejections_of(nodes)


def _waiting(turn: IndexArray, lengths: IndexArray) -> tuple[IndexArray, BoolArray]:
    """Return the turns from the first one of any row on, and which rows have them to come."""
    turns = np.arange(turn.min(), lengths.max())
    return turns, (turns >= turn[:, np.newaxis]) & (turns < lengths[:, np.newaxis])


def _first(found: BoolArray, turns: IndexArray, otherwise: IndexArray) -> IndexArray:
    """Return the first turn of each row that is found."""
    places: IndexArray = found.argmax(axis=1)
    return np.where(found[np.arange(len(places)), places], turns[places], otherwise)


class TransactionTrial:
    """One row, in a transaction, whatever filters apply."""

    def __init__(self, tx: Transaction, node_name: str, rejection: Callable[[], int]) -> None:
        self._tx = tx
        self._node_name = node_name
        self._rejection = rejection

    def evict(self, pods: PodsByRow) -> Int32Array:
        """Remove the pods of the row."""
        (self._pods,) = pods.pods
        for pod in self._pods:
            self._tx.evict(pod)
        return np.array([self._rejection()], dtype=np.int32)

    def reprieve(self, elements: IndexArray, turns: IndexArray | None) -> BoolArray:
        """Put each pod back, and remove it again if it has to stay a victim."""
        out = np.zeros((len(elements), len(self._pods)), dtype=np.bool_)
        for place in range(len(self._pods)) if turns is None else turns[0].tolist():
            out[0, place] = not self._can_come_back(self._pods[place])
        return out

    def _can_come_back(self, pod: PodInfo) -> bool:
        self._tx.reprieve(pod, self._node_name)
        if self._rejection():
            self._tx.evict(pod)
            return False
        return True
