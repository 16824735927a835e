"""The arithmetic of scores by resources is Go's, however it is done here."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cluster.float_resource import SMALL
from kubesched.config.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    RequestedToCapacityRatioParam,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kubesched.plugins.resource_scoring import (
    EXACT,
    ScoredResource,
    Usage,
    _quotient,
    balance,
    strategy_scorer,
)

MOST = (1 << 63) - 1
amounts = st.one_of(
    st.integers(0, 1000),
    st.integers(EXACT - 3, EXACT + 3),
    st.integers(0, MOST),
    st.builds(lambda whole, part: whole * 3 + part, st.integers(0, 1 << 50), st.integers(0, 2)),
)


def towards_zero(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // divisor
    return quotient if dividend >= 0 else -quotient


@given(st.lists(st.tuples(amounts, st.booleans(), amounts), min_size=1, max_size=20))
def test_quotients_are_exact_and_towards_zero(cases: list[tuple[int, bool, int]]) -> None:
    dividends = [-amount if negative else amount for amount, negative, _ in cases]
    divisors = [max(divisor, 1) for _, _, divisor in cases]
    found = _quotient(np.array(dividends, dtype=np.int64), np.array(divisors, dtype=np.int64))
    assert found.tolist() == list(map(towards_zero, dividends, divisors))
    (one,) = _quotient(np.array(dividends[:1], dtype=np.int64), divisors[0]).tolist()
    assert one == towards_zero(dividends[0], divisors[0])


@given(st.integers(1 - EXACT, EXACT - 1), st.integers(1, EXACT - 1))
def test_quotients_of_exact_floats_are_exact(dividend: int, divisor: int) -> None:
    (found,) = _quotient(np.array([float(dividend)]), np.array([float(divisor)])).tolist()
    assert found == towards_zero(dividend, divisor)
    near = divisor * (dividend // divisor)  # where a quotient is nearly, or just, an integer
    for each in (near - 1, near, near + 1):
        if abs(each) < EXACT:
            (found,) = _quotient(np.array([float(each)]), np.array([float(divisor)])).tolist()
            assert found == towards_zero(each, divisor)


STRATEGIES = [
    ScoringStrategy(type=LEAST_ALLOCATED),
    ScoringStrategy(type=MOST_ALLOCATED),
    ScoringStrategy(
        type=REQUESTED_TO_CAPACITY_RATIO,
        requested_to_capacity_ratio=RequestedToCapacityRatioParam(
            shape=(
                UtilizationShapePoint(utilization=0, score=2),
                UtilizationShapePoint(utilization=70, score=10),
                UtilizationShapePoint(utilization=100, score=0),
            )
        ),
    ),
]
small = st.one_of(st.integers(0, 100), st.integers(0, SMALL - 1), st.just(SMALL - 1))


def usage(allocatable: list[int], allocated: list[int], request: int, weight: int = 1) -> Usage:
    there, taken = np.array(allocatable, dtype=np.int64), np.array(allocated, dtype=np.int64)
    return Usage.in_integers(there, taken, ScoredResource(0, request, weight))


def as_floats(used: Usage) -> Usage:
    allocatable, divisor, requested = (np.asarray(each, dtype=np.float64) for each in used[:3])
    return used._replace(allocatable=allocatable, divisor=divisor, requested=requested)


@given(
    rows=st.lists(st.tuples(small, small, small, small), min_size=1, max_size=8),
    requests=st.tuples(small, small),
    weights=st.tuples(st.integers(1, 100), st.integers(1, 100)),
    strategy=st.sampled_from(STRATEGIES),
)
def test_floats_give_the_scores_that_integers_give(
    rows: list[tuple[int, int, int, int]],
    requests: tuple[int, int],
    weights: tuple[int, int],
    strategy: ScoringStrategy,
) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    used = [usage(columns[2 * i], columns[2 * i + 1], requests[i], weights[i]) for i in (0, 1)]
    for score in (strategy_scorer(strategy), balance):
        in_integers = score(used, len(rows))
        in_floats = score(list(map(as_floats, used)), len(rows))
        assert in_floats.tolist() == in_integers.tolist()
        assert in_floats.dtype == in_integers.dtype == np.int64


def test_resources_that_are_used_to_the_same_share_are_in_balance() -> None:
    cpu, memory = usage([10, 10, 10], [5, 0, 3], 0), usage([20, 20, 20], [10, 0, 0], 10)
    # Half of the one, and all, half or half of the other.
    assert balance([cpu, memory], 3).tolist() == [75, 75, 90]
    assert balance([cpu, memory._replace(request=0)], 3).tolist() == [100, 100, 85]


@pytest.mark.parametrize("others", [0, 1])
def test_a_resource_that_a_node_does_not_have_does_not_count_there(others: int) -> None:
    cpu, memory = usage([10, 0], [0, 0], 5), usage([10, 10], [0, 0], 0)
    third = [usage([0, 0], [0, 0], 5)] * others
    assert balance([cpu, memory, *third], 2).tolist() == [75, 100]


def test_more_than_all_counts_as_all() -> None:
    cpu, memory = usage([10], [30], 5), usage([10], [10], 0)
    assert balance([cpu, memory], 1).tolist() == [100]
