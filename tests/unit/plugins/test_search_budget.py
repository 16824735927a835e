"""How long searches for devices may take, and that they go on where they were paused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.plugins import device_search
from kubesched.plugins.device_counters import CounterCache
from kubesched.plugins.device_ledger import DeviceState
from kubesched.plugins.device_rules import SearchRules
from kubesched.plugins.device_search import Search, SearchPausedError
from kubesched.plugins.search_budget import SLICE_S, SearchBudget
from tests.support.device_objects import claim, device, different, request, slice_of

from .device_lab import Bench


class Time:
    """Each look at the clock takes a while."""

    def __init__(self, step_s: float) -> None:
        self.now = 0.0
        self._step_s = step_s

    def __call__(self) -> float:
        self.now += self._step_s
        return self.now


def search(values: list[int], requests: list[int]) -> Search:
    """A search for devices that all differ."""
    devices = [device(f"d{number}", a=value, b=number) for number, value in enumerate(values)]
    bench = Bench(slice_of("s", *devices, node="n1"))
    asked = claim(
        "c",
        *(request(f"r{n}", count=count) for n, count in enumerate(requests)),
        constraints=[different("a"), different("b")],
    )
    known = bench.cluster.devices
    visible = known.visible(SearchRules().of_pools)
    visible.refresh()
    counters = CounterCache(known.table, known.uses)
    state = DeviceState(known.table, known.uses, counters, SearchRules())
    return Search(bench.wanted(asked), visible.of(0), state)


def hopeless() -> Search:
    return search([number % 5 for number in range(30)], [3] * 6)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
)
def test_a_search_in_parts_finds_what_one_in_one_go_finds(
    values: list[int], requests: list[int]
) -> None:
    at_once = search(values, requests).run()
    in_parts, looks = search(values, requests), device_search.DEVICES_PER_LOOK
    parts = 0
    device_search.DEVICES_PER_LOOK = 1  # type: ignore[misc]
    try:
        while True:
            try:
                found = in_parts.run(lambda: True)
                break
            except SearchPausedError:
                parts += 1
    finally:
        device_search.DEVICES_PER_LOOK = looks  # type: ignore[misc]
    assert parts > 0

    def devices(solution: device_search.Solution | None) -> object:
        return solution and ([[each.row for each in of] for of in solution.picks], solution.chosen)

    assert devices(found) == devices(at_once)


def test_an_attempt_that_may_be_paused_ends_with_its_slice() -> None:
    budget, made = SearchBudget(Time(SLICE_S / 10), 10.0, may_pause=True), hopeless()
    with pytest.raises(SearchPausedError):
        budget.run(made)
    assert budget.is_over
    assert budget.is_paused
    assert not budget.is_spent(made)
    assert 0 < made.spent_s < 1


def test_a_search_has_its_timeout_in_all_attempts_together() -> None:
    made, attempts = hopeless(), 0
    while True:
        budget = SearchBudget(Time(SLICE_S / 10), 1.0, may_pause=True)
        with pytest.raises(SearchPausedError):
            budget.run(made)
        attempts += 1
        if budget.is_spent(made):
            break
    assert attempts > 5
    assert made.spent_s >= 1.0


def test_an_attempt_that_may_not_be_paused_has_the_timeout_for_all_nodes() -> None:
    budget = SearchBudget(Time(0.1), 1.0, may_pause=False)
    with pytest.raises(SearchPausedError):
        budget.run(hopeless())
    assert budget.is_over
    assert not budget.is_paused


def test_without_a_timeout_it_takes_as_long_as_it_takes() -> None:
    budget = SearchBudget(Time(1000.0), 0.0, may_pause=False)
    made = search([1, 2, 3], [1, 2])
    assert budget.run(made) is not None
    assert not budget.is_over
    assert not budget.is_spent(made)
