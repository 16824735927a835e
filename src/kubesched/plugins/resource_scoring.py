"""How nodes are scored by their resources: the arithmetic, as functions on arrays.

All of it is int64 arithmetic as in Go: capacities near 2^63 wrap around when they are multiplied,
and division is towards zero. Floats do the same in a fraction of the time as long as all amounts
are exact in them, which those of real nodes are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

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

#: Amounts below this are exact as floats.
EXACT: Final = 1 << 53
#: The sum of two amounts below this is still exact when it is multiplied by 100: 32 TiB of memory.
SMALL: Final = 1 << 45
#: Whole numbers, as int64 or as float64.
Amounts: TypeAlias = npt.NDArray[Any]
#: (requested with the pod, capacity) of one resource in each row → score; may change the former
ResourceScorer = Callable[[Amounts, Amounts], Amounts]


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

    def is_small(self) -> bool:
        """Tell whether all of it can be reckoned with in floats."""
        return self.request < SMALL and _are_small(self.allocatable) and _are_small(self.allocated)

    def with_pod(self, *, in_floats: bool) -> tuple[Amounts, Amounts]:
        """Return what the pod would make it, in an array of its own, and what there is."""
        if not in_floats:
            return self.allocated + self.request, self.allocatable
        taken = self.allocated.astype(np.float64)
        taken += self.request
        return taken, self.allocatable.astype(np.float64)


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


def least_allocated(requested: Amounts, capacity: Amounts) -> Amounts:
    """Score the share of the capacity that stays free."""
    free = np.subtract(capacity, requested, out=requested)
    np.maximum(free, 0, out=free)
    free *= MAX_NODE_SCORE
    return _quotient(free, np.maximum(capacity, 1))


def most_allocated(requested: Amounts, capacity: Amounts) -> Amounts:
    """Score the share of the capacity that is used."""
    used = np.minimum(requested, capacity, out=requested)
    used *= MAX_NODE_SCORE
    return _quotient(used, np.maximum(capacity, 1))


def broken_linear(shape: Sequence[UtilizationShapePoint]) -> ResourceScorer:
    """Return a function of utilization that is linear between the points of `shape`.

    There are only 101 utilizations, so it is a table.
    """
    scale = MAX_NODE_SCORE // MAX_CUSTOM_PRIORITY_SCORE
    scaled = [(point.utilization, point.score * scale) for point in shape]
    table = np.array([_interpolate(scaled, percent) for percent in range(101)], dtype=np.int64)

    def score(requested: Amounts, capacity: Amounts) -> Amounts:
        utilization = _quotient(requested * 100, np.maximum(capacity, 1))
        # What wraps around to less than nothing is as good as nothing.
        percent = np.where(requested > capacity, 100, np.maximum(utilization, 0))
        return table[percent.astype(np.intp)]

    return score


def _quotient(dividend: Amounts, divisor: Amounts | int) -> Amounts:
    """Divide by something positive, towards zero; may change the dividend.

    Where amounts are exact in floats, so is the result: a quotient that is no integer is farther
    from the next one than it may be rounded.
    """
    if dividend.dtype == np.float64:
        np.divide(dividend, divisor, out=dividend)
        return np.trunc(dividend, out=dividend)
    quotient: Amounts = dividend // divisor  # which rounds down
    if dividend.min(initial=0) < 0:
        quotient += (dividend < 0) & (quotient * divisor != dividend)
    return quotient


def _are_small(amounts: Int64Array) -> bool:
    if not len(amounts):
        return True
    return bool(np.minimum.reduce(amounts) >= 0 and np.maximum.reduce(amounts) < SMALL)


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
    in_floats = all(each.is_small() for each in used)
    total: Amounts = np.zeros(rows, dtype=np.float64 if in_floats else np.int64)
    weights: Int64Array | int = 0
    for each in used:
        scores = scorer(*each.with_pod(in_floats=in_floats))
        weight: Int64Array | int = each.weight
        if np.count_nonzero(each.allocatable) < rows:
            weight = np.where(each.allocatable != 0, each.weight, 0)
        total += scores * weight
        weights = weights + weight
    divisor = max(weights, 1) if isinstance(weights, int) else np.maximum(weights, 1)
    return _quotient(total, divisor).astype(np.int64, copy=False)


def _mean_of_positive(used: Sequence[Usage], rows: int, scorer: ResourceScorer) -> Int64Array:
    in_floats = all(each.is_small() for each in used)
    total = np.zeros(rows, dtype=np.int64)
    weights = np.zeros(rows, dtype=np.int64)
    for each in used:
        score = scorer(*each.with_pod(in_floats=in_floats))
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
