"""Scores of nodes by their resources: the arithmetic on arrays.

All of it is int64 arithmetic as in Go: capacities near 2^63 wrap around when they are multiplied,
and division truncates. Floats give the same results in a fraction of the time as long as all
amounts are exact, which those of real nodes are: `cluster/float_resource.py` caches them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kubesched.api.requests import is_scalar_resource
from kubesched.cluster.arrays import BoolArray, Float64Array, Int64Array
from kubesched.cluster.float_resource import SMALL
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


class ScoredResource(NamedTuple):
    """A resource that is scored for a pod."""

    #: -1 if no node offers it
    number: int
    request: int
    weight: int
    #: counts devices on nodes that do not offer it, None if there are none
    devices: DeviceCounts | None = None


class Usage(NamedTuple):
    """One resource in each row, and the pod's request."""

    allocatable: Amounts
    #: the same, at least one
    divisor: Amounts
    requested: Amounts
    #: whether every row offers some
    is_everywhere: bool
    request: int
    weight: int

    @classmethod
    def in_integers(
        cls, allocatable: Int64Array, requested: Int64Array, wanted: ScoredResource
    ) -> Usage:
        """Return it in integers, for amounts of any size."""
        _, request, weight, _ = wanted
        return cls(
            allocatable,
            np.maximum(allocatable, 1),
            requested,
            bool(allocatable.all()),
            request,
            weight,
        )


#: (requested with the pod, usage) → score of each row; may modify the former
ResourceScorer = Callable[[Amounts, Usage], Amounts]


def wanted_resources(
    resources: Sequence[ResourceSpec],
    requests: dict[str, int],
    table: NodeTable,
    find_devices: FindDevices = lambda _: None,
) -> list[ScoredResource]:
    """Return the resources that are scored for a pod.

    A resource that no node offers is not scored, an extended one only for pods that request it.
    """
    found = []
    for each in resources:
        request = requests.get(each.name, 0)
        number = table.resources.find(each.name)
        if not request and is_scalar_resource(each.name):
            continue
        devices = find_devices(each.name)
        if number is not None or devices is not None:
            found.append(
                ScoredResource(-1 if number is None else number, request, each.weight, devices)
            )
    return found


def usages(wanted: Sequence[ScoredResource], nodes: NodeRows, *, non_zero: bool) -> list[Usage]:
    """Return the usage of resources in some rows; rows without one have 0 of it.

    With `non_zero`, cpu and memory of the nodes' pods include the default for pods that request
    none.
    """
    return (
        nodes.are_real and _usages_in_floats(wanted, nodes, non_zero=non_zero)
    ) or _usages_in_integers(wanted, nodes, non_zero=non_zero)


def _usages_in_floats(
    wanted: Sequence[ScoredResource], nodes: NodeRows, *, non_zero: bool
) -> list[Usage] | None:
    """Return the usage in the table's cached floats; None if they are not exact."""
    table, rows, found = nodes.table, nodes.rows, []
    for number, request, weight, devices in wanted:
        if devices is not None:
            return None
        floats = table.float_resource(number)
        if not floats.is_small or request >= SMALL:
            return None
        requested = floats.non_zero_requested if non_zero else floats.requested
        found.append(
            Usage(
                floats.allocatable[rows],
                floats.divisor[rows],
                requested[rows],
                floats.is_everywhere,
                request,
                weight,
            )
        )
    return found


def _usages_in_integers(
    wanted: Sequence[ScoredResource], nodes: NodeRows, *, non_zero: bool
) -> list[Usage]:
    with_default = (CPU, MEMORY) if non_zero else ()
    found = []
    for each in wanted:
        if each.devices is not None:
            found.append(_usage_of_devices(each.devices, nodes, each))
            continue
        of_pods = nodes.non_zero_requested if each.number in with_default else nodes.requested
        found.append(Usage.in_integers(nodes.allocatable(each.number), of_pods(each.number), each))
    return found


def _usage_of_devices(devices: DeviceCounts, nodes: NodeRows, wanted: ScoredResource) -> Usage:
    """Count devices on nodes that do not offer the resource by itself."""
    there, taken = devices.at(nodes.rows)
    if wanted.number < 0:
        return Usage.in_integers(there, taken, wanted)
    allocatable, requested = nodes.allocatable(wanted.number), nodes.requested(wanted.number)
    by_devices = (allocatable == 0) & (there > 0)
    return Usage.in_integers(
        np.where(by_devices, there, allocatable), np.where(by_devices, taken, requested), wanted
    )


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
    """Score the free share of the capacity."""
    free = np.subtract(used.allocatable, requested, out=requested)
    # Usually no row is overcommitted, and finding the minimum takes half as long as capping.
    if np.minimum.reduce(free, initial=0) < 0:
        np.maximum(free, 0, out=free)
    free *= MAX_NODE_SCORE
    return _quotient(free, used.divisor)


def most_allocated(requested: Amounts, used: Usage) -> Amounts:
    """Score the requested share of the capacity."""
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
        # An overflow to a negative number counts as 0.
        percent = np.where(requested > used.allocatable, 100, np.maximum(utilization, 0))
        scores: Int64Array = curve[percent.astype(np.intp)]
        return scores

    return score


def _quotient(dividend: Amounts, divisor: Amounts | int) -> Amounts:
    """Divide by a positive number, truncating; may modify the dividend.

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
    """Score the balance of each row's resources: 100 if all have the same requested share.

    The deviation of two shares is half their difference, of more their standard deviation. Sums
    are taken in the order of the resources: the result is cut to an integer, every bit counts.
    """
    shares = [_ResourceShare(each) for each in used]
    deviation = _deviation_of_two(*shares) if len(shares) == 2 else _deviation(shares, rows)
    np.subtract(1, deviation, out=deviation)
    deviation *= MAX_NODE_SCORE
    return deviation.astype(np.int64)


class _ResourceShare:
    """The requested share of a resource in each row; none where the capacity is 0."""

    __slots__ = ("there", "values")

    def __init__(self, used: Usage) -> None:
        self.values: Float64Array = (used.requested + used.request) / used.divisor
        #: rows with any capacity, None: all
        self.there: BoolArray | None = None
        if np.maximum.reduce(self.values, initial=0.0) > 1.0:
            np.minimum(self.values, 1.0, out=self.values)
        if not used.is_everywhere:
            self.there = used.allocatable != 0
            self.values *= self.there


def _deviation_of_two(one: _ResourceShare, other: _ResourceShare) -> Float64Array:
    """Return the deviation of two shares, usually cpu and memory, with few array operations."""
    deviation = one.values - other.values
    np.abs(deviation, out=deviation)
    deviation *= 0.5
    for share in (one, other):
        if share.there is not None:
            deviation *= share.there
    return deviation


def _deviation(shares: Sequence[_ResourceShare], rows: int) -> Float64Array:
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
