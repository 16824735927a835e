"""In virtual time, claims and gangs come and go, and no attempt is made in vain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import ResourceClaimTemplate, ResourceClaimTemplateSpec
from kubesched.errors import ObjectError, UsageError
from kubesched.simulate.casting import Casting
from kubesched.simulate.running import summary
from kubesched.simulate.timed_events import Arrival, GroupArrival, NodeAdded, TimedEvent
from kubesched.simulate.trace import read_script
from kubesched.snapshot.contents import Snapshot
from tests.support.device_objects import (
    claim,
    claiming_from_template,
    device,
    device_class,
    request,
    slice_of,
)
from tests.support.group_objects import GROUPS, TOPOLOGY, member, pod_group
from tests.support.objects import node, pod

from .plays import nodes_of, run_of

HOUR_S = 3600.0


# --- attempts -------------------------------------------------------------------------------------


def test_pods_that_never_fit_are_not_tried_whenever_another_ends() -> None:
    small = [Arrival(60.0 * n, pod(f"s{n}", cpu="1"), lifetime_s=30.0) for n in range(600)]
    large = [Arrival(0.0, pod(f"large-{n}", cpu="64")) for n in range(27)]

    said = summary(run_of([node("n1", cpu="4")], [*large, *small], until_s=10 * HOUR_S))

    assert (said.placed, said.pending) == (600, 27)
    [reason] = said.reasons
    assert (reason.pods, reason.refusals) == (27, 27)


def test_a_pod_is_tried_once_there_is_room() -> None:
    first = Arrival(0.0, pod("first", cpu="4"), lifetime_s=100.0)
    second = Arrival(1.0, pod("second", cpu="4"), lifetime_s=100.0)

    found = run_of([node("n1", cpu="4")], [first, second])

    assert summary(found).waits.longest_s < 110.0
    assert found.observations.placements == 2


def test_a_pod_that_may_preempt_is_tried() -> None:
    low = Arrival(0.0, pod("low", cpu="4"))
    high = Arrival(1.0, pod("high", cpu="4", priority=10))

    found = run_of([node("n1", cpu="4")], [low, high], until_s=60.0)

    assert nodes_of(found)["high"] == "n1"


@pytest.mark.parametrize(
    "waiting",
    [{"cpu": "64"}, {"cpu": "1", "node_selector": {"no": "such"}}],
    ids=["too large", "wrong selector"],
)
def test_a_pod_that_no_victim_would_help_is_tried_once_whatever_its_priority(
    waiting: dict[str, Any],
) -> None:
    low = [Arrival(0.0, pod(f"low-{n}", cpu="2", priority=-5)) for n in range(2)]
    small = [Arrival(60.0 * n, pod(f"s{n}"), lifetime_s=30.0) for n in range(100)]
    high = [Arrival(1.0, pod(f"high-{n}", priority=100, **waiting)) for n in range(3)]

    said = summary(run_of([node("n1", cpu="4")], [*low, *small, *high], until_s=2 * HOUR_S))

    assert [each.attempts for each in said.waiting] == [1, 1, 1]
    assert said.preemptions == ()


def test_a_pod_that_never_preempts_is_not_tried_again() -> None:
    modest = pod("modest", cpu="4", priority=10)
    modest = replace(modest, spec=replace(modest.spec, preemption_policy="Never"))
    low = Arrival(0.0, pod("low", cpu="4"))
    small = [Arrival(60.0 * n, pod(f"s{n}"), lifetime_s=30.0) for n in range(100)]

    said = summary(run_of([node("n1", cpu="4")], [low, Arrival(1.0, modest), *small]))

    assert [each.attempts for each in said.waiting] == [1]


def test_a_new_node_places_what_waited() -> None:
    waiting = Arrival(0.0, pod("p", cpu="4"))
    found = run_of([node("n1", cpu="1")], [waiting, NodeAdded(50.0, node("n2", cpu="4"))])

    assert nodes_of(found) == {"p": "n2"}


def test_progress_is_told() -> None:
    told: list[tuple[float, int]] = []
    run_of(
        [node("n1")],
        [Arrival(0.0, pod("p", cpu="99")), Arrival(200.0, pod("q"))],
        until_s=300.0,
        progress=lambda seconds, waiting: told.append((seconds, waiting)),
    )

    assert [round(seconds) for seconds, _ in told][:3] == [0, 60, 120]
    assert told[-1][1] == 1


# --- devices --------------------------------------------------------------------------------------


def _template() -> ResourceClaimTemplate:
    spec = claim("c", request("r", count=1)).spec
    return ResourceClaimTemplate(
        metadata=ObjectMeta(name="t", namespace="default"),
        spec=ResourceClaimTemplateSpec(spec=spec),
    )


def test_devices_are_released_when_pods_end() -> None:
    gpus = slice_of("s", device("g0"), node="n1")
    pods = [claiming_from_template(pod(f"p{n}"), "t") for n in range(3)]
    arrivals = [Arrival(0.0, each, lifetime_s=100.0) for each in pods]

    found = run_of([node("n1"), device_class(), gpus, _template()], arrivals)

    assert found.observations.ends == 3
    assert not len(found.cluster.devices.uses)
    assert not len(found.cluster.devices.claims)
    # One after the other: the last waits for both others.
    assert 200.0 <= summary(found).waits.longest_s < 230.0


def test_a_new_node_like_another_has_its_devices() -> None:
    gpus = slice_of("s", device("g0"), node="n1")
    pods = [claiming_from_template(pod(f"p{n}"), "t") for n in range(2)]
    events: list[TimedEvent] = [Arrival(0.0, each) for each in pods]
    events.append(NodeAdded(10.0, node("n2"), like="n1"))

    found = run_of([node("n1"), device_class(), gpus, _template()], events)

    assert sorted(nodes_of(found).values()) == ["n1", "n2"]


# --- gangs ----------------------------------------------------------------------------------------


def _gang(at_s: float, name: str, count: int, lifetime_s: float | None = 100.0) -> GroupArrival:
    members = (member(f"{name}-{n}", group=name, cpu="1") for n in range(count))
    pods = tuple((each, lifetime_s) for each in members)
    return GroupArrival(at_s, pod_group(name, gang=count), pods)


def test_gangs_are_placed_as_a_whole_one_after_the_other() -> None:
    gangs = [_gang(0.0, "a", 3), _gang(0.0, "b", 3)]

    found = run_of([node("n1", cpu="4")], gangs, gates=GROUPS)

    said = summary(found)
    assert (said.placed, said.ended, said.pending) == (6, 6, 0)
    # The second gang waits for the first, although one of its pods would have fit.
    assert 100.0 <= said.waits.longest_s < 130.0
    assert said.waits.p50_s == pytest.approx(said.waits.longest_s)
    assert not len(found.cluster.groups.objects)


def test_a_gang_that_never_fits_is_not_tried_thousands_of_times() -> None:
    small = [Arrival(60.0 * n, pod(f"s{n}", cpu="1"), lifetime_s=30.0) for n in range(300)]

    said = summary(
        run_of([node("n1", cpu="4")], [_gang(0.0, "a", 5), *small], gates=GROUPS, until_s=18_000.0)
    )

    assert (said.placed, said.pending) == (300, 5)
    assert max(each.attempts for each in said.waiting) == 1


def _script(tmp_path: Path, *records: dict[str, Any]) -> list[TimedEvent]:
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return read_script(path, Casting(Snapshot(source="test"))).happenings(0)


CONTAINER = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}


def test_a_record_of_a_trace_may_be_a_gang(tmp_path: Path) -> None:
    gang = {"time": 0, "pod": CONTAINER, "count": 3, "duration": 10, "name": "train"}
    events = _script(tmp_path, {**gang, "gang": {"topologyKey": "rack"}})
    racks = [node(f"n{n}", cpu="2", labels={"rack": f"r{n % 2}"}) for n in range(4)]

    found = run_of(racks, events, gates=TOPOLOGY)

    assert (found.observations.placements, found.observations.ends) == (3, 3)
    with pytest.raises(UsageError, match="GenericWorkload=true"):
        run_of(racks, events)
    with pytest.raises(ObjectError, match="gang: minCount is 4, but 3 pods arrive: give a count"):
        _script(tmp_path, {**gang, "gang": {"minCount": 4}})


def test_a_template_of_a_workload_may_be_a_gang(tmp_path: Path) -> None:
    path = tmp_path / "day.json"
    template = {
        "name": "train",
        "arrivals": {"perHour": 1, "pattern": "even", "count": 2},
        "lifetime": {"fixed": "10m"},
        "gang": {},
        "pod": CONTAINER,
    }
    path.write_text(json.dumps({"kind": "Workload", "duration": "3h", "templates": [template]}))
    events = read_script(path, Casting(Snapshot(source="test"))).happenings(0)

    assert [type(each) for each in events] == [GroupArrival] * 3
    found = run_of([node("n1", cpu="2")], events, gates=GROUPS)
    assert found.observations.placements == 6
    assert all(isinstance(each, Pod) for each in found.pods)
