"""The arithmetic of scores by resources is Go's, however it is done here."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    SMALL,
    Usage,
    _quotient,
    balance_change,
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
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    used = [
        Usage(columns[2 * i], columns[2 * i + 1], request=requests[i], weight=weights[i])
        for i in (0, 1)
    ]
    score = strategy_scorer(strategy)
    assert all(each.is_small() for each in used)
    in_floats = score(used, len(rows))
    with patch.object(Usage, "is_small", lambda _: False):
        in_integers = score(used, len(rows))
    assert in_floats.tolist() == in_integers.tolist()
    assert in_floats.dtype == in_integers.dtype == np.int64


@pytest.mark.parametrize("amount", [SMALL, MOST, -1])
def test_amounts_that_floats_may_not_hold_are_left_to_integers(amount: int) -> None:
    assert not usage([amount], [0], 0).is_small()
    assert not usage([0], [amount], 0).is_small()


def usage(allocatable: list[int], allocated: list[int], request: int) -> Usage:
    return Usage(np.array(allocatable), np.array(allocated), request=request, weight=1)


def test_balance_changes_by_what_the_pod_adds() -> None:
    # Half of one and nothing of the other: 75 of 100. With the pod both are half taken: 100.
    cpu, memory = usage([10, 10], [5, 0], 0), usage([10, 10], [0, 0], 5)
    assert balance_change([cpu, memory], 2).tolist() == [25, -25]


@pytest.mark.parametrize("others", [0, 1])
def test_a_resource_that_a_node_does_not_have_does_not_count_there(others: int) -> None:
    cpu, memory = usage([10, 0], [0, 0], 5), usage([10, 10], [0, 0], 0)
    third = [usage([0, 0], [0, 0], 5)] * others
    assert balance_change([cpu, memory, *third], 2).tolist() == [-25, 0]


def test_more_than_all_counts_as_all() -> None:
    cpu, memory = usage([10], [30], 5), usage([10], [10], 0)
    assert balance_change([cpu, memory], 1).tolist() == [0]
