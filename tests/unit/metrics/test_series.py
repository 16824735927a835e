"""Single series."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.metrics.series import Bundle, Counter, Gauge, Histogram


def test_counter_counts() -> None:
    counter = Counter()
    counter.inc()
    counter.inc(2.5)
    counter.value += 1
    assert counter.read() == 4.5


def test_counter_starts_from_zero_after_a_reset() -> None:
    counter = Counter()
    counter.inc(5)
    counter.reset()
    assert counter.read() == 0
    counter.inc()
    assert counter.read() == 1


def test_counter_shows_what_somebody_else_counts_since_the_last_reset() -> None:
    counted = [3]
    counter = Counter()
    counter.set_function(lambda: counted[0])
    assert counter.read() == 3
    counter.reset()
    counted[0] = 5
    assert counter.read() == 2


def test_gauge_goes_up_and_down() -> None:
    gauge = Gauge()
    gauge.set(5)
    gauge.inc(2)
    assert gauge.read() == 7
    gauge.set(1)
    assert gauge.read() == 1


def test_gauge_asks_its_function_each_time() -> None:
    queue: list[str] = []
    gauge = Gauge()
    gauge.set_function(lambda: len(queue))
    assert gauge.read() == 0
    queue.append("pod")
    assert gauge.read() == 1


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (0, [1, 1, 1, 1]),
        (1, [1, 1, 1, 1]),
        (1.01, [0, 1, 1, 1]),
        (4, [0, 0, 1, 1]),
        (9, [0, 0, 0, 1]),
    ],
)
def test_bound_belongs_to_its_bucket(value: float, want: list[int]) -> None:
    histogram = Histogram((1.0, 2.0, 4.0))
    histogram.observe(value)
    assert histogram.cumulative() == want


@given(st.lists(st.floats(0, 100)))
def test_histogram_counts_what_each_bound_covers(values: list[float]) -> None:
    bounds = (1.0, 10.0, 50.0)
    histogram = Histogram(bounds)
    for value in values:
        histogram.observe(value)
    ordered = sorted(values)
    assert histogram.cumulative()[:-1] == [
        sum(value <= bound for value in ordered) for bound in bounds
    ]
    assert histogram.count == histogram.cumulative()[-1] == len(values)
    assert histogram.sum == pytest.approx(sum(values))


def test_zeros_can_be_counted_instead_of_noted() -> None:
    counted, noted = Histogram((0.0, 1.0)), Histogram((0.0, 1.0))
    for _ in range(3):
        counted.zeros += 1
        noted.observe(0)
    counted.observe(0.5)
    noted.observe(0.5)
    assert counted.cumulative() == noted.cumulative() == [3, 4, 4]
    assert counted.sum == noted.sum == 0.5
    counted.zeros += 1
    counted.reset()
    assert counted.count == 0


def test_histogram_forgets() -> None:
    histogram = Histogram((1.0,))
    observe = histogram.observe  # recorders may keep the method instead of the series
    observe(3)
    histogram.reset()
    assert (histogram.count, histogram.sum) == (0, 0)
    observe(0.5)
    assert histogram.cumulative() == [1, 1]


@given(
    values=st.lists(
        st.sampled_from([0.0, 0.5, 1.0, 1.5, 10.0, 49.9, 50.0, 50.1, 1e9]), max_size=100
    ),
    noted=st.integers(1, 60),
)
def test_however_many_are_noted_before_they_are_counted_in(values: list[float], noted: int) -> None:
    one_by_one, some = Histogram((1.0, 10.0, 50.0)), Histogram((1.0, 10.0, 50.0))
    for value in values:
        one_by_one.observe(value)
        assert one_by_one.count  # whoever looks has all counted in
        with patch("kubesched.metrics.series.NOTED", noted):
            some.observe(value)
        assert len(some._noted) < noted
    assert some.cumulative() == one_by_one.cumulative()
    assert some.sum == pytest.approx(one_by_one.sum)


@given(
    values=st.lists(st.tuples(st.floats(0, 60), st.floats(0, 60)), max_size=60),
    noted=st.integers(1, 20),
)
def test_a_bundle_is_several_histograms(values: list[tuple[float, float]], noted: int) -> None:
    bounds = (1.0, 10.0, 50.0)
    alone = Histogram(bounds), Histogram(bounds)
    together = Histogram(bounds), Histogram(bounds)
    bundle = Bundle(*together)
    with patch("kubesched.metrics.series.NOTED", noted):
        for pair in values:
            bundle.observe(pair)
            for value, one, other in zip(pair, alone, together, strict=True):
                one.observe(value)
                if value > 30:  # some come by themselves
                    one.observe(value)
                    other.observe(value)
    for one, other in zip(alone, together, strict=True):
        assert one.cumulative() == other.cumulative()
        assert one.sum == pytest.approx(other.sum)
    together[0].reset()
    assert together[0].count == 0
    assert together[1].count == alone[1].count


def test_what_is_only_noted_is_there_for_whoever_looks() -> None:
    histogram = Histogram((1.0,))
    note = histogram.note
    for value in (0.5, 3.0):
        note(value)
    assert (histogram.count, histogram.sum) == (2, 3.5)
    note(2.0)  # the same way in, after it was counted
    assert (histogram.cumulative(), histogram.sum) == ([1, 3], 5.5)
