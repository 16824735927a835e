"""Charts of values over time."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.bench import line_chart
from kubesched.bench.line_chart import Panel

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
    text = line_chart.svg([Panel("MiB", lines)], title="Memory", x_label="minutes")
    root = ET.fromstring(text)  # noqa: S314 (our own)
    flat, rising = points_of(root)
    assert flat[0][1] == flat[1][1], "level"
    assert rising[0][1] > flat[0][1] > rising[1][1], "up is less in SVG"
    assert flat[0][0] == rising[0][0] < flat[1][0] == rising[1][0]
    words = [each.text for each in root.iter(f"{SVG}text")]
    assert {"Memory", "ours", "other & co", "MiB, over minutes"} <= set(words)


def test_panels_are_below_each_other_over_the_same_time() -> None:
    panels = [
        Panel("MiB", {"ours": [(0.0, 80.0), (60.0, 80.0)]}),
        Panel("ms", {"ours": [(0.0, 3.0), (30.0, 3.0)]}),
    ]
    root = ET.fromstring(line_chart.svg(panels, title="T", x_label="minutes"))  # noqa: S314
    upper, lower = points_of(root)
    assert max(y for _, y in upper) < min(y for _, y in lower)
    assert upper[0][0] == lower[0][0]
    assert upper[1][0] > lower[1][0], "half of the time"
    assert max(y for _, y in lower) < float(root.attrib["height"])


def points_of(root: ET.Element) -> list[list[tuple[float, ...]]]:
    """The points of all lines."""
    lines = (line.attrib["points"].split() for line in root.iter(f"{SVG}polyline"))
    return [[tuple(map(float, each.split(","))) for each in line] for line in lines]


def test_a_chart_of_nothing_is_a_chart() -> None:
    ET.fromstring(line_chart.svg([Panel("y", {"ours": []})], title="T", x_label="x"))  # noqa: S314
