"""The arithmetic of scores by resources is Go's, however it is done here."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.plugins.resource_scoring import EXACT, Usage, _quotient, balance_change

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
