"""How long points and plugins take is told of all points, as kube-scheduler tells it."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from kubesched.cluster.pod_info import PodInfo
from kubesched.framework import observing
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Bind, Permit, PostBind, PreBind, PreEnqueue, Reserve
from kubesched.framework.status import SKIP, SUCCESS, Status, unschedulable
from tests.support.embedded_scheduler import Harness, scheduler
from tests.support.exposed_metrics import Exposed
from tests.support.waiting import eventually

POINTS = "scheduler_framework_extension_point_duration_seconds_count"
PLUGINS = "scheduler_plugin_execution_duration_seconds_count"


class Everywhere(PreEnqueue, Reserve, Permit, PreBind, Bind, PostBind):
    """A plugin at every point that concerns one pod and its node."""

    name = "Everywhere"

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return SUCCESS

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        pass

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        return SUCCESS, 0.0

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SKIP

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        pass


class Refuses(Reserve):
    name = "Refuses"

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return unschedulable("no room")

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        pass


def points(here: Harness) -> dict[tuple[str, str], float]:
    """Point and status → how often it was timed."""
    return {
        (labels["extension_point"], labels["status"]): number
        for labels, number in Exposed(here.metrics.render()).series(POINTS)
    }


def plugins(here: Harness, plugin: str) -> dict[tuple[str, str], float]:
    """Point and status → how often a plugin was timed there."""
    return {
        (labels["extension_point"], labels["status"]): number
        for labels, number in Exposed(here.metrics.render()).series(PLUGINS)
        if labels["plugin"] == plugin
    }


@pytest.fixture(autouse=True)
def _all_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time plugins in all attempts, instead of a tenth of them."""
    monkeypatch.setattr(observing, "SHARE", 1.0)


def test_a_plugin_is_timed_at_every_point() -> None:
    own_binder_first = {
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {"enabled": [{"name": "Everywhere"}]},
            "bind": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": "Everywhere"}, {"name": "DefaultBinder"}],
            },
        },
    }

    async def main() -> None:
        async with scheduler(Everywhere, profiles=[own_binder_first]) as here:
            for name in ("first", "second", "third"):
                here.create_pod(name)
                await eventually(partial(here.node_of, name))
            want = {
                ("PreEnqueue", "Success"): 3,
                ("Reserve", "Success"): 3,
                ("Permit", "Success"): 3,
                ("PreBindPreFlight", "Success"): 3,
                ("PreBind", "Success"): 3,
                ("Bind", "Skip"): 3,
                ("PostBind", "Success"): 3,
            }
            await eventually(lambda: plugins(here, "Everywhere") == want)
            assert plugins(here, "DefaultBinder") == {("Bind", "Success"): 3}

    asyncio.run(main())


def test_a_plugin_that_refuses_and_those_that_give_back() -> None:
    async def main() -> None:
        async with scheduler(Everywhere, Refuses) as here:
            here.create_pod("p")
            await eventually(lambda: here.message("p"))
            # It is tried again and again.
            timed = plugins(here, "Refuses")
            tries = timed["Reserve", "Unschedulable"]
            assert timed == {("Reserve", "Unschedulable"): tries, ("Unreserve", "Success"): tries}
            assert plugins(here, "Everywhere")["Unreserve", "Success"] >= tries >= 1

    asyncio.run(main())


def test_all_points_of_a_pod_are_timed_though_nobody_has_anything_to_do() -> None:
    async def main() -> None:
        async with scheduler() as here:
            here.create_pod("p")
            await eventually(lambda: ("PostBind", "Success") in points(here))
            found = points(here)
            for point in ("PreEnqueue", "Reserve", "Permit", "PreBind", "Bind", "PostBind"):
                assert found[point, "Success"] == 1, point
            assert found["PreBindPreFlight", "Skip"] == 1

    asyncio.run(main())


def test_who_makes_room_is_timed() -> None:
    async def main() -> None:
        async with scheduler() as here:
            here.create_pod("p", nodeSelector={"no": "such"})
            await eventually(lambda: here.message("p"))
            timed = plugins(here, "DefaultPreemption")
            assert sum(timed[key] for key in timed if key[0] == "PostFilter") == 1

    asyncio.run(main())


def test_plugins_that_look_at_all_nodes_are_timed_however_a_node_is_chosen() -> None:
    """By totals that are kept, as for the first pods, or step by step, as for the last."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }

    async def main() -> None:
        async with scheduler(nodes=3) as here:
            for name in ("first", "second"):
                here.create_pod(name)
                await eventually(partial(here.node_of, name))
            fit = plugins(here, "NodeResourcesFit")
            assert fit.keys() >= {("Filter", "Success"), ("Score", "Success")}
            affinity = plugins(here, "InterPodAffinity")
            assert affinity.keys() >= {("PreFilter", "Skip"), ("PreScore", "Skip")}
            here.create_pod("spread", topologySpreadConstraints=[spread])
            await eventually(lambda: here.node_of("spread"))
            timed = plugins(here, "PodTopologySpread")
            for point in ("PreScore", "Score", "ScoreExtensionNormalize"):
                assert timed[point, "Success"] == 1, point

    asyncio.run(main())
