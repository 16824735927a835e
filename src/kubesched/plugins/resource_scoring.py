"""How nodes are scored by their resources: the arithmetic, as functions on arrays.

All of it is int64 arithmetic as in Go: capacities near 2^63 wrap around when they are multiplied,
and division is towards zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from kubesched.api.requests import is_scalar_resource
from kubesched.cluster.arrays import BoolArray, Float64Array, Int64Array
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.resources import CPU, MEMORY
from kubesched.config.args import (
    LEAST_ALLOCATED,
    MAX_CUSTOM_PRIORITY_SCORE,
    MOST_ALLOCATED,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kubesched.framework.plugin import MAX_NODE_SCORE

#: Amounts below this are exact as floats, and do not wrap around when they are multiplied by 100.
EXACT: Final = 1 << 53
#: (requested with the pod, capacity) of one resource in each row → score
ResourceScorer = Callable[[Int64Array, Int64Array], Int64Array]


class Usage:
    """One resource in each row: what there is, what is taken, what the pod would add."""

    __slots__ = ("allocatable", "allocated", "request", "weight")

    def __init__(
        self, allocatable: Int64Array, allocated: Int64Array, *, request: int, weight: int
    ) -> None:
        self.allocatable = allocatable
        self.allocated = allocated
        self.request = request
        self.weight = weight


def usages(
    resources: Sequence[ResourceSpec],
    requests: dict[str, int],
    nodes: NodeRows,
    *,
    non_zero: bool,
) -> list[Usage]:
    """Collect the resources that count for a pod; rows without one have allocatable 0 there.

    With `non_zero`, cpu and memory of the nodes' pods include the default for pods that request
    none. A resource that no node offers counts for no node.
    """
    found = []
    for resource in resources:
        request = requests.get(resource.name, 0)
        if request == 0 and is_scalar_resource(resource.name):
            continue
        number = nodes.table.resources.find(resource.name)
        if number is None:
            continue
        if non_zero and number in (CPU, MEMORY):
            allocated = nodes.non_zero_requested(number)
        else:
            allocated = nodes.requested(number)
        found.append(
            Usage(nodes.allocatable(number), allocated, request=request, weight=resource.weight)
        )
    return found


def strategy_scorer(strategy: ScoringStrategy) -> Callable[[Sequence[Usage], int], Int64Array]:
    """Return the scoring function of a strategy: (usages, number of rows) → scores."""
    if strategy.type == LEAST_ALLOCATED:
        return lambda used, rows: _weighted_mean(used, rows, least_allocated)
    if strategy.type == MOST_ALLOCATED:
        return lambda used, rows: _weighted_mean(used, rows, most_allocated)
    parameters = strategy.requested_to_capacity_ratio
    curve = broken_linear(parameters.shape if parameters else ())
    return lambda used, rows: _mean_of_positive(used, rows, curve)


def least_allocated(requested: Int64Array, capacity: Int64Array) -> Int64Array:
    """Score the share of the capacity that stays free."""
    free = np.maximum(capacity - requested, 0)
    return _quotient(free * MAX_NODE_SCORE, np.maximum(capacity, 1))


def most_allocated(requested: Int64Array, capacity: Int64Array) -> Int64Array:
    """Score the share of the capacity that is used."""
    used = np.minimum(requested, capacity)
    return _quotient(used * MAX_NODE_SCORE, np.maximum(capacity, 1))


def broken_linear(shape: Sequence[UtilizationShapePoint]) -> ResourceScorer:
    """Return a function of utilization that is linear between the points of `shape`.

    There are only 101 utilizations, so it is a table.
    """
    scale = MAX_NODE_SCORE // MAX_CUSTOM_PRIORITY_SCORE
    scaled = [(point.utilization, point.score * scale) for point in shape]
    table = np.array([_interpolate(scaled, percent) for percent in range(101)], dtype=np.int64)

    def score(requested: Int64Array, capacity: Int64Array) -> Int64Array:
        utilization = _quotient(requested * 100, np.maximum(capacity, 1))
        # What wraps around to less than nothing is as good as nothing.
        return table[np.where(requested > capacity, 100, np.maximum(utilization, 0))]

    return score


def _quotient(dividend: Int64Array, divisor: Int64Array | int) -> Int64Array:
    """Divide by something positive, towards zero.

    Floats do it in a fraction of the time. Where all amounts are exact in them, so is the result:
    a quotient that is no integer is farther from the next one than it may be rounded.
    """
    if _are_exact(dividend) and _are_exact(divisor):
        return (dividend / divisor).astype(np.int64)
    quotient = dividend // divisor  # which rounds down
    if dividend.min(initial=0) < 0:
        quotient += (dividend < 0) & (quotient * divisor != dividend)
    return quotient


def _are_exact(amounts: Int64Array | int) -> bool:
    if isinstance(amounts, int):
        return -EXACT < amounts < EXACT
    return amounts.max(initial=0) < EXACT and amounts.min(initial=0) > -EXACT


def _interpolate(points: Sequence[tuple[int, int]], at: int) -> int:
    for index, (utilization, score) in enumerate(points):
        if at <= utilization:
            if index == 0:
                return score
            before, score_before = points[index - 1]
            rise, run = (score - score_before) * (at - before), utilization - before
            # Towards zero, also where the curve falls.
            return score_before + (rise // run if rise >= 0 else -(-rise // run))
    return points[-1][1] if points else 0


def _weighted_mean(used: Sequence[Usage], rows: int, scorer: ResourceScorer) -> Int64Array:
    total = np.zeros(rows, dtype=np.int64)
    weights: Int64Array | int = 0
    for each in used:
        scores = scorer(each.allocated + each.request, each.allocatable)
        if each.allocatable.all():
            total += scores * each.weight
            weights = weights + each.weight
        else:
            weight = np.where(each.allocatable != 0, each.weight, 0)
            total += scores * weight
            weights = weights + weight
    divisor = max(weights, 1) if isinstance(weights, int) else np.maximum(weights, 1)
    return _quotient(total, divisor)


def _mean_of_positive(used: Sequence[Usage], rows: int, scorer: ResourceScorer) -> Int64Array:
    total = np.zeros(rows, dtype=np.int64)
    weights = np.zeros(rows, dtype=np.int64)
    for each in used:
        score = scorer(each.allocated + each.request, each.allocatable)
        counts = (each.allocatable != 0) & (score > 0)
        total += np.where(counts, score * each.weight, 0)
        weights += np.where(counts, each.weight, 0)
    # Rounded half away from zero; nothing here is negative.
    return np.floor(total / np.maximum(weights, 1) + 0.5).astype(np.int64)


def balance_change(used: Sequence[Usage], rows: int) -> Int64Array:
    """Score how much more evenly each row's resources are used with the pod than without it."""
    shares = [_Shares(each) for each in used]
    after = _balance([(each.there, each.with_pod) for each in shares], rows)
    before = _balance([(each.there, each.without_pod) for each in shares], rows)
    return after - before


