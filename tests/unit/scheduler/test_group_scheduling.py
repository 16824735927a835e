"""Groups from the queue to their nodes, with an API server, plugins and everything in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import GroupInfo, GroupTrial, PodGroupPostFilterResult
from kubesched.framework.plugin import Permit, PodGroupPostFilter
from kubesched.framework.status import SUCCESS, Status, unschedulable
from kubesched.queue.group_queue import GroupSchedulingQueue
from kubesched.scheduler.debugging import _summary
from tests.support.embedded_scheduler import Harness, scheduler
from tests.support.exposed_metrics import Exposed
from tests.support.waiting import eventually

GATES = {"GenericWorkload": True}
GROUPED = {"schedulingGroup": {"podGroupName": "g"}}


def run(test: Callable[[Harness], Awaitable[None]], *plugins: Any, **options: Any) -> None:
    async def main() -> None:
        async with scheduler(*plugins, gates=GATES, **options) as harness:
            await test(harness)

    asyncio.run(main())


def create_group(harness: Harness, policy: dict[str, Any], **spec: Any) -> None:
    harness.cluster.create(
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "default"},
            "spec": {"schedulingPolicy": policy, **spec},
        }
    )


def create_members(harness: Harness, *names: str) -> None:
    for name in names:
        harness.create_pod(name, **GROUPED)


def condition(harness: Harness) -> tuple[str, str]:
    group = harness.app.cluster.groups.objects.get("default", "g")
    conditions = group.status.conditions if group else ()
    found = {each.type: (each.status, each.message) for each in conditions}
    return found.get("PodGroupInitiallyScheduled", ("", ""))


def counts(harness: Harness) -> dict[str, int]:
    queue = harness.app.queue
    assert isinstance(queue, GroupSchedulingQueue)
    found = {
        "active": queue.active_count,
        "backoff": queue.backoff_count,
        "gated": queue.gated_count,
        "incomplete": queue.incomplete_count,
    }
    return {place: count for place, count in found.items() if count}


def test_a_gang_waits_until_it_is_complete_and_is_bound_as_a_whole() -> None:
    async def test(harness: Harness) -> None:
        create_group(harness, {"gang": {"minCount": 3}})
        create_members(harness, "a", "b")
        await eventually(lambda: counts(harness) == {"gated": 2})
        create_members(harness, "c")
        await eventually(lambda: all(harness.node_of(name) for name in "abc"))
        await eventually(lambda: condition(harness) == ("True", ""))
        assert counts(harness) == {}

    run(test)


def test_members_that_the_last_one_allows_are_bound_without_a_nomination() -> None:
    """It would tell where a pod goes that waits; a request for each of them would be in vain."""

    async def test(harness: Harness) -> None:
        create_group(harness, {"gang": {"minCount": 3}})
        create_members(harness, "a", "b", "c")
        await eventually(lambda: all(harness.node_of(name) for name in "abc"))
        await eventually(lambda: condition(harness) == ("True", ""))
        exposed = Exposed(harness.metrics.render())
        found = exposed.series("rest_client_requests_total")
        patches = [number for labels, number in found if labels["method"] == "PATCH"]
        assert sum(patches) == 1, "the condition of the group"

    run(test)


def test_members_wait_for_a_group_that_is_created_later() -> None:
    async def test(harness: Harness) -> None:
        create_members(harness, "a")
        await eventually(lambda: counts(harness) == {"incomplete": 1})
        create_group(harness, {"basic": {}})
        await eventually(lambda: harness.node_of("a"))

    run(test)


def test_a_gang_without_room_backs_off_and_is_told_so() -> None:
    async def test(harness: Harness) -> None:
        create_group(harness, {"gang": {"minCount": 2}})
        harness.create_pod("large", **GROUPED)
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "9999"}}}
        harness.create_pod("huge", containers=[container], **GROUPED)
        await eventually(lambda: condition(harness)[0] == "False")
        assert condition(harness)[1] == (
            "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, "
            "pod group preemption: No preemption victims found for incoming preemptor"
        )
        await eventually(lambda: "Insufficient cpu" in harness.message("huge"))
        await eventually(
            lambda: harness.message("large").startswith("pod group is unschedulable, minCount (2)")
        )
        assert counts(harness) == {"backoff": 2}
        assert harness.node_of("large") == ""

    run(test)


def test_members_that_disagree_are_told_so() -> None:
    async def test(harness: Harness) -> None:
        seven = {"metadata": {"name": "seven"}, "value": 7}
        api = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        harness.cluster.create({**api, **seven})
        create_group(harness, {"gang": {"minCount": 1}}, priorityClassName="seven")
        create_members(harness, "a")
        text = (
            "all pods in a single pod group should have the same priority as the pod group's "
            "priority, got 0 and 7"
        )
        await eventually(lambda: harness.message("a") == text)
        await eventually(lambda: condition(harness) == ("False", text))

    run(test)


def test_a_pod_that_comes_late_is_bound_by_itself() -> None:
    async def test(harness: Harness) -> None:
        create_group(harness, {"gang": {"minCount": 2}})
        create_members(harness, "a", "b")
        await eventually(lambda: harness.node_of("a") and harness.node_of("b"))
        create_members(harness, "late")
        await eventually(lambda: harness.node_of("late"))

    run(test)


class RefusesOnce(Permit):
    """Refuses the first pod that it is asked about."""

    name = "RefusesOnce"

    def __init__(self) -> None:
        self._asked = 0

    def events_to_register(self) -> list[Any]:
        return []

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        self._asked += 1
        return (unschedulable("not yet"), 0.0) if self._asked == 1 else (SUCCESS, 0.0)


def test_a_member_that_is_refused_at_the_end_makes_the_others_wait_for_it() -> None:
    async def test(harness: Harness) -> None:
        create_group(harness, {"gang": {"minCount": 2}})
        create_members(harness, "a", "b")
        # The other one waits at Permit, until the one that was refused has a node again.
        await eventually(lambda: harness.node_of("a") and harness.node_of("b"))

    run(test, RefusesOnce)


class Breaks(Permit):
    """Raises at the first pod that it is asked about."""

    name = "Breaks"
    broken = False

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        if not Breaks.broken:
            Breaks.broken = True
            raise ValueError("broken")
        return SUCCESS, 0.0


def test_a_plugin_that_raises_costs_its_pod_the_attempt() -> None:
    async def test(harness: Harness) -> None:
        create_group(harness, {"basic": {}})
        create_members(harness, "a", "b")
        await eventually(lambda: harness.node_of("b"))
        await eventually(lambda: harness.node_of("a"))

    Breaks.broken = False
    run(test, Breaks)


class Reports(PodGroupPostFilter):
    """Says what it was asked about."""

    name = "Reports"

    def pod_group_post_filter(
        self, state: CycleState, group: GroupInfo, trial: GroupTrial
    ) -> PodGroupPostFilterResult:
        assigned, status = trial.schedule()
        text = f"{group.key.name} of {len(group.pods)}: {len(assigned)} placed, {status.code.label}"
        return PodGroupPostFilterResult(unschedulable(text))


def test_a_plugin_in_python_may_try_to_make_room() -> None:
    async def test(harness: Harness) -> None:
        create_group(harness, {"gang": {"minCount": 2}})
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "9999"}}}
        for name in "ab":
            harness.create_pod(name, containers=[container], **GROUPED)
        await eventually(lambda: "g of 2: 0 placed, Unschedulable" in condition(harness)[1])

    alone = {
        "multiPoint": {"enabled": [{"name": "Reports"}]},
        "podGroupPostFilter": {"disabled": [{"name": "DefaultPreemption"}]},
    }
    profile = {"schedulerName": "default-scheduler", "plugins": alone}
    run(test, Reports, profiles=[profile])


def test_a_dump_of_the_queue_counts_members_that_wait_for_their_group() -> None:
    async def test(harness: Harness) -> None:
        create_members(harness, "a")
        await eventually(lambda: counts(harness) == {"incomplete": 1})
        assert _summary(harness.app.queue) == (
            "activeQ:0; backoffQ:0; unschedulableEntities:0; "
            "pendingPodGroupMemberPods:0; incompletePodGroupPods:1"
        )

    run(test)
