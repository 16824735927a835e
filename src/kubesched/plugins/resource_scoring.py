"""How nodes are scored by their resources: the arithmetic, as functions on arrays.

All of it is int64 arithmetic as in Go: capacities near 2^63 wrap around when they are multiplied,
and division is towards zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def _quotient(dividend: Int64Array, divisor: Int64Array) -> Int64Array:
    """Divide by something positive, towards zero; NumPy's ``//`` rounds down."""
    quotient = dividend // divisor
    if dividend.min(initial=0) < 0:
        quotient += (dividend < 0) & (quotient * divisor != dividend)
    return quotient


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
    weights = np.zeros(rows, dtype=np.int64)
    for each in used:
        weight = np.where(each.allocatable != 0, each.weight, 0)
        total += scorer(each.allocated + each.request, each.allocatable) * weight
        weights += weight
    return _quotient(total, np.maximum(weights, 1))


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


def balance(used: Sequence[Usage], rows: int, *, with_pod: bool) -> Int64Array:
    """Score how evenly the resources of each row are used: 100 if all to the same share.

    The deviation of two shares is half their difference, of more their standard deviation. Sums
    are taken in the order of the resources: the result is cut to an integer, every bit counts.
    """
    if len(used) == 2:
        return _balance_of_two(used[0], used[1], with_pod=with_pod)
    count = np.zeros(rows, dtype=np.int64)
    total, highest, lowest = np.zeros(rows), np.zeros(rows), np.ones(rows)
    shares = []
    for each in used:
        there, share = _share(each, with_pod=with_pod)
        shares.append((there, share))
        count += there
        total += share
        highest = np.maximum(highest, share)
        lowest = np.where(there, np.minimum(lowest, share), lowest)
    deviation = np.where(count == 2, (highest - lowest) / 2, 0.0)
    if len(used) > 2:
        several = np.maximum(count, 1)
        mean = total / several
        squares = np.zeros(rows)
        for there, share in shares:
            squares += np.where(there, (share - mean) * (share - mean), 0.0)
        deviation = np.where(count > 2, np.sqrt(squares / several), deviation)
    return ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)


def _share(used: Usage, *, with_pod: bool) -> tuple[BoolArray, Float64Array]:
    """Return where there is any of a resource, and which share of it is taken, at most all."""
    there = used.allocatable != 0
    taken = used.allocated + used.request if with_pod else used.allocated
    share = np.minimum(taken / np.maximum(used.allocatable, 1), 1.0)
    return there, share * there


def _balance_of_two(one: Usage, other: Usage, *, with_pod: bool) -> Int64Array:
    """The usual case, cpu and memory, with as few steps as possible."""
    one_there, one_share = _share(one, with_pod=with_pod)
    other_there, other_share = _share(other, with_pod=with_pod)
    deviation = np.abs(one_share - other_share) / 2 * (one_there & other_there)
    return ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)
