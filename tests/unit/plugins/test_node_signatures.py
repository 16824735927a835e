"""Nodes with the same device signature have the same outcome, and are searched once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.resource import Device, ResourceClaim, ResourceSlice
from kubesched.cluster.cluster import Cluster
from kubesched.plugins import device_outcomes
from kubesched.plugins.device_counters import CounterCache
from kubesched.plugins.device_ledger import DeviceState
from kubesched.plugins.device_outcomes import FAILS, FITS, LACKS, Outcomes
from kubesched.plugins.device_requests import RequestCompiler, asked_for
from kubesched.plugins.device_rules import SearchRules
from kubesched.plugins.device_search import Search
from kubesched.plugins.device_selectors import compile_selector
from kubesched.plugins.search_budget import SearchBudget
from tests.support.device_objects import (
    DRIVER,
    allocated,
    alternative,
    claim,
    device,
    device_class,
    different,
    fill,
    first_of,
    request,
    result,
    same,
    slice_of,
    taint,
)
from tests.support.objects import node

ALIKE = [device("a", numa=0), device("b", numa=0), device("c", numa=1), device("d", numa=1)]
RULES = SearchRules()


class Fleet:
    """Nodes with devices, and what is found about claims on them."""

    def __init__(self, *objects: Any, nodes: Sequence[str]) -> None:
        self.cluster = Cluster()
        for name in nodes:
            self.cluster.put_node(node(name))
        fill(self.cluster, device_class(), *objects)

    def outcomes(self, *claims: ResourceClaim) -> Outcomes:
        devices = self.cluster.devices
        visible = devices.visible(RULES.of_pools)
        visible.refresh()
        compiler = RequestCompiler(devices, compile_selector, taints=True, rules=RULES)
        counters = CounterCache(devices.table, devices.uses)
        return Outcomes(
            compiler.compile(tuple(map(asked_for, claims))),
            visible,
            DeviceState(devices.table, devices.uses, counters, RULES),
        )

    def codes(self, outcomes: Outcomes) -> list[int]:
        """What is found for each node."""
        visible = self.cluster.devices.visible(RULES.of_pools)
        visible.refresh()
        outcomes.refresh()
        assert outcomes.find(None, SearchBudget(lambda: 0.0, 0.0, may_pause=False))
        outcomes.validate()
        return [int(code) for code in outcomes.codes[visible.of_row]]

    def names(self, outcomes: Outcomes, row: int) -> list[str]:
        """The devices that claims get on a node."""
        devices = self.cluster.devices
        found = outcomes.solution(devices.visible(RULES.of_pools).of_row.item(row))
        assert found is not None
        return ["/".join(devices.table.keys[pick.row][1:]) for pick in sum(found.picks, ())]


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[Search]:
    """The searches that are made."""
    made: list[Search] = []

    class Counted(Search):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(device_outcomes, "Search", Counted)
    return made


def slices(*names: str, devices: Sequence[Device] = ALIKE) -> list[ResourceSlice]:
    return [slice_of(f"slice-{name}", *devices, node=name) for name in names]


def found_by(searches: list[Search], fleet: Fleet, outcomes: Outcomes) -> tuple[list[int], int]:
    """What is found for each node, and after how many searches."""
    searches.clear()
    visible = fleet.cluster.devices.visible(RULES.of_pools)
    visible.refresh()
    outcomes.refresh()
    outcomes.find(None, SearchBudget(lambda: 0.0, 0.0, may_pause=False))
    count = len(searches)
    return fleet.codes(outcomes), count


def test_nodes_that_are_alike_are_searched_once(searches: list[Search]) -> None:
    names = [f"n{number}" for number in range(50)]
    fleet = Fleet(*slices(*names), nodes=names)
    asked = fleet.outcomes(claim("c", request(count=2), constraints=[same("numa")]))

    codes, count = found_by(searches, fleet, asked)

    assert codes == [FITS] * 50
    assert count == 2, "one, and one for what nodes without devices see"
    assert fleet.names(asked, 7) == ["n7/a", "n7/b"]


def test_after_an_allocation_a_node_is_what_another_one_was(searches: list[Search]) -> None:
    fleet = Fleet(*slices("n1", "n2", "n3"), nodes=["n1", "n2", "n3"])
    asked = fleet.outcomes(claim("c", request(count=3)))
    found_by(searches, fleet, asked)

    fill(fleet.cluster, allocated(claim("x"), result("b", "n1")))
    assert found_by(searches, fleet, asked) == ([FITS] * 3, 1)
    assert fleet.names(asked, 0) == ["n1/a", "n1/c", "n1/d"]
    fill(fleet.cluster, allocated(claim("y"), result("b", "n3")))
    assert found_by(searches, fleet, asked) == ([FITS] * 3, 0)
    assert fleet.names(asked, 2) == ["n3/a", "n3/c", "n3/d"]
    fill(fleet.cluster, allocated(claim("z"), result("a", "n3")))
    assert found_by(searches, fleet, asked) == ([FITS, FITS, LACKS], 1)


@pytest.mark.parametrize(
    "other",
    [
        device("b", numa=1),
        device("b", numa=0, taints=[taint()]),
        device("b", numa=0, capacities={"memory": "1Gi"}),
        device("b"),
    ],
)
def test_nodes_that_differ_in_what_matters_are_searched_each(
    searches: list[Search], other: Device
) -> None:
    differing = [ALIKE[0], other, *ALIKE[2:]]
    fleet = Fleet(*slices("n1"), *slices("n2", devices=differing), nodes=["n1", "n2"])
    asked = fleet.outcomes(claim("c", request(count=2), constraints=[same("numa")]))
    assert found_by(searches, fleet, asked) == ([FITS, FITS], 3)


def test_devices_that_no_request_asks_for_may_be_taken(searches: list[Search]) -> None:
    other = [device("x", kind="nic"), *(device(name, kind="gpu") for name in "abc")]
    fleet = Fleet(*slices("n1", "n2", devices=other), nodes=["n1", "n2"])
    fill(fleet.cluster, allocated(claim("x"), result("x", "n2")))
    is_gpu = f'device.attributes["{DRIVER}"].kind == "gpu"'
    asked = fleet.outcomes(claim("c", request("r", is_gpu)))
    assert found_by(searches, fleet, asked) == ([FITS, FITS], 2)


def test_a_claim_without_requests_can_be_served_everywhere() -> None:
    fleet = Fleet(*slices("n1"), nodes=["n1", "n2"])
    assert fleet.codes(fleet.outcomes(claim("c"))) == [FITS, FITS]


def test_an_error_names_the_device_of_each_node() -> None:
    fleet = Fleet(*slices("n1", "n2"), nodes=["n1", "n2"])
    lacking = f'device.attributes["{DRIVER}"].model == "x"'
    asked = fleet.outcomes(claim("c", request("r", lacking)))
    assert fleet.codes(asked) == [FAILS, FAILS]
    texts = {each.message(["default/c"]) for each in asked.errors.values()}
    assert {f"{DRIVER}/{name}/a" in text for name in ("n1", "n2") for text in texts} == {
        True,
        False,
    }
    assert len(texts) == 2


def test_counters_that_devices_of_other_nodes_draw_on_count() -> None:
    """Of each of two pools, two nodes see a device each, and both draw on the same counter."""
    size = {"memory": {"size": "1"}}
    homes = {"n1": "p", "n2": "p", "n3": "q", "n4": "q"}
    fleet = Fleet(
        *(
            slice_of(name, device(name, counters=size), node=name, pool=pool, slices=3)
            for name, pool in homes.items()
        ),
        *(slice_of(pool, everywhere=True, counters=size, slices=3) for pool in ("p", "q")),
        nodes=list(homes),
    )
    asked = fleet.outcomes(claim("c", request()))
    assert fleet.codes(asked) == [FITS] * 4
    fill(fleet.cluster, allocated(claim("x"), result("n1", "p")))
    assert fleet.codes(asked) == [LACKS, LACKS, FITS, FITS]


def test_devices_that_no_request_asks_for_count_where_they_draw_on_the_same_counters() -> None:
    parts = [
        device("whole", numa=1, counters={"set": {"size": "2"}}),
        device("part", numa=0, counters={"set": {"size": "1"}}),
    ]
    fleet = Fleet(nodes=["n1", "n2"])
    for name in ("n1", "n2"):
        fill(
            fleet.cluster,
            slice_of(f"{name}-d", *parts, node=name, slices=2),
            slice_of(f"{name}-c", node=name, slices=2, counters={"set": {"size": "2"}}),
        )
    asked = fleet.outcomes(claim("c", request("r", ON_NUMA_0)))
    assert fleet.codes(asked) == [FITS, FITS]
    fill(fleet.cluster, allocated(claim("x"), result("whole", "n2")))
    assert fleet.codes(asked) == [FITS, LACKS]


PALETTE: list[dict[str, Any]] = [
    {"numa": 0},
    {"numa": 1},
    {"numa": 0, "taints": [taint()]},
    {"numa": 0, "capacities": {"memory": "2"}, "shareable": True},
    {"numa": 1, "capacities": {"memory": "1"}},
    {"numa": 0, "counters": {"set": {"size": "1"}}},
    {"numa": 1, "counters": {"set": {"size": "2"}}},
    {},
]
ON_NUMA_0 = f'device.attributes["{DRIVER}"].?numa.orValue(9) == 0'
CLAIMS = [
    claim("c", request()),
    claim("c", request(count=2)),
    claim("c", request("r", ON_NUMA_0, count=2)),
    claim("c", request(count=2), constraints=[same("numa")]),
    claim("c", request(count=2), constraints=[different("numa")]),
    claim("c", request(every=True)),
    claim("c", request(capacities={"memory": "1"})),
    claim("c", request(admin=True)),
    claim("c", first_of("r", alternative("two", ON_NUMA_0, count=2), alternative("one"))),
]
#: For each device of a node: what it is, and whether claims have it, or a share of it.
hardware = st.lists(
    st.tuples(st.integers(0, len(PALETTE) - 1), st.sampled_from(["", "", "taken", "shared"])),
    min_size=1,
    max_size=4,
)


@given(
    nodes=st.lists(hardware, min_size=2, max_size=4),
    asked=st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=2),
    later=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4),
)
def test_what_is_found_for_a_signature_is_what_a_search_finds(
    nodes: list[list[tuple[int, str]]],
    asked: list[ResourceClaim],
    later: list[tuple[int, int]],
) -> None:
    names = [f"n{number}" for number in range(len(nodes))]
    fleet = Fleet(nodes=names)
    counters = {"set": {"size": "2"}}
    for name, devices in zip(names, nodes, strict=True):
        made = [device(f"d{place}", **PALETTE[kind]) for place, (kind, _) in enumerate(devices)]
        fill(
            fleet.cluster,
            slice_of(f"{name}-d", *made, node=name, slices=2),
            slice_of(f"{name}-c", node=name, slices=2, counters=counters),
        )
        for place, (_, use) in enumerate(devices):
            if use:
                is_shared = use == "shared"
                taken = result(
                    f"d{place}",
                    name,
                    share="s" if is_shared else None,
                    consumed={"memory": "1"} if is_shared else None,
                )
                fill(fleet.cluster, allocated(claim(f"{name}-{place}"), taken))
    outcomes = fleet.outcomes(*asked)
    fleet.codes(outcomes)
    for number, place in later:
        name = names[number % len(names)]
        fill(fleet.cluster, allocated(claim(f"later-{number}"), result(f"d{place}", name)))
        fleet.codes(outcomes)
