"""Verdicts: one answer a row, and how several become one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.status import Status, unresolvable, unschedulable
from kubesched.framework.verdict import ALL_PASS, Verdict, first_of, reject

A, B, C = unschedulable("a"), unresolvable("b"), unschedulable("c")


def _answers(verdict: Verdict, count: int) -> list[Status | None]:
    return [verdict.status_of(element) for element in range(count)]


def _verdict(*chosen: int, statuses: tuple[Status, ...]) -> Verdict:
    return Verdict(np.array(chosen, dtype=np.int32), statuses)


def test_all_pass() -> None:
    assert _answers(ALL_PASS, 3) == [None, None, None]


def test_reject_some() -> None:
    verdict = reject(np.array([False, True, False]), A)
    assert _answers(verdict, 3) == [None, A, None]


def test_rejecting_none_is_passing_all() -> None:
    assert reject(np.zeros(3, dtype=np.bool_), A) is ALL_PASS


def test_a_view_of_a_column_can_be_rejected() -> None:
    column = np.array([True, False, True, False, True])
    assert _answers(reject(column[::2], A), 3) == [A, A, A]
    assert column.tolist() == [True, False, True, False, True]


@pytest.mark.parametrize(
    ("verdicts", "want"),
    [
        pytest.param([], [None, None, None], id="nobody"),
        pytest.param([ALL_PASS, ALL_PASS], [None, None, None], id="all pass"),
        pytest.param([reject(np.array([True, False, False]), A)], [A, None, None], id="one"),
        pytest.param(
            [
                reject(np.array([True, False, False]), A),
                ALL_PASS,
                _verdict(1, 2, 0, statuses=(B, C)),
            ],
            [A, C, None],
            id="the first rejection of a row counts",
        ),
        pytest.param(
            [_verdict(2, 0, 1, statuses=(B, C)), reject(np.array([True, True, True]), A)],
            [C, A, B],
            id="numbers are shifted behind those before",
        ),
    ],
)
def test_first_of(verdicts: list[Verdict], want: list[Status | None]) -> None:
    combined = first_of(*verdicts)
    for _ in range(2):  # before the reasons are asked for, and after
        rejected = np.logical_or.reduce([np.zeros(3, dtype=np.bool_), *combined.masks()])
        assert (~rejected).tolist() == [status is None for status in want]
        assert _answers(combined, 3) == want


@given(
    st.lists(
        st.lists(st.sampled_from([None, A, B, C]), min_size=4, max_size=4), min_size=1, max_size=4
    )
)
def test_first_of_is_the_first_of_each_row(rows: list[list[Status | None]]) -> None:
    statuses = (A, B, C)
    verdicts = [
        _verdict(
            *(0 if each is None else statuses.index(each) + 1 for each in row), statuses=statuses
        )
        for row in rows
    ]
    want = [next((each for each in column if each), None) for column in zip(*rows, strict=True)]
    assert _answers(first_of(*verdicts), 4) == want
