"""The arithmetic of `resource_scoring` for one row, on plain numbers.

After a placement one row is scored again. An array of one element costs as much as an array of a
thousand, so the two scores that a placement changes have a scalar form. Where amounts are so large
that Go's integers would overflow, or floats round, it defers to the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubesched.api.requests import is_scalar_resource
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.resources import CPU, MEMORY
from kubesched.config.args import ResourceSpec
from kubesched.framework.plugin import MAX_NODE_SCORE
from kubesched.plugins.resource_scoring import EXACT

HALF: Final = MAX_NODE_SCORE // 2

#: Scores a row; None if the amounts need the array form.
RowScorer = Callable[[int], int | None]


def _counted(
    resources: Sequence[ResourceSpec], requests: dict[str, int]
) -> list[tuple[str, int, int]]:
    """Return name, request and weight of the scored resources."""
    found = [(each.name, requests.get(each.name, 0), each.weight) for each in resources]
    return [each for each in found if each[1] != 0 or not is_scalar_resource(each[0])]


def least_allocated_row(
    resources: Sequence[ResourceSpec], requests: dict[str, int], table: NodeTable
) -> RowScorer:
    """Return a function that scores the free share of a row."""
    counted = _counted(resources, requests)

    def score(row: int) -> int | None:
        total = weights = 0
        for name, request, weight in counted:
            number = table.resources.find(name)
            if number is None:
                continue
            capacity = table.allocatable.item(number, row)
            if capacity == 0:
                continue
            taken = table.non_zero_requested if number in (CPU, MEMORY) else table.requested
            used = taken.item(number, row) + request
            if capacity >= EXACT or not 0 <= used < EXACT:
                return None
            if used < capacity:
                total += (capacity - used) * MAX_NODE_SCORE // capacity * weight
            weights += weight
        return total // weights if weights > 0 else None if weights else 0

    return score


def balance_change_row(
    resources: Sequence[ResourceSpec], requests: dict[str, int], table: NodeTable
) -> RowScorer | None:
    """Return a function that scores how a pod changes the balance; None unless of two resources."""
    counted = _counted(resources, requests)
    if len(counted) != 2:
        return None
    (one, one_request, _), (other, other_request, _) = counted

    def score(row: int) -> int | None:
        first, second = table.resources.find(one), table.resources.find(other)
        if first is None or second is None:
            return None
        there = table.allocatable.item(first, row), table.allocatable.item(second, row)
        used = table.requested.item(first, row), table.requested.item(second, row)
        if not _are_exact(there, used):
            return None
        before = _balance(used[0] / there[0], used[1] / there[1])
        after = _balance((used[0] + one_request) / there[0], (used[1] + other_request) / there[1])
        return HALF + (HALF + after - before) // 2

    return score


def balance_row(numbers: Sequence[int], table: NodeTable) -> RowScorer | None:
    """Return a function that scores the balance of a row; None unless of two resources."""
    if len(numbers) != 2:
        return None
    first, second = numbers

    def score(row: int) -> int | None:
        there = table.allocatable.item(first, row), table.allocatable.item(second, row)
        used = table.requested.item(first, row), table.requested.item(second, row)
        if not _are_exact(there, used):
            return None
        return _balance(used[0] / there[0], used[1] / there[1])

    return score


def _are_exact(there: tuple[int, int], used: tuple[int, int]) -> bool:
    return max(there) < EXACT and min(there) > 0 and min(used) >= 0 and max(used) < EXACT


def _balance(one_share: float, other_share: float) -> int:
    deviation = abs(min(one_share, 1.0) - min(other_share, 1.0)) / 2
    return int((1 - deviation) * MAX_NODE_SCORE)
