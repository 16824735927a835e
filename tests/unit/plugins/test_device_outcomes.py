"""What is known about claims is what a search finds, and follows what nodes see."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.resource import DeviceToleration, ResourceClaim
from kubesched.cluster.device_pools import PoolRules
from kubesched.cluster.visible_devices import VisibleDevices
from kubesched.plugins.device_counters import CounterCache
from kubesched.plugins.device_ledger import DeviceState
from kubesched.plugins.device_outcomes import FITS, LACKS, Outcomes
from kubesched.plugins.device_rules import SearchRules
from kubesched.plugins.device_search import Solution
from kubesched.plugins.search_budget import SearchBudget
from tests.support.device_objects import (
    DRIVER,
    allocated,
    claim,
    device,
    fill,
    request,
    result,
    slice_of,
    taint,
)
from tests.support.objects import node

from .device_lab import Bench

EVEN = f'device.attributes["{DRIVER}"].even'
ODD = f"!{EVEN}"

devices = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=8)
asked = st.lists(
    st.tuples(st.sampled_from([EVEN, ODD]), st.integers(1, 3), st.booleans()),
    min_size=1,
    max_size=3,
)


@given(devices=devices, asked=asked, in_two_claims=st.booleans())
def test_what_is_known_is_what_a_search_finds(
    devices: list[tuple[bool, bool, bool]],
    asked: list[tuple[str, int, bool]],
    *,
    in_two_claims: bool,
) -> None:
    made = [
        device(f"d{number}", even=is_even, taints=[taint()] if is_tainted else [])
        for number, (is_even, _, is_tainted) in enumerate(devices)
    ]
    bench = Bench(slice_of("s", *made, node="n1"))
    for number, (_, is_taken, _) in enumerate(devices):
        if is_taken:
            fill(bench.cluster, allocated(claim(f"other-{number}"), result(f"d{number}")))
    tolerates = [DeviceToleration(operator="Exists")]
    requests = [
        request(f"r{number}", expression, count=count, tolerates=tolerates if tolerant else ())
        for number, (expression, count, tolerant) in enumerate(asked)
    ]
    claims = [claim("c", *requests)]
    if in_two_claims:
        claims = [claim("c", *requests[:1]), claim("e", *(requests[1:] or [request("x", EVEN)]))]

    outcomes, visible = _outcomes(bench, *claims)
    assert outcomes.find(None, SearchBudget(lambda: 0.0, 0.0, may_pause=False))
    number = visible.of_row.item(0)
    expected = bench.solve(*claims)
    assert outcomes.codes[number] == (LACKS if expected is None else FITS)
    found = outcomes.solution(number)
    assert (found and _chosen(found)) == (expected and _chosen(expected))


def test_outcomes_start_anew_where_nodes_see_fewer_different_devices() -> None:
    slices = [slice_of(f"s{name}", device("d"), node=name) for name in ("n1", "n2")]
    bench = Bench(*slices)
    bench.cluster.put_node(node("n2"))
    outcomes, visible = _outcomes(bench, claim("c", request("r")))
    fits = outcomes.codes.size

    bench.cluster.remove_node("n2")
    # As it happens to a view that has missed too many changes.
    visible.forget()
    visible.refresh()
    outcomes.refresh()

    assert outcomes.codes.size < fits
    outcomes.validate()


def _outcomes(bench: Bench, *claims: ResourceClaim) -> tuple[Outcomes, VisibleDevices]:
    state, rules = bench.cluster.devices, SearchRules()
    visible = state.visible(PoolRules(partitionable=rules.partitionable))
    visible.refresh()
    counters = CounterCache(state.table, state.uses)
    outcomes = Outcomes(
        bench.wanted(*claims), visible, DeviceState(state.table, state.uses, counters, rules)
    )
    outcomes.refresh()
    return outcomes, visible


def _chosen(solution: Solution) -> object:
    picks = [[(each.request.name, each.row) for each in claim] for claim in solution.picks]
    return picks, solution.chosen
