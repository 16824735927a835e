"""What messages say of reasons, and how waits are summed up."""

from __future__ import annotations

import pytest

from kubesched.simulate.observing import reasons_in
from kubesched.simulate.report import Waits
from kubesched.simulate.run_table import sparkline


@pytest.mark.parametrize(
    ("message", "reasons"),
    [
        (
            (
                "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable. "
                "preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
            ),
            ["Insufficient cpu", "node(s) were unschedulable"],
        ),
        (
            (
                "0/1 nodes are available: 1 Insufficient cpu. "
                "preemption: 0/1 nodes are available: 1 No preemption victims found."
            ),
            ["Insufficient cpu"],
        ),
        ("0/2 nodes are available: 2 one thing, and another.", ["one thing, and another"]),
        ("no nodes available to schedule pods", ["no nodes available to schedule pods"]),
    ],
)
def test_reasons_are_read_off_a_message(message: str, reasons: list[str]) -> None:
    assert reasons_in(message) == reasons


def test_percentiles_are_waits_of_pods() -> None:
    waits = Waits.of([float(number) for number in range(100)])

    assert (waits.p50_s, waits.p90_s, waits.p99_s, waits.longest_s) == (50.0, 90.0, 99.0, 99.0)
    assert waits.mean_s == 49.5
    assert Waits.of([]) == Waits()


def test_bars_are_as_high_as_the_highest_of_their_values() -> None:
    assert sparkline([0.0, 50.0, 100.0], highest=100.0, width=10) == "▁▅█"
    assert sparkline([0.0, 100.0, 0.0, 0.0], highest=100.0, width=2) == "█▁"
    assert sparkline([0.0, 0.0], highest=0.0, width=10) == "▁▁"