class _Shares:
    """Which share of a resource is taken in each row, at most all; none where there is nothing."""

    __slots__ = ("there", "with_pod", "without_pod")

    def __init__(self, used: Usage) -> None:
        #: where there is any of it, None: everywhere
        self.there: BoolArray | None = None
        there = used.allocatable
        if there.min(initial=1) < 1:
            self.there = there != 0
            there = np.maximum(there, 1)
        whole = there.astype(np.float64)
        self.with_pod = self._share(used.allocated + used.request, whole)
        self.without_pod = self._share(used.allocated, whole)

    def _share(self, taken: Int64Array, whole: Float64Array) -> Float64Array:
        share = taken / whole
        np.minimum(share, 1.0, out=share)
        if self.there is not None:
            share *= self.there
        return share


def _balance(shares: Sequence[tuple[BoolArray | None, Float64Array]], rows: int) -> Int64Array:
    """Score how evenly the resources of each row are used: 100 if all to the same share.

    The deviation of two shares is half their difference, of more their standard deviation. Sums
    are taken in the order of the resources: the result is cut to an integer, every bit counts.
    """
    deviation = _deviation_of_two(*shares) if len(shares) == 2 else _deviation(shares, rows)
    np.subtract(1, deviation, out=deviation)
    deviation *= MAX_NODE_SCORE
    return deviation.astype(np.int64)


def _deviation_of_two(
    one: tuple[BoolArray | None, Float64Array], other: tuple[BoolArray | None, Float64Array]
) -> Float64Array:
    """The usual case, cpu and memory, with as few steps as possible."""
    deviation = one[1] - other[1]
    np.abs(deviation, out=deviation)
    deviation /= 2
    for there, _ in (one, other):
        if there is not None:
            deviation *= there
    return deviation


def _deviation(shares: Sequence[tuple[BoolArray | None, Float64Array]], rows: int) -> Float64Array:
    count = np.zeros(rows, dtype=np.int64)
    total, highest, lowest = np.zeros(rows), np.zeros(rows), np.ones(rows)
    everywhere = np.ones(rows, dtype=np.bool_)
    known = [(everywhere if there is None else there, share) for there, share in shares]
    for there, share in known:
        count += there
        total += share
        highest = np.maximum(highest, share)
        lowest = np.where(there, np.minimum(lowest, share), lowest)
    deviation = np.where(count == 2, (highest - lowest) / 2, 0.0)
    if len(known) > 2:
        several = np.maximum(count, 1)
        mean = total / several
        squares = np.zeros(rows)
        for there, share in known:
            squares += np.where(there, (share - mean) * (share - mean), 0.0)
        deviation = np.where(count > 2, np.sqrt(squares / several), deviation)
    return deviation
