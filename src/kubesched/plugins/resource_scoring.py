"""How nodes are scored by their resources: the arithmetic, as functions on arrays.

All of it is int64 arithmetic as in Go: capacities near 2^63 wrap around when they are multiplied,
and division is towards zero. Floats do the same in a fraction of the time as long as all amounts
are exact in them, which those of real nodes are: `cluster/float_resource.py` has them ready.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kubesched.api.requests import is_scalar_resource
from kubesched.cluster.arrays import BoolArray, Float64Array, Int64Array, Rows
from kubesched.cluster.float_resource import SMALL, FloatResource
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
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
from kubesched.plugins.device_counts import DeviceCounts, FindDevices

#: Amounts below this are exact as floats.
EXACT: Final = 1 << 53
#: Whole numbers, as int64 or as float64.
Amounts: TypeAlias = npt.NDArray[Any]


class Wanted(NamedTuple):
    """A resource that counts for a pod."""

    #: -1 if no node offers it
    number: int
    request: int
    weight: int
    #: what nodes have instead that do not offer it, None for nothing
    devices: DeviceCounts | None = None


class Usage(NamedTuple):
    """One resource in each row, and what the pod would add."""

    allocatable: Amounts
    #: the same, at least one
    divisor: Amounts
    requested: Amounts
    #: whether every row offers some
    is_everywhere: bool
    request: int
    weight: int

    @classmethod
    def in_floats(cls, floats: FloatResource, rows: Rows, wanted: Wanted) -> Usage:
        """Return it as it is kept for all rows."""
        _, request, weight, _ = wanted
        return cls(
            floats.allocatable[rows],
            floats.divisor[rows],
            floats.requested[rows],
            floats.is_everywhere,
            request,
            weight,
        )

    @classmethod
    def in_integers(cls, allocatable: Int64Array, requested: Int64Array, wanted: Wanted) -> Usage:
        """Return it for amounts of any size."""
        _, request, weight, _ = wanted
        return cls(
            allocatable,
            np.maximum(allocatable, 1),
            requested,
            bool(allocatable.all()),
            request,
            weight,
        )


#: (what would be taken with the pod, usage) → score of each row; may change the former
ResourceScorer = Callable[[Amounts, Usage], Amounts]


def wanted_resources(
    resources: Sequence[ResourceSpec],
    requests: dict[str, int],
    table: NodeTable,
    find_devices: FindDevices = lambda _: None,
) -> list[Wanted]:
    """Return the resources that count for a pod.

    One that no node offers counts for no node, an extended one only for pods that request it.
    """
    found = []
    for each in resources:
        request = requests.get(each.name, 0)
        number = table.resources.find(each.name)
        if not request and is_scalar_resource(each.name):
            continue
        devices = find_devices(each.name)
        if number is not None or devices is not None:
            found.append(Wanted(-1 if number is None else number, request, each.weight, devices))
    return found


def usages(wanted: Sequence[Wanted], nodes: NodeRows, *, non_zero: bool) -> list[Usage]:
    """Look resources up in some rows; rows without one have 0 of it.

    With `non_zero`, cpu and memory of the nodes' pods include the default for pods that request
    none.
    """
    with_default = (CPU, MEMORY) if non_zero else ()
    if nodes.are_real and not any(each.devices for each in wanted):
        table, rows = nodes.table, nodes.rows
        floats = [
            table.float_resource(each.number, non_zero=each.number in with_default)
            for each in wanted
        ]
        if all(map(_fits_floats, floats, wanted)):
            pairs = zip(floats, wanted, strict=True)
            return [Usage.in_floats(resource, rows, each) for resource, each in pairs]
    found = []
    for each in wanted:
        if each.devices is not None:
            found.append(_usage_of_devices(each.devices, nodes, each))
            continue
        of_pods = nodes.non_zero_requested if each.number in with_default else nodes.requested
        found.append(Usage.in_integers(nodes.allocatable(each.number), of_pods(each.number), each))
    return found


def _usage_of_devices(devices: DeviceCounts, nodes: NodeRows, wanted: Wanted) -> Usage:
    """Count devices on nodes that do not offer the resource by itself."""
    there, taken = devices.at(nodes.rows)
    if wanted.number < 0:
        return Usage.in_integers(there, taken, wanted)
    allocatable, requested = nodes.allocatable(wanted.number), nodes.requested(wanted.number)
    by_devices = (allocatable == 0) & (there > 0)
    return Usage.in_integers(
        np.where(by_devices, there, allocatable), np.where(by_devices, taken, requested), wanted
    )


def _fits_floats(floats: FloatResource, wanted: Wanted) -> bool:
    return floats.is_small and wanted.request < SMALL


def strategy_scorer(strategy: ScoringStrategy) -> Callable[[Sequence[Usage], int], Int64Array]:
    """Return the scoring function of a strategy: (usages, number of rows) → scores."""
    if strategy.type == LEAST_ALLOCATED:
        return lambda used, rows: weighted_mean(used, rows, least_allocated)
    if strategy.type == MOST_ALLOCATED:
        return lambda used, rows: weighted_mean(used, rows, most_allocated)
    parameters = strategy.requested_to_capacity_ratio
    curve = _by_utilization(broken_linear(parameters.shape if parameters else ()))
    return lambda used, rows: _mean_of_positive(used, rows, curve)


def least_allocated(requested: Amounts, used: Usage) -> Amounts:
    """Score the share of the capacity that stays free."""
    free = np.subtract(used.allocatable, requested, out=requested)
    np.maximum(free, 0, out=free)
    free *= MAX_NODE_SCORE
    return _quotient(free, used.divisor)


def most_allocated(requested: Amounts, used: Usage) -> Amounts:
    """Score the share of the capacity that is used."""
    share = np.minimum(requested, used.allocatable, out=requested)
    share *= MAX_NODE_SCORE
    return _quotient(share, used.divisor)


def broken_linear(shape: Sequence[UtilizationShapePoint]) -> Int64Array:
    """Return a score for each utilization in percent, linear between the points of `shape`."""
    scale = MAX_NODE_SCORE // MAX_CUSTOM_PRIORITY_SCORE
    scaled = [(point.utilization, point.score * scale) for point in shape]
    return np.array([_interpolate(scaled, percent) for percent in range(101)], dtype=np.int64)


def _by_utilization(curve: Int64Array) -> ResourceScorer:
    def score(requested: Amounts, used: Usage) -> Amounts:
        utilization = _quotient(requested * 100, used.divisor)
        # What wraps around to less than nothing is as good as nothing.
        percent = np.where(requested > used.allocatable, 100, np.maximum(utilization, 0))
        scores: Int64Array = curve[percent.astype(np.intp)]
        return scores

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


def weighted_mean(used: Sequence[Usage], rows: int, scorer: ResourceScorer) -> Int64Array:
    """Return the mean score of the resources that a row offers, by weight."""
    total: Amounts | None = None
    weights: Int64Array | int = 0
    for each in used:
        scores = scorer(each.requested + each.request, each)
        weight: Int64Array | int = each.weight
        if not each.is_everywhere:
            weight = np.where(each.allocatable != 0, each.weight, 0)
        if not isinstance(weight, int) or weight != 1:
            scores *= weight
        total = scores if total is None else np.add(total, scores, out=total)
        weights = weights + weight
    if total is None:
        return np.zeros(rows, dtype=np.int64)
    divisor = max(weights, 1) if isinstance(weights, int) else np.maximum(weights, 1)
    return _quotient(total, divisor).astype(np.int64, copy=False)


def _mean_of_positive(used: Sequence[Usage], rows: int, scorer: ResourceScorer) -> Int64Array:
    total = np.zeros(rows, dtype=np.int64)
    weights = np.zeros(rows, dtype=np.int64)
    for each in used:
        score = scorer(each.requested + each.request, each)
        counts = (each.allocatable != 0) & (score > 0)
        total += np.where(counts, score * each.weight, 0)
        weights += np.where(counts, each.weight, 0)
    # Rounded half away from zero; nothing here is negative.
    return np.floor(total / np.maximum(weights, 1) + 0.5).astype(np.int64)


def balance(used: Sequence[Usage], rows: int) -> Int64Array:
    """Score how evenly the resources of each row would be used: 100 if all to the same share.

    The deviation of two shares is half their difference, of more their standard deviation. Sums
    are taken in the order of the resources: the result is cut to an integer, every bit counts.
    """
    shares = [_Share(each) for each in used]
    deviation = _deviation_of_two(*shares) if len(shares) == 2 else _deviation(shares, rows)
    np.subtract(1, deviation, out=deviation)
    deviation *= MAX_NODE_SCORE
    return deviation.astype(np.int64)


class _Share:
    """Which share of a resource would be taken in each row; none where there is nothing."""

    __slots__ = ("there", "values")

    def __init__(self, used: Usage) -> None:
        self.values: Float64Array = (used.requested + used.request) / used.divisor
        #: where there is any of it, None: everywhere
        self.there: BoolArray | None = None
        np.minimum(self.values, 1.0, out=self.values)
        if not used.is_everywhere:
            self.there = used.allocatable != 0
            self.values *= self.there


def _deviation_of_two(one: _Share, other: _Share) -> Float64Array:
    """The usual case, cpu and memory, with as few steps as possible."""
    deviation = one.values - other.values
    np.abs(deviation, out=deviation)
    deviation *= 0.5
    for share in (one, other):
        if share.there is not None:
            deviation *= share.there
    return deviation


def _deviation(shares: Sequence[_Share], rows: int) -> Float64Array:
    count = np.zeros(rows, dtype=np.int64)
    total, highest, lowest = np.zeros(rows), np.zeros(rows), np.ones(rows)
    everywhere = np.ones(rows, dtype=np.bool_)
    known = [(everywhere if each.there is None else each.there, each.values) for each in shares]
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
