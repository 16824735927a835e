"""The text format: numbers, bounds and labels as Go spells them, whatever is in them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from kubesched.metrics.exposition import bound_text, header, label_text, number_text
from kubesched.metrics.families import CounterFamily
from kubesched.metrics.spec import Stability, counter


@pytest.mark.parametrize(
    ("bound", "want"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (0.5, "0.5"),
        (1e-05, "1e-05"),
        (0.0001, "0.0001"),
        (1e-05 * 1.5, "1.5000000000000002e-05"),
        (262144.0, "262144"),
        (999999.5, "999999.5"),
        (1e6, "1e+06"),
        (1048576.0, "1.048576e+06"),
        (2592000.0, "2.592e+06"),
        (1234567.25, "1.23456725e+06"),
        (1e21, "1e+21"),
        (-2592000.0, "-2.592e+06"),
        (math.inf, "+Inf"),
    ],
)
def test_bound_is_spelled_as_go_does(bound: float, want: str) -> None:
    assert bound_text(bound) == want


@given(st.floats(allow_nan=False))
def test_bound_is_not_changed_by_its_spelling(bound: float) -> None:
    assert float(bound_text(bound)) == bound


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (3, "3"),
        (3.0, "3"),
        (True, "1"),
        (-2, "-2"),
        (0.25, "0.25"),
        (2.0**64 - 1, "1.8446744073709552e+19"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_number(value: float, want: str) -> None:
    assert number_text(value) == want


def test_header_is_one_line_each_even_if_the_help_is_not() -> None:
    spec = counter(Stability.ALPHA, "x_total", "first\nsecond \\ third")
    assert header(spec) == (
        "# HELP x_total [ALPHA] first\\nsecond \\\\ third\n# TYPE x_total counter\n"
    )


def test_labels_are_escaped() -> None:
    assert label_text([("a", 'quote " slash \\ line \n end')]) == (
        r'a="quote \" slash \\ line \n end"'
    )


@given(st.lists(st.text(), min_size=2, max_size=2), st.integers(1, 2**50))
def test_parser_finds_any_label_value_again(values: list[str], amount: int) -> None:
    family = CounterFamily(counter(Stability.ALPHA, "x_total", "help", labels="b a"))
    family.labels(*values).inc(amount)
    (metric,) = text_string_to_metric_families(family.text())
    (sample,) = metric.samples
    assert sample.labels == dict(zip(("b", "a"), values, strict=True))
    assert sample.value == amount
