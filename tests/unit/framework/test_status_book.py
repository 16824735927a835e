"""The status book: rejections as numbers, and which of two filters comes first."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.status import Code, Status, error, unschedulable
from kubesched.framework.status_book import STATUSES, StatusBook
from kubesched.framework.verdict import ALL_PASS, Verdict

A, B = unschedulable("a"), unschedulable("b")


def test_zero_stands_for_no_rejection() -> None:
    book = StatusBook()
    assert book.statuses[0].ok
    assert book.number(0, A) == 1


def test_a_status_has_one_number_for_each_filter_that_gives_it() -> None:
    book = StatusBook()
    first = book.number(0, A)
    assert book.number(0, A) == first
    assert book.number(1, A) != first
    assert book.number(0, B) != first


def test_a_verdict_becomes_numbers_of_statuses_with_their_author() -> None:
    book = StatusBook()
    verdict = Verdict(np.array([0, 2, 1, 2]), (A, B))
    numbers = book.numbers_of(verdict, order=4, plugin="X")
    assert numbers is not None
    assert [book.statuses[number] for number in numbers.tolist()[1:]] == [
        B.by("X"),
        A.by("X"),
        B.by("X"),
    ]
    assert numbers[0] == 0
    assert book.numbers_of(ALL_PASS, order=4, plugin="X") is None


def test_what_is_not_a_rejection_is_an_error() -> None:
    book = StatusBook()
    rejected, wrong = book.number(0, A), book.number(1, error("boom"))
    odd = book.number(2, Status(code=error("").code))
    assert book.errors == {wrong, odd}
    assert rejected not in book.errors


@given(
    given_by=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    pairs=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=6),
)
def test_the_filter_that_comes_first_counts(
    given_by: list[int], pairs: list[tuple[int, int]]
) -> None:
    book = StatusBook()
    orders = {0: 99}
    for index, order in enumerate(given_by):
        orders[book.number(order, unschedulable(f"reason {index}"))] = order
    pairs = [(one % len(orders), other % len(orders)) for one, other in pairs]
    one, other = (np.array(column, dtype=np.int32) for column in zip(*pairs, strict=True))
    want = [b if orders[b] < orders[a] else a for a, b in pairs]
    assert book.first(one, other).tolist() == want


def test_errors_are_found_in_columns() -> None:
    book = StatusBook()
    rejected, wrong = book.number(0, A), book.number(1, error("boom"))
    fine, bad = (np.array(each, dtype=np.int32) for each in ([0, rejected], [rejected, wrong]))
    assert not book.any_error()
    assert not book.any_error(fine, [])
    assert book.any_error(fine, bad)
    assert book.any_error(fine, [wrong])


def test_a_book_grows() -> None:
    book = StatusBook()
    numbers = [book.number(n % 7, unschedulable(f"reason {n}")) for n in range(1000)]
    last = book.number(3, error("boom"))
    assert numbers == list(range(1, 1001))
    one, other = (np.array(each, dtype=np.int32) for each in (numbers[:500], numbers[500:]))
    want = [b if (b - 1) % 7 < (a - 1) % 7 else a for a, b in zip(one, other, strict=True)]
    assert book.first(one, other).tolist() == want
    assert not book.any_error(one, other)
    assert book.any_error([last])


def test_a_book_is_full_when_it_has_more_than_rows_could_account_for() -> None:
    book = StatusBook()
    for n in range(STATUSES):
        assert not book.is_full(rows=0)
        book.number(0, unschedulable(f"pod {n} is not welcome"))
    assert book.is_full(rows=0)
    assert not book.is_full(rows=1)


def test_a_cleared_book_starts_anew_and_leaves_others_what_they_keep() -> None:
    book = StatusBook()
    kept = book.statuses
    wrong = book.number(1, error("boom"))
    book.clear()
    assert kept == [Status(Code.SUCCESS), error("boom")]
    assert book.statuses == [Status(Code.SUCCESS)]
    assert not book.errors
    assert book.number(0, A) == wrong
    assert not book.any_error([wrong])
    assert book.first(np.array([0, 1]), np.array([1, 0])).tolist() == [1, 1]
