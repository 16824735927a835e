"""Preemption by groups and of groups on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .control_plane import ControlPlane, JsonObject
from .group_scenarios import (
    HOSTNAME,
    ZONE,
    Scenario,
    Stage,
    g,
    p,
    several,
    staged_plane,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clean_pods")]

ONE = {"n1": "3"}
TWO = {"n1": "2", "n2": "2"}
FOUR = {f"n{number}": "1" for number in range(1, 5)}
LOW = several(3, "low", priority=10, on="n1")
HIGH = several(3, "high", group="g", priority=100)
ANYWHERE = {f"high{number}": "" for number in (1, 2, 3)}
SPREAD: JsonObject = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 2,
            "topologyKey": HOSTNAME,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "foo"}},
            "minDomains": 10,
        }
    ]
}
APART: JsonObject = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": HOSTNAME,
                    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
                }
            ]
        }
    }
}


def zoned(*zones: str) -> dict[str, str | tuple[str, dict[str, str]]]:
    """Nodes of one CPU, in these zones."""
    return {f"n{number}": ("1", {ZONE: zone}) for number, zone in enumerate(zones, start=1)}


SCENARIOS = {
    "a gang takes a whole node": Scenario(
        nodes=ONE,
        groups=[g("g", gang=3, priority=100)],
        there=LOW,
        come=HIGH,
        bound=ANYWHERE,
        gone=frozenset({"low1", "low2", "low3"}),
    ),
    "a basic group takes a whole node": Scenario(
        nodes=ONE,
        groups=[g("g", priority=100)],
        there=LOW,
        come=HIGH,
        bound=ANYWHERE,
        gone=frozenset({"low1", "low2", "low3"}),
    ),
    "only what is in the way": Scenario(
        nodes=TWO,
        groups=[g("g", gang=3, priority=100)],
        there=[p("low1", "2", priority=10, on="n1"), p("low2", priority=10, on="n2")],
        come=several(3, "high", group="g", priority=100, prefers="n1"),
        bound=ANYWHERE,
        gone=frozenset({"low1"}),
    ),
    "guarded pods last": Scenario(
        nodes=ONE,
        groups=[g("g", gang=2, priority=100)],
        there=[
            p("low1", priority=10, on="n1", labels={"app": "foo"}),
            p("low2", priority=10, on="n1", labels={"app": "foo"}),
            p("low3", priority=10, on="n1"),
        ],
        come=several(2, "high", "500m", group="g", priority=100),
        guarded="foo",
        bound={"high1": "n1", "high2": "n1"},
        gone=frozenset({"low3"}),
    ),
    "on several nodes": Scenario(
        nodes=TWO,
        groups=[g("g", gang=4, priority=100)],
        there=[
            *several(2, "a", priority=10, on="n1"),
            *several(2, "b", priority=10, on="n2"),
        ],
        come=several(4, "high", group="g", priority=100),
        bound={f"high{number}": "" for number in range(1, 5)},
        gone=frozenset({"a1", "a2", "b1", "b2"}),
    ),
    "no pod, where that does not suffice": Scenario(
        nodes=ONE,
        groups=[g("g", gang=3, priority=100)],
        there=[p("mid", priority=500, on="n1"), *several(2, "low", priority=10, on="n1")],
        come=HIGH,
    ),
    "the least important ones": Scenario(
        nodes=ONE,
        groups=[g("g", gang=2, priority=100)],
        there=[p("mid", priority=50, on="n1"), *several(2, "low", priority=10, on="n1")],
        come=HIGH[:2],
        bound={"high1": "n1", "high2": "n1"},
        gone=frozenset({"low1", "low2"}),
    ),
    "a whole gang for one pod": Scenario(
        nodes=ONE,
        groups=[g("g", gang=1, priority=100), g("v", gang=3, priority=10, all_or_none=True)],
        there=several(3, "low", group="v", priority=10, on="n1"),
        come=HIGH[:1],
        bound={"high1": "n1"},
        gone=frozenset({"low1", "low2", "low3"}),
    ),
    "a whole basic group for one pod": Scenario(
        nodes=ONE,
        groups=[g("g", gang=1, priority=100), g("v", priority=10, all_or_none=True)],
        there=several(3, "low", group="v", priority=10, on="n1"),
        come=HIGH[:1],
        bound={"high1": "n1"},
        gone=frozenset({"low1", "low2", "low3"}),
    ),
    "a pod of a group that may lose one": Scenario(
        nodes=ONE,
        groups=[g("g", gang=1, priority=100), g("v", gang=3, priority=10)],
        there=[
            p("low1", group="v", priority=10, on="n1"),
            p("low2", "2", group="v", priority=10, on="n1"),
        ],
        come=[p("high1", "2", group="g", priority=100)],
        bound={"high1": "n1"},
        gone=frozenset({"low2"}),
    ),
    "as many as possible, gang": Scenario(
        nodes=FOUR,
        groups=[g("g", gang=1, priority=100)],
        there=[
            p("a", priority=10, on="n1"),
            p("b", priority=10, on="n2"),
            p("c", priority=200, on="n3"),
            p("d", priority=200, on="n4"),
        ],
        come=HIGH,
        bound={"high1": "n1 n2", "high2": "n1 n2"},
        gone=frozenset({"a", "b"}),
    ),
    "as many as possible, basic": Scenario(
        nodes=FOUR,
        groups=[g("g", priority=100)],
        there=[
            p("a", priority=10, on="n1"),
            p("b", priority=10, on="n2"),
            p("c", priority=200, on="n3"),
            p("d", priority=200, on="n4"),
        ],
        come=HIGH,
        bound={"high1": "n1 n2", "high2": "n1 n2"},
        gone=frozenset({"a", "b"}),
    ),
    "a group and a pod below it": Scenario(
        nodes={"n1": "1", "n2": "1", "n3": "1"},
        groups=[g("v", gang=1, priority=50, all_or_none=True), g("g", gang=3, priority=100)],
        there=[
            p("v1", group="v", priority=50, on="n1"),
            p("v2", group="v", priority=50, on="n2"),
            p("v3", priority=10, on="n3"),
        ],
        come=HIGH,
        bound=ANYWHERE,
        gone=frozenset({"v1", "v2", "v3"}),
    ),
    "a group below it, and not one above": Scenario(
        nodes=FOUR,
        groups=[
            g("v", gang=2, priority=50, all_or_none=True),
            g("w", gang=2, priority=200, all_or_none=True),
            g("g", gang=1, priority=100, all_or_none=True),
        ],
        there=[
            p("v1", group="v", priority=50, on="n1"),
            p("v2", group="v", priority=50, on="n2"),
            p("w1", group="w", priority=200, on="n3"),
            p("w2", group="w", priority=200, on="n4"),
        ],
        come=HIGH,
        bound={"high1": "n1 n2", "high2": "n1 n2"},
        gone=frozenset({"v1", "v2"}),
    ),
    "none, if members must not preempt": Scenario(
        nodes=ONE,
        groups=[g("g", gang=3, priority=100)],
        there=LOW,
        come=several(3, "high", group="g", priority=100, never=True),
    ),
    "against affinity": Scenario(
        nodes=TWO,
        groups=[g("g", gang=2, priority=100)],
        there=[p("low", "250m", priority=10, on="n1", labels={"app": "initial"})],
        come=several(2, "high", "1500m", group="g", priority=100, **APART),
        bound={"high1": "", "high2": ""},
        gone=frozenset({"low"}),
    ),
    "for ports": Scenario(
        nodes=TWO,
        groups=[g("g", gang=2, priority=100)],
        there=[p("low", "250m", priority=10, on="n1", ports=(8080,))],
        come=several(2, "high", "1500m", group="g", priority=100, ports=(8080,)),
        bound={"high1": "", "high2": ""},
        gone=frozenset({"low"}),
    ),
    "to spread": Scenario(
        nodes={"n1": "16", "n2": "16"},
        groups=[g("g", gang=2, priority=100)],
        there=[
            p("low1", priority=10, on="n1", labels={"app": "foo"}),
            p("low2", priority=5, on="n2", labels={"app": "foo"}),
        ],
        come=several(
            2,
            "high",
            group="g",
            priority=100,
            labels={"app": "foo"},
            nodeSelector={HOSTNAME: "n1"},
            **SPREAD,
        ),
        bound={"high1": "n1", "high2": "n1"},
        gone=frozenset({"low1"}),
    ),
    "after what fits without": Scenario(
        nodes={"n1": "4"},
        groups=[g("g", gang=2, priority=100)],
        there=[
            *several(2, "old", group="g", priority=100, on="n1"),
            p("low", priority=10, on="n1"),
        ],
        come=HIGH[:2],
        bound={"high1": "n1", "high2": "n1"},
        gone=frozenset({"low"}),
    ),
    "in the only zone": Scenario(
        nodes=zoned("a", "a"),
        groups=[g("g", gang=2, priority=100, topology=ZONE)],
        there=[p("low1", priority=10, on="n1"), p("low2", priority=10, on="n2")],
        come=HIGH[:2],
        bound={"high1": "", "high2": ""},
        gone=frozenset({"low1", "low2"}),
    ),
    "in the zone where it may": Scenario(
        nodes=zoned("a", "a", "b", "b"),
        groups=[g("g", gang=2, priority=100, topology=ZONE)],
        there=[
            p("low1", priority=10, on="n1"),
            p("low2", priority=10, on="n2"),
            p("top1", priority=200, on="n3"),
            p("top2", priority=200, on="n4"),
        ],
        come=HIGH[:2],
        bound={"high1": "n1 n2", "high2": "n1 n2"},
        gone=frozenset({"low1", "low2"}),
    ),
    "in no zone, where none suffices": Scenario(
        nodes=zoned("a", "a", "b", "b"),
        groups=[g("g", gang=2, priority=100, topology=ZONE)],
        there=[
            p("low1", priority=10, on="n1"),
            p("top1", priority=200, on="n2"),
            p("low2", priority=10, on="n3"),
            p("top2", priority=200, on="n4"),
        ],
        come=HIGH[:2],
    ),
    "by a tree": Scenario(
        nodes=TWO,
        groups=[g("c", composite=True, priority=100), g("g", gang=3, priority=100, parent="c")],
        there=[p("low1", "2", priority=10, on="n1"), p("low2", priority=10, on="n2")],
        come=several(3, "high", group="g", priority=100, prefers="n1"),
        bound=ANYWHERE,
        gone=frozenset({"low1"}),
    ),
    "a whole tree": Scenario(
        nodes=TWO,
        groups=[
            g("c", composite=True, priority=10, all_or_none=True),
            g("v", gang=2, priority=10, parent="c"),
            g("w", gang=1, priority=10, parent="c"),
        ],
        there=[
            p("v1", group="v", priority=10, on="n1"),
            p("v2", group="v", priority=10, on="n2"),
            p("w1", group="w", priority=10, on="n2"),
        ],
        come=[p("high1", "2", priority=100, nodeSelector={HOSTNAME: "n1"})],
        bound={"high1": "n1"},
        gone=frozenset({"v1", "v2", "w1"}),
    ),
    "a pod of a tree that may lose one": Scenario(
        nodes=TWO,
        groups=[
            g("c", composite=True, priority=10),
            g("v", gang=2, priority=10, parent="c"),
            g("w", gang=1, priority=10, parent="c"),
        ],
        there=[
            p("v1", group="v", priority=10, on="n1"),
            p("v2", group="v", priority=10, on="n2"),
            p("w1", group="w", priority=10, on="n2"),
        ],
        come=[p("high1", "2", priority=100, nodeSelector={HOSTNAME: "n1"})],
        bound={"high1": "n1"},
        gone=frozenset({"v1"}),
    ),
    "no tree, where that does not suffice": Scenario(
        nodes={"n1": "2"},
        groups=[g("c", composite=True, priority=10), g("v", gang=1, priority=10, parent="c")],
        there=[p("v1", group="v", priority=10, on="n1")],
        come=[p("high1", "3", priority=100)],
    ),
    "a group rather than a tree": Scenario(
        nodes={"n1": "2"},
        groups=[
            g("c", composite=True, priority=10, all_or_none=True),
            g("v", gang=1, priority=10),
            g("w", gang=1, priority=10, parent="c"),
            g("g", gang=1, priority=100),
        ],
        there=[p("v1", group="v", priority=10, on="n1"), p("w1", group="w", priority=10, on="n1")],
        come=HIGH[:1],
        bound={"high1": "n1"},
        gone=frozenset({"v1"}),
    ),
    "the less important tree": Scenario(
        nodes=ONE,
        groups=[
            g("c", composite=True, priority=10),
            g("d", composite=True, priority=20),
            g("v", gang=1, priority=10, parent="c"),
            g("w", gang=1, priority=20, parent="d"),
        ],
        there=[p("v1", group="v", priority=10, on="n1"), p("w1", group="w", priority=20, on="n1")],
        come=[p("high1", "2", priority=100)],
        bound={"high1": "n1"},
        gone=frozenset({"v1"}),
    ),
    "a tree without a guarded pod": Scenario(
        nodes=ONE,
        groups=[
            g("c", composite=True, priority=10, all_or_none=True),
            g("d", composite=True, priority=10, all_or_none=True),
            g("v", gang=2, priority=10, parent="c"),
            g("w", gang=1, priority=10, parent="d"),
        ],
        there=[
            *several(2, "v", group="v", priority=10, on="n1", labels={"app": "foo"}),
            p("w1", group="w", priority=10, on="n1"),
        ],
        come=[p("high1", priority=100)],
        guarded="foo",
        bound={"high1": "n1"},
        gone=frozenset({"w1"}),
    ),
    "up to the highest that says so": Scenario(
        nodes=TWO,
        groups=[
            g("top", composite=True, priority=10, all_or_none=True),
            g("middle", composite=True, priority=10, parent="top"),
            g("v", gang=1, priority=10, parent="middle"),
            g("w", gang=1, priority=10, parent="middle"),
        ],
        there=[p("v1", group="v", priority=10, on="n1"), p("w1", group="w", priority=10, on="n2")],
        come=[p("high1", "2", priority=100, nodeSelector={HOSTNAME: "n1"})],
        bound={"high1": "n1"},
        gone=frozenset({"v1", "w1"}),
    ),
}


@pytest.fixture(scope="module")
def control_plane(assets: Path) -> Iterator[ControlPlane]:
    """A control plane with a scheduler."""
    with staged_plane(assets) as plane:
        yield plane


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_groups_preempt(control_plane: ControlPlane, namespace: str, scenario: Scenario) -> None:
    Stage(control_plane, namespace).play(scenario)
