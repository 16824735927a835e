"""Groups within one rack or zone, and groups of groups, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .control_plane import ControlPlane
from .group_scenarios import (
    RACK,
    ZONE,
    Scenario,
    Stage,
    g,
    p,
    several,
    staged_plane,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clean_pods")]

Nodes = dict[str, str | tuple[str, dict[str, str]]]


def racks(**cpus: str) -> Nodes:
    """Nodes named after their rack and zone: ``a1x="2"`` is a node of 2 CPUs in rack a1, zone a."""
    return {name: (cpu, {RACK: name[:2], ZONE: name[0]}) for name, cpu in cpus.items()}


def within(rack: str, nodes: Nodes, *names: str) -> dict[str, str]:
    """Say that pods are to be on the nodes of a rack, or a zone."""
    there = " ".join(name for name in nodes if name.startswith(rack))
    return dict.fromkeys(names, there)


SMALL = racks(a1x="1", a1y="1", b1x="1", b1y="1", b1z="1")
EVEN = racks(a1x="2", a1y="2", b1x="2", b1y="2")
ZONES = racks(a1x="2", a1y="2", a2x="2", a2y="2", b1x="2", b1y="2", b2x="2", b2y="2")
MEMBERS = several(3, "m", group="g")
NAMES = ("m1", "m2", "m3")

SCENARIOS = {
    "a gang goes where all of it fits": Scenario(
        nodes=SMALL,
        groups=[g("g", gang=3, topology=RACK)],
        come=MEMBERS,
        bound=within("b1", SMALL, *NAMES),
    ),
    "a gang waits where no rack suffices": Scenario(
        nodes=racks(a1x="1", a1y="1", b1x="1", b1y="1"),
        groups=[g("g", gang=3, topology=RACK)],
        come=MEMBERS,
    ),
    "a gang waits for pods that are there": Scenario(
        nodes=SMALL,
        groups=[g("g", gang=3, topology=RACK)],
        there=[p("there", on="b1x")],
        come=MEMBERS,
    ),
    "a gang goes where more is taken": Scenario(
        nodes=EVEN,
        groups=[g("g", gang=2, topology=RACK)],
        there=[p("there", on="b1x")],
        come=MEMBERS[:2],
        bound=within("b1", EVEN, "m1", "m2"),
    ),
    "a gang goes where more of it fits": Scenario(
        nodes=SMALL,
        groups=[g("g", gang=2, topology=RACK)],
        come=MEMBERS,
        bound=within("b1", SMALL, *NAMES),
    ),
    "two gangs, each in one rack": Scenario(
        nodes=EVEN,
        groups=[g("g", gang=3, topology=RACK), g("h", gang=3, topology=RACK)],
        there=[p("there", on="a1x")],
        come=[*MEMBERS, *several(3, "o", group="h")],
        bound={**within("a1", EVEN, *NAMES), **within("b1", EVEN, "o1", "o2", "o3")},
    ),
    "two gangs, and room for one": Scenario(
        nodes=racks(a1x="2", a1y="1", b1x="1"),
        groups=[g("g", gang=3, topology=RACK), g("h", gang=3, topology=RACK)],
        come=[*MEMBERS, *several(3, "o", group="h")],
        bound=dict.fromkeys(NAMES, "a1x a1y"),
    ),
    "two gangs by different keys": Scenario(
        nodes=racks(a1x="2", a2x="1", b1x="1", b2x="1"),
        groups=[g("g", gang=3, topology=ZONE), g("h", gang=1, topology=RACK)],
        come=[*MEMBERS, p("o1", group="h")],
        bound={**dict.fromkeys(NAMES, "a1x a2x"), "o1": "b1x b2x"},
    ),
    "one member more than the rack takes": Scenario(
        nodes=racks(a1x="2", b1x="1"),
        groups=[g("g", gang=2, topology=RACK)],
        come=MEMBERS,
        bound={"m1": "a1x", "m2": "a1x"},
    ),
    "members that come late stay in the rack": Scenario(
        nodes=EVEN,
        groups=[g("g", gang=1, topology=RACK)],
        there=[p("old", "3500m", group="g", on="a1x"), p("full", "1500m", on="a1y")],
        come=[p("m1", "500m", group="g"), p("m2", group="g")],
        bound={"m1": "a1y"},
    ),
    "a basic group stays in one rack": Scenario(
        nodes=EVEN,
        groups=[g("g", topology=RACK)],
        there=[p("there", "2", on="a1x")],
        come=several(4, "m", group="g"),
        bound=within("b1", EVEN, *NAMES, "m4"),
    ),
    "a basic group does not go to another rack": Scenario(
        nodes=racks(a1x="2", b1x="1"),
        groups=[g("g", topology=RACK)],
        come=MEMBERS,
        bound={"m1": "a1x", "m2": "a1x"},
    ),
    "a basic group of which no pod fits": Scenario(
        nodes=racks(a1x="1"),
        groups=[g("g", topology=RACK)],
        come=several(2, "m", "2", group="g"),
    ),
    "nodes without the label are none": Scenario(
        nodes={"x": "4", **racks(a1x="1")},
        groups=[g("g", gang=2, topology=RACK)],
        come=MEMBERS[:2],
    ),
    "a tree within one rack": Scenario(
        nodes=racks(a1x="2", a1y="1", b1x="2", b1y="2"),
        groups=[
            g("c", composite=True, gang=2, topology=RACK),
            g("g", gang=2, parent="c"),
            g("h", gang=2, parent="c"),
        ],
        come=[*MEMBERS[:2], *several(2, "o", group="h")],
        bound=dict.fromkeys(("m1", "m2", "o1", "o2"), "b1x b1y"),
    ),
    "a tree waits where no rack suffices": Scenario(
        nodes=racks(a1x="2", a1y="1", b1x="2", b1y="1"),
        groups=[
            g("c", composite=True, gang=2, topology=RACK),
            g("g", gang=2, parent="c"),
            g("h", gang=2, parent="c"),
        ],
        come=[*MEMBERS[:2], *several(2, "o", group="h")],
    ),
    "a tree goes where a pod of it is": Scenario(
        nodes=EVEN,
        groups=[
            g("c", composite=True, gang=1, topology=RACK),
            g("g", gang=1, parent="c"),
            g("h", gang=1, parent="c"),
        ],
        there=[p("old", group="h", on="a1x")],
        come=MEMBERS[:2],
        bound=within("a1", EVEN, "m1", "m2"),
    ),
    "a tree in one zone, its groups in one rack each": Scenario(
        nodes=ZONES,
        groups=[
            g("c", composite=True, gang=2, topology=ZONE),
            g("g", gang=3, parent="c", topology=RACK),
            g("h", gang=3, parent="c", topology=RACK),
        ],
        there=[p("full", "2", on="a2x")],
        come=[*MEMBERS, *several(3, "o", group="h")],
        bound=dict.fromkeys((*NAMES, "o1", "o2", "o3"), "b1x b1y b2x b2y"),
    ),
    "enough groups of a tree": Scenario(
        nodes={"x": "2"},
        groups=[
            g("c", composite=True, gang=1),
            g("g", gang=2, parent="c"),
            g("h", gang=2, parent="c"),
        ],
        come=[*MEMBERS[:2], *several(2, "o", group="h")],
        bound={"m1": "x", "m2": "x"},
    ),
    "too few groups of a tree": Scenario(
        nodes={"x": "2"},
        groups=[
            g("c", composite=True, gang=2),
            g("g", gang=2, parent="c"),
            g("h", gang=2, parent="c"),
        ],
        come=[*MEMBERS[:2], *several(2, "o", group="h")],
    ),
    "a basic tree of basic groups": Scenario(
        nodes={"x": "3"},
        groups=[g("c", composite=True), g("g", parent="c"), g("h", parent="c")],
        come=[*MEMBERS[:2], *several(2, "o", group="h")],
        bound={"m1": "x", "m2": "x", "o1": "x"},
    ),
    "trees of three levels": Scenario(
        nodes=ZONES,
        groups=[
            g("top", composite=True, gang=1, topology=ZONE),
            g("c", composite=True, gang=2, parent="top"),
            g("g", gang=3, parent="c", topology=RACK),
            g("h", gang=3, parent="c", topology=RACK),
        ],
        there=[p("full", "2", on="a2x")],
        come=[*MEMBERS, *several(3, "o", group="h")],
        bound=dict.fromkeys((*NAMES, "o1", "o2", "o3"), "b1x b1y b2x b2y"),
    ),
}


@pytest.fixture(scope="module")
def control_plane(assets: Path) -> Iterator[ControlPlane]:
    """A control plane with a scheduler."""
    with staged_plane(assets) as plane:
        yield plane


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_groups_stay_together(
    control_plane: ControlPlane, namespace: str, scenario: Scenario
) -> None:
    Stage(control_plane, namespace).play(scenario)
