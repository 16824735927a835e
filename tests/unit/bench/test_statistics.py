"""Numbers from moments."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.bench.statistics import (
    difference,
    histogram,
    median,
    percentile,
    quantile,
    throughput_samples,
)

METRICS = """\
# HELP attempt_seconds how long
# TYPE attempt_seconds histogram
attempt_seconds_bucket{profile="a",result="scheduled",le="0.001"} 2
attempt_seconds_bucket{profile="a",result="scheduled",le="0.002"} 6
attempt_seconds_bucket{profile="a",result="scheduled",le="+Inf"} 8
attempt_seconds_bucket{profile="b",result="scheduled",le="0.001"} 1
attempt_seconds_bucket{profile="b",result="scheduled",le="0.002"} 1
attempt_seconds_bucket{profile="b",result="scheduled",le="+Inf"} 1
attempt_seconds_bucket{profile="a",result="error",le="+Inf"} 7
attempt_seconds_sum{profile="a",result="scheduled"} 0.01
attempt_seconds_bucket_other{le="+Inf"} 99
"""


@pytest.mark.parametrize(
    ("percent", "value"), [(1, 1), (50, 5), (51, 6), (99, 10), (100, 10), (0, 1)]
)
def test_a_percentile_is_one_of_the_values(percent: float, value: float) -> None:
    assert percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], percent) == value


def test_nothing_has_no_percentile_and_no_median() -> None:
    assert percentile([], 50) is None
    assert median([None, None]) is None


def test_a_median_leaves_out_what_is_missing() -> None:
    assert median([3.0, None, 1.0, 2.0]) == 2.0
    assert median([4.0, 1.0, None]) == 2.5


def test_samples_begin_after_the_first_interval_with_pods() -> None:
    # 10 pods in the second second, then 20, then 30, then a rest.
    moments = [1.5] * 10 + [2.5] * 20 + [3.5] * 30 + [4.2]

    assert throughput_samples(moments, start_s=0.0) == [20.0, 30.0]


def test_an_empty_interval_is_shared_with_the_next_one() -> None:
    moments = [0.5] * 10 + [3.5] * 30 + [4.5]

    # Nothing in the second and third second: 30 pods in three.
    assert throughput_samples(moments, start_s=0.0) == [10.0, 10.0, 10.0]


def test_a_run_of_less_than_two_intervals_has_no_samples() -> None:
    assert throughput_samples([0.2, 0.4, 1.5], start_s=0.0) == []
    assert throughput_samples([], start_s=0.0) == []


@given(
    gaps=st.lists(st.floats(min_value=0, max_value=0.9), min_size=1, max_size=300),
    start_s=st.floats(min_value=-100, max_value=100),
)
def test_samples_never_count_more_pods_than_there_are(gaps: list[float], start_s: float) -> None:
    moment, moments = start_s, []
    for gap in gaps:
        moment += gap
        moments.append(moment)

    samples = throughput_samples(moments, start_s=start_s)

    assert sum(samples) <= len(moments) + 1e-6
    assert len(samples) <= math.ceil(moment - start_s)
    assert all(sample > 0 for sample in samples)


def test_a_histogram_is_summed_over_the_series_that_match() -> None:
    found = histogram(METRICS, "attempt_seconds", {"result": "scheduled"})

    assert found == {0.001: 3, 0.002: 7, math.inf: 9}


def test_a_quantile_is_even_within_its_bucket() -> None:
    buckets = {0.001: 2.0, 0.002: 6.0, math.inf: 6.0}

    assert quantile(buckets, 0.5) == pytest.approx(0.00125)
    assert quantile(buckets, 1.0) == pytest.approx(0.002)


def test_a_quantile_beyond_the_last_bound_is_that_bound() -> None:
    assert quantile({0.001: 1.0, math.inf: 10.0}, 0.99) == 0.001


def test_only_what_came_in_between_counts() -> None:
    before = {0.001: 5.0, math.inf: 5.0}
    after = {0.001: 5.0, 0.002: 9.0, math.inf: 9.0}

    assert difference(after, before) == {0.001: 0.0, 0.002: 9.0, math.inf: 4.0}


def test_nothing_observed_has_no_quantile() -> None:
    assert quantile({}, 0.5) is None
    assert quantile({0.001: 0.0, math.inf: 0.0}, 0.5) is None
