"""GangScheduling: when a gang is let in, when it is placed, and when it is bound."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group import Progress
from kubesched.framework.status import SUCCESS, Code, Status
from kubesched.framework.waiting import WaitingPod, WaitingPods
from kubesched.plugins.gang_scheduling import GangScheduling
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change
from tests.support.group_objects import (
    COMPOSITE,
    GroupLab,
    composite,
    composite_key,
    key,
    member,
    pod_group,
)
from tests.support.objects import node, pod


def plugin_of(lab: GroupLab) -> GangScheduling:
    plugin = lab.framework.plugins.instances["GangScheduling"]
    assert isinstance(plugin, GangScheduling)
    return plugin


class TestPreEnqueue:
    def test_a_pod_without_a_group_is_let_in(self) -> None:
        lab = GroupLab()
        (single,) = lab.pending(pod("single"))
        assert plugin_of(lab).pre_enqueue(single) == SUCCESS

    def test_a_pod_waits_for_its_group(self) -> None:
        lab = GroupLab()
        (a,) = lab.pending(member("a"))
        status = plugin_of(lab).pre_enqueue(a)
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.message == ('waiting for pods\'s pod group "g" to appear in scheduling queue')

    def test_a_gang_waits_for_all_pods_that_it_needs(self) -> None:
        lab = GroupLab(pod_group(gang=2))
        (a,) = lab.pending(member("a"))
        text = "waiting for minCount pods from a gang to appear in scheduling queue"
        assert plugin_of(lab).pre_enqueue(a).message == text

        lab.pending(member("b"))

        assert plugin_of(lab).pre_enqueue(a).ok

    def test_members_that_are_on_nodes_count(self) -> None:
        lab = GroupLab(node("n1"), member("old", node="n1"), pod_group(gang=2))
        (a,) = lab.pending(member("a"))
        assert plugin_of(lab).pre_enqueue(a).ok

    def test_a_basic_group_needs_nobody(self) -> None:
        lab = GroupLab(pod_group())
        (a,) = lab.pending(member("a"))
        assert plugin_of(lab).pre_enqueue(a).ok

    def test_a_tree_is_let_in_once_enough_of_its_groups_are_complete(self) -> None:
        lab = GroupLab(
            composite("top", gang=2),
            pod_group("one", gang=1, parent="top"),
            pod_group("two", gang=2, parent="top"),
            gates=COMPOSITE,
        )
        a, _ = lab.pending(member("a", "one"), member("b", "two"))
        text = 'waiting for composite pod group "top" tree to meet quorum'
        assert plugin_of(lab).pre_enqueue(a).message == text

        lab.pending(member("c", "two"))

        assert plugin_of(lab).pre_enqueue(a).ok

    def test_a_tree_without_its_top_is_not_let_in(self) -> None:
        lab = GroupLab(pod_group("one", parent="top"), gates=COMPOSITE)
        (a,) = lab.pending(member("a", "one"))
        assert plugin_of(lab).pre_enqueue(a).message == (
            "failed to build hierarchy snapshot: parent composite pod group state not found for "
            "compositepodgroup/default/top"
        )


class TestPlacementFeasible:
    @pytest.mark.parametrize(
        ("gang", "progress", "want"),
        [
            (3, (2, 0), "minCount (3) cannot be satisfied: 0 scheduled, 2 remaining"),
            (3, (2, 1), "minCount (3) is not yet satisfied: 1 scheduled, 2 remaining"),
            (3, (0, 3), ""),
            (None, (2, 0), "minCount (1) is not yet satisfied: 0 scheduled, 2 remaining"),
            (None, (0, 0), "minCount (1) cannot be satisfied: 0 scheduled, 0 remaining"),
            (None, (5, 1), ""),
        ],
    )
    def test_what_was_placed_and_what_is_left_decide(
        self, gang: int | None, progress: tuple[int, int], want: str
    ) -> None:
        lab = GroupLab(pod_group(gang=gang))
        info = lab.info(key(), [])
        status = plugin_of(lab).placement_feasible(CycleState(), info, Progress(*progress))
        assert status.message == want
        assert (status.code is Code.WAIT) == ("not yet" in want)

    def test_of_a_composite_group_groups_count(self) -> None:
        lab = GroupLab(composite("top", gang=2), gates=COMPOSITE)
        info = lab.info(composite_key("top"), [])
        status = plugin_of(lab).placement_feasible(CycleState(), info, Progress(1, 0))
        assert status.message == "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"


class TestPermit:
    def test_the_first_of_a_gang_waits_and_the_last_lets_all_go(self) -> None:
        lab = GroupLab(node("n1"), pod_group(gang=2))
        a, b = lab.pending(member("a"), member("b"))
        waiting, decided = WaitingPods(), list[Status]()
        plugin = GangScheduling(lab.forest, waiting)
        lab.cluster.assume(a, "n1")
        state = CycleState()
        status, wait_s = plugin.permit(state, a, "n1")
        assert (status.code, wait_s) == (Code.WAIT, 300.0)
        assert status.message == "waiting for minCount pods from a gang to be scheduled"
        assert list(state.pods_to_activate) == ["b"], "which may have waited for this one"
        waiting.add(WaitingPod(a, {"GangScheduling"}, decided.append))

        lab.cluster.assume(b, "n1")
        assert plugin.permit(CycleState(), b, "n1") == (SUCCESS, 0.0)

        assert decided == [SUCCESS]

    def test_a_basic_group_does_not_wait(self) -> None:
        lab = GroupLab(node("n1"), pod_group())
        (a,) = lab.pending(member("a"))
        assert plugin_of(lab).permit(CycleState(), a, "n1") == (SUCCESS, 0.0)

    def test_a_group_that_is_gone_is_an_error(self) -> None:
        lab = GroupLab(node("n1"))
        (a,) = lab.pending(member("a"))
        status, _ = plugin_of(lab).permit(CycleState(), a, "n1")
        assert status.code is Code.ERROR
        assert status.message == (
            "failed to get podGroup default/g: pod group object not found for pod group "
            "podgroup/default/g"
        )


class TestHints:
    def hint(self, lab: GroupLab, event: ClusterEvent) -> Any:
        registered = plugin_of(lab).events_to_register() or ()
        (found,) = [each for each in registered if each.event == event]
        return found.hint

    def test_a_pod_of_the_same_group_may_complete_it(self) -> None:
        lab = GroupLab(pod_group(gang=2))
        (a,) = lab.pending(member("a"))
        event = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD)
        hint = self.hint(lab, event)
        assert hint(a, Change(event, new=member("b")))
        assert not hint(a, Change(event, new=member("b", "other")))
        assert not hint(a, Change(event, new=pod("single")))

    def test_a_gang_that_needs_fewer_pods_may_be_complete(self) -> None:
        lab = GroupLab(pod_group(gang=3))
        (a,) = lab.pending(member("a"))
        event = ClusterEvent(Resource.POD_GROUP, Action.UPDATE)
        hint = self.hint(lab, event)
        assert hint(a, Change(event, pod_group(gang=3), pod_group(gang=2)))
        assert not hint(a, Change(event, pod_group(gang=2), pod_group(gang=3)))
        assert not hint(a, Change(event, pod_group(), pod_group()))
        assert not hint(a, Change(event, pod_group("x", gang=3), pod_group("x", gang=2)))
