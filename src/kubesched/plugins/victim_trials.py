"""Rows without their pods of lower priority, and which of these pods can stay.

Pods are reprieved in a given order, each if the preemptor still fits beside it. `SumsTrial` does
that for many rows at once. In each round it asks about all remaining pods of all rows: does the
preemptor fit if they come back in turn, up to this one, and does it if this one alone comes back?
The first answers are valid up to the first pod that has to stay out, or else the second ones up to
the first pod that can come back. So there are as many rounds as there are runs of pods that share
their fate, two of them for pods that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Protocol

import numpy as np

from kubesched.cluster.arrays import BoolArray, IndexArray, Int32Array, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import SupposedRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.preemptable import PreemptableRequests
from kubesched.cluster.transaction import Transaction
from kubesched.framework.count_bounds import BoundedRows
from kubesched.framework.plan import SignaturePlan
from kubesched.framework.status_book import StatusBook
from kubesched.plugins.lower_pods import PodsInOrder


class Trial(Protocol):
    """Hypothetical rows without some pods; an *element* is the index of a row among them."""

    def evict(self, pods: Sequence[PodsInOrder]) -> Int32Array:
        """Remove pods from each row; return the number of each row's rejection then, 0 for none."""

    def reprieve(self, orders: Mapping[int, PodsInOrder]) -> Iterator[list[PodInfo]]:
        """Let the pods of some rows come back in turn; return those of each row that cannot."""


class SumsTrial:
    """Many rows at once, by sums of requests and counts of pods."""

    def __init__(
        self,
        cluster: Cluster,
        plan: SignaturePlan,
        pod: PodInfo,
        bounded: BoundedRows,
        *,
        lower: PreemptableRequests,
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
        requested += table.requested[:, rows] - lower.requested[:, rows]
        pod_count += table.pod_count[rows] - lower.pod_count[rows]
        #: [amount, element], without the pods of lower priority: requests, number of pods, counts
        self._amounts = np.concatenate((requested, pod_count[np.newaxis], bounded.counts))

    def evict(self, pods: Sequence[PodsInOrder]) -> Int32Array:
        """Run the filters on all rows."""
        bounded, counts = self._bounded, self._amounts[self._resources + 1 :]
        by_row = self._rejections(self._amounts, np.arange(len(bounded.rows)))
        if not len(counts) or not pods:
            return by_row
        counts -= self._amounts_of(pods)[self._resources + 1 :].sum(axis=2)
        beside = self._book.first(by_row, bounded.rejections(counts + bounded.reserved))
        return np.where(beside > 0, beside, bounded.rejections(counts))

    def reprieve(self, orders: Mapping[int, PodsInOrder]) -> Iterator[list[PodInfo]]:
        """Add the amounts of pods in as few steps as possible."""
        if not orders:
            return
        elements = np.fromiter(orders, dtype=np.intp, count=len(orders))
        lengths = np.array([len(order.pods) for order in orders.values()], dtype=np.intp)
        pods, amounts = self._amounts_of(orders.values()), self._amounts[:, elements]
        stays_out = np.zeros(pods.shape[1:], dtype=np.bool_)
        turns, turn = np.arange(pods.shape[2]), np.zeros(len(elements), dtype=np.intp)
        left = np.arange(len(elements))
        while len(left):
            until = lengths[left, np.newaxis]
            waits = (turns >= turn[left, np.newaxis]) & (turns < until)
            each = np.where(waits, pods[:, left], 0)
            before = amounts[:, left, np.newaxis]
            in_turn, alone = self._fits(
                before + each.cumsum(axis=2), before + each, waits, elements[left]
            )
            stop = _first(waits & ~in_turn, until)
            back = _first(waits & alone, until)
            blocked = stop == turn[left, np.newaxis]
            taken = waits & np.where(blocked, turns == back, turns < stop)
            amounts[:, left] += (each * taken).sum(axis=2)
            stays_out[left] |= waits & np.where(blocked, turns < back, turns == stop)
            turn[left] = np.where(blocked, back, stop)[:, 0] + 1
            left = left[turn[left] < lengths[left]]
        for order, out in zip(orders.values(), stays_out, strict=True):
            yield [order.pods[place] for place in np.flatnonzero(out).tolist()]

    def _amounts_of(self, orders: Collection[PodsInOrder]) -> Int64Array:
        """Return the amounts of pods: [amount, row, turn]."""
        lengths = np.array([len(order.pods) for order in orders], dtype=np.intp)
        kinds, of_pods = np.unique(
            np.array(list(chain.from_iterable(order.kinds for order in orders)), dtype=np.intp),
            return_inverse=True,
        )
        amounts = np.zeros((len(self._amounts), len(kinds) + 1), dtype=np.int64)
        for place, kind in enumerate(kinds.tolist()):
            amounts[:, place] = self._amounts_of_pod(self._kinds[kind])
        # After the last pod of a row there are none.
        places = np.full((len(lengths), lengths.max()), len(kinds), dtype=np.intp)
        places[np.arange(places.shape[1]) < lengths[:, np.newaxis]] = of_pods
        return amounts[:, places]

    def _amounts_of_pod(self, pod: PodInfo) -> Int64Array:
        amounts = np.zeros(len(self._amounts), dtype=np.int64)
        pod.requests.resolve(self._table.resources)
        amounts[pod.requests.numbers] = pod.requests.vector
        amounts[self._resources] = 1
        for place in self._bounded.counting(pod):
            amounts[self._resources + 1 + place] = 1
        return amounts

    def _fits(
        self, in_turn: Int64Array, alone: Int64Array, waits: BoolArray, elements: IndexArray
    ) -> tuple[BoolArray, BoolArray]:
        """Tell where the preemptor fits, with amounts [amount, element, turn]."""
        of_waiting, _ = np.nonzero(waits)
        amounts = np.concatenate((in_turn[:, waits], alone[:, waits]), axis=1)
        asked = np.tile(elements[of_waiting], 2)
        fits = self._rejections(amounts, asked) == 0
        counts = amounts[self._resources + 1 :]
        if len(counts):
            fits &= self._bounded.passes(counts, asked)
        found = np.zeros((2, *waits.shape), dtype=np.bool_)
        found[:, waits] = fits.reshape(2, -1)
        return found[0], found[1]

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


def _first(found: BoolArray, otherwise: IndexArray) -> IndexArray:
    """Return the first turn of each row that is found."""
    places: IndexArray = found.argmax(axis=1)[:, np.newaxis]
    return np.where(np.take_along_axis(found, places, axis=1), places, otherwise)


class TransactionTrial:
    """One row, in a transaction, whatever filters apply."""

    def __init__(self, tx: Transaction, node_name: str, rejection: Callable[[], int]) -> None:
        self._tx = tx
        self._node_name = node_name
        self._rejection = rejection

    def evict(self, pods: Sequence[PodsInOrder]) -> Int32Array:
        """Remove the pods of the row."""
        for pod in pods[0].pods:
            self._tx.evict(pod)
        return np.array([self._rejection()], dtype=np.int32)

    def reprieve(self, orders: Mapping[int, PodsInOrder]) -> Iterator[list[PodInfo]]:
        """Put each pod back, and remove it again if it has to stay a victim."""
        for order in orders.values():
            yield [pod for pod in order.pods if not self._can_come_back(pod)]

    def _can_come_back(self, pod: PodInfo) -> bool:
        self._tx.reprieve(pod, self._node_name)
        if self._rejection():
            self._tx.evict(pod)
            return False
        return True
