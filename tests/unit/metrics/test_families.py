"""Families: series by label values, what is shown of them, allow-lists, resets."""

from __future__ import annotations

from collections import Counter as Tally

import pytest

from kubesched.metrics.families import CounterFamily, GaugeFamily, HistogramFamily
from kubesched.metrics.series import Counter
from kubesched.metrics.spec import Stability, counter, gauge, histogram

ALPHA = Stability.ALPHA


def counters() -> CounterFamily:
    return CounterFamily(counter(ALPHA, "x_total", "help", labels="queue event"))


def gauges() -> GaugeFamily:
    return GaugeFamily(gauge(ALPHA, "y", "help", labels="queue"))


def histograms() -> HistogramFamily:
    spec = histogram(ALPHA, "z", "help", labels="result", buckets=(0.5, 1.0))
    return HistogramFamily(spec)


def body(family: CounterFamily | GaugeFamily | HistogramFamily) -> list[str]:
    """All lines but those that introduce the family."""
    return family.text().splitlines()[2:]


def test_same_values_same_series() -> None:
    family = counters()
    assert family.labels("active", "NodeAdd") is family.labels("active", "NodeAdd")
    assert family.labels("active", "NodeAdd") is not family.labels("NodeAdd", "active")


def test_wrong_number_of_values_is_refused() -> None:
    with pytest.raises(ValueError, match=r"x_total has queue, event; got 1 values: \('active',\)"):
        counters().labels("active")


def test_family_without_series_is_not_shown() -> None:
    assert counters().text() == gauges().text() == histograms().text() == ""


def test_labels_and_series_come_sorted_by_name() -> None:
    family = counters()
    family.labels("backoff", "B")
    family.labels("active", "B").inc()
    family.labels("backoff", "A").inc(2)
    assert body(family) == [
        'x_total{event="A",queue="backoff"} 2',
        'x_total{event="B",queue="active"} 1',
        'x_total{event="B",queue="backoff"} 0',
    ]


def test_one_addition_for_several_series() -> None:
    family = counters()
    family.labels("active", "A").inc()
    shared = family.shared([("active", "A"), ("active", "B")])
    shared.value += 3
    family.labels("active", "B").inc(10)
    assert family.shared(iter([("active", "A"), ("active", "B")])) is shared
    alone = family.shared([("active", "A")])
    alone.value += 20
    lines = ['x_total{event="A",queue="active"} 24', 'x_total{event="B",queue="active"} 13']
    assert body(family) == lines
    family.reset()
    assert body(family) == []
    shared.value += 1
    lines = ['x_total{event="A",queue="active"} 1', 'x_total{event="B",queue="active"} 1']
    assert body(family) == lines


def test_histogram_lines() -> None:
    family = histograms()
    for value in (0.25, 0.75, 7):
        family.labels("ok").observe(value)
    assert body(family) == [
        'z_bucket{result="ok",le="0.5"} 1',
        'z_bucket{result="ok",le="1"} 2',
        'z_bucket{result="ok",le="+Inf"} 3',
        'z_sum{result="ok"} 8',
        'z_count{result="ok"} 3',
    ]


def test_without_labels_there_is_a_series_from_the_start() -> None:
    assert body(CounterFamily(counter(ALPHA, "x_total", "help"))) == ["x_total 0"]
    assert body(GaugeFamily(gauge(ALPHA, "y", "help"))) == ["y 0"]
    assert body(HistogramFamily(histogram(ALPHA, "z", "help", buckets=(1.0,)))) == [
        *('z_bucket{le="1"} 0', 'z_bucket{le="+Inf"} 0'),
        *("z_sum 0", "z_count 0"),
    ]


def test_new_series_shows_up_in_the_next_text() -> None:
    family = histograms()
    family.labels("b").observe(1)
    family.text()
    family.labels("a").observe(1)
    assert [line for line in body(family) if "_count" in line] == [
        'z_count{result="a"} 1',
        'z_count{result="b"} 1',
    ]


# --- read instead of recorded -----------------------------------------------------------------


def test_function_gives_all_series_at_once() -> None:
    lengths = {("active",): 3}
    family = gauges()
    family.set_function(lambda: lengths)
    assert body(family) == ['y{queue="active"} 3']
    lengths[("backoff",)] = 1
    del lengths[("active",)]
    assert body(family) == ['y{queue="active"} 0', 'y{queue="backoff"} 1']


def test_counters_of_a_function_count_since_the_last_reset() -> None:
    tally = Tally({("active", "PodAdd"): 7, ("backoff", "NodeAdd"): 1})
    family = counters()
    family.set_function(lambda: tally)
    assert len(body(family)) == 2
    family.reset()
    assert body(family) == []
    tally["active", "PodAdd"] += 2
    assert body(family) == ['x_total{event="PodAdd",queue="active"} 2']
    assert body(family) == ['x_total{event="PodAdd",queue="active"} 2']


# --- reset ------------------------------------------------------------------------------------


def test_reset_series_shows_up_again_when_it_is_recorded() -> None:
    family = counters()
    kept = family.labels("active", "PodAdd")
    kept.inc()
    family.reset()
    assert family.text() == ""
    kept.inc(4)
    assert body(family) == ['x_total{event="PodAdd",queue="active"} 4']


def test_reset_histogram_shows_up_again_when_it_is_recorded() -> None:
    family = histograms()
    kept = family.labels("ok")
    kept.observe(0.1)
    family.reset()
    assert family.text() == ""
    kept.observe(0.1)
    assert 'z_count{result="ok"} 1' in body(family)


def test_reset_leaves_gauges_alone() -> None:
    family = gauges()
    family.labels("active").set(3)
    family.reset()
    assert body(family) == ['y{queue="active"} 3']


def test_without_labels_a_reset_series_stays_in_sight() -> None:
    family = CounterFamily(counter(ALPHA, "x_total", "help"))
    family.labels().inc()
    family.reset()
    assert body(family) == ["x_total 0"]


# --- allow-lists ------------------------------------------------------------------------------


def test_values_that_are_not_allowed_share_a_series() -> None:
    unexpected = Counter()
    family = counters()
    family.restrict({"event": frozenset({"PodAdd"})}, unexpected)
    family.labels("active", "PodAdd").inc()
    family.labels("active", "NodeAdd").inc()
    family.labels("active", "NodeUpdate").inc()
    assert body(family) == [
        'x_total{event="PodAdd",queue="active"} 1',
        'x_total{event="unexpected",queue="active"} 2',
    ]
    assert unexpected.read() == 2


def test_what_a_function_gives_is_restricted_too() -> None:
    family = gauges()
    family.restrict({"queue": frozenset({"active"})}, Counter())
    family.set_function(lambda: {("active",): 1, ("backoff",): 2, ("gated",): 3})
    assert body(family) == ['y{queue="active"} 1', 'y{queue="unexpected"} 5']
