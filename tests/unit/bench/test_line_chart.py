"""Charts of values over time."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.bench import line_chart

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("largest", "want"),
    [
        (1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (60.0, [0, 10, 20, 30, 40, 50, 60]),
        (83.5, [0, 20, 40, 60, 80, 100]),
        (1300.0, [0, 250, 500, 750, 1000, 1250, 1500]),
    ],
)
def test_ticks_are_round(largest: float, want: list[float]) -> None:
    assert line_chart.ticks(largest) == want


@given(st.floats(0.01, 1e9))
def test_ticks_reach_the_largest_value_and_are_few(largest: float) -> None:
    ticks = line_chart.ticks(largest)
    assert ticks[-1] >= largest * (1 - 1e-9)
    assert 3 <= len(ticks) <= 8


def test_each_scheduler_has_a_line_that_begins_at_its_first_value() -> None:
    lines = {"ours": [(0.0, 80.0), (60.0, 80.0)], "other & co": [(0.0, 40.0), (60.0, 100.0)]}
    text = line_chart.svg(lines, title="Memory", x_label="minutes", y_label="MiB")
    root = ET.fromstring(text)  # noqa: S314 (our own)
    flat, rising = (
        [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        for line in root.iter(f"{SVG}polyline")
    )
    assert flat[0][1] == flat[1][1], "level"
    assert rising[0][1] > flat[0][1] > rising[1][1], "up is less in SVG"
    assert flat[0][0] == rising[0][0] < flat[1][0] == rising[1][0]
    words = [each.text for each in root.iter(f"{SVG}text")]
    assert {"Memory", "ours", "other & co", "MiB, over minutes"} <= set(words)


def test_a_chart_of_nothing_is_a_chart() -> None:
    ET.fromstring(line_chart.svg({"ours": []}, title="T", x_label="x", y_label="y"))  # noqa: S314
