"""The cycle of a group: members in turn, placements, and groups of groups."""

from __future__ import annotations

from typing import Any

from kubesched.api import names
from kubesched.framework.status import Code
from kubesched.scheduler.group_results import complete
from tests.support.group_objects import (
    COMPOSITE,
    TOPOLOGY,
    ZONE,
    GroupLab,
    composite,
    composite_key,
    key,
    member,
    messages_of,
    nodes_of,
    pod_group,
)
from tests.support.objects import node, pod

FULL = "0/1 nodes are available: 1 Insufficient cpu."


class TestGangs:
    def test_each_member_sees_those_before_it(self) -> None:
        lab = GroupLab(node("n1", cpu="1"), node("n2", cpu="1"), pod_group(gang=2))
        result = lab.result(member("a", cpu="1"), member("b", cpu="1"))
        assert result.status.ok
        assert result.has_scheduled
        assert sorted(nodes_of(result).values()) == ["n1", "n2"]

    def test_the_cluster_stays_as_it_is(self) -> None:
        lab = GroupLab(node("n1"), pod_group(gang=2))
        before = lab.cluster.table.requested.copy()
        lab.result(member("a", cpu="1"), member("b", cpu="1"))
        assert lab.cluster.pod_count == 0
        assert (lab.cluster.table.requested == before).all()

    def test_an_attempt_ends_when_too_few_can_be_placed(self) -> None:
        lab = GroupLab(node("n1", cpu="2"), pod_group(gang=4))
        result = lab.result(*(member(f"p{n}", cpu="1") for n in range(4)))
        assert result.status.code is Code.UNSCHEDULABLE
        assert result.status.message == (
            "minCount (4) cannot be satisfied: 2 scheduled, 1 remaining"
        )
        assert list(nodes_of(result)) == ["p0", "p1", "p2"], "the last was not tried"
        assert messages_of(result) == {"p2": FULL}
        assert not result.has_scheduled

    def test_a_gang_of_too_few_pods_is_not_tried_at_all(self) -> None:
        result = GroupLab(node("n1"), pod_group(gang=3)).result(member("a"))
        assert result.status.message == (
            "pod group is unschedulable, minCount (3) cannot be satisfied: 0 scheduled, 1 remaining"
        )
        assert result.members == []

    def test_members_that_have_a_node_count(self) -> None:
        lab = GroupLab(node("n1"), member("old", node="n1"), pod_group(gang=2))
        assert lab.result(member("a")).status.ok

    def test_more_members_than_needed_are_placed_as_far_as_they_fit(self) -> None:
        lab = GroupLab(node("n1", cpu="1"), pod_group(gang=1))
        result = lab.result(member("a", cpu="1"), member("b", cpu="1"))
        assert result.status.ok
        assert nodes_of(result) == {"a": "n1", "b": ""}

    def test_enough_members_had_a_node_before_and_none_gets_one(self) -> None:
        lab = GroupLab(node("n1", cpu="1"), member("old", node="n1", cpu="1"), pod_group(gang=1))
        result = lab.result(member("a", cpu="1"))
        assert result.status.message == "pod group is unschedulable"


class TestBasicGroups:
    def test_one_pod_that_fits_is_enough(self) -> None:
        lab = GroupLab(node("n1", cpu="1"), pod_group())
        result = lab.result(member("a", cpu="2"), member("b", cpu="1"))
        assert result.status.ok
        assert nodes_of(result) == {"a": "", "b": "n1"}

    def test_none_that_fits_is_not(self) -> None:
        result = GroupLab(node("n1", cpu="1"), pod_group()).result(member("a", cpu="2"))
        assert result.status.message == (
            "minCount (1) cannot be satisfied: 0 scheduled, 0 remaining"
        )

    def test_without_nodes_there_is_a_reason_all_the_same(self) -> None:
        result = GroupLab(pod_group()).result(member("a"))
        assert messages_of(result) == {"a": "no nodes available to schedule pods"}


class TestNominations:
    def test_members_keep_no_room_free_for_each_other(self) -> None:
        lab = GroupLab(node("n1", cpu="1"), pod_group(gang=1))
        waits = lab.pending(member("b", cpu="1", nominated="n1"))
        lab.cluster.nominator.nominate(waits[0], "n1")
        result = lab.result(member("a", cpu="1"), member("b", cpu="1", nominated="n1"))
        assert nodes_of(result) == {"a": "n1", "b": ""}
        assert lab.cluster.nominator.node_of("b") == "n1", "and it is as it was"

    def test_other_pods_nominations_count(self) -> None:
        lab = GroupLab(node("n1", cpu="1"), pod_group(gang=1))
        (other,) = lab.pending(pod("other", cpu="1", priority=5))
        lab.cluster.nominator.nominate(other, "n1")
        assert messages_of(lab.result(member("a", cpu="1"))) == {"a": FULL}


class TestPlacements:
    def zones(self) -> list[Any]:
        return [
            node("n1", zone="a", cpu="1"),
            node("n2", zone="b", cpu="1"),
            node("n3", zone="b", cpu="1"),
        ]

    def lab(self, *objects: Any) -> GroupLab:
        return GroupLab(*self.zones(), *objects, gates=TOPOLOGY)

    def test_a_group_goes_to_the_domain_that_it_fits_into(self) -> None:
        lab = self.lab(pod_group(gang=2, topology=ZONE))
        result = lab.result(member("a", cpu="1"), member("b", cpu="1"))
        assert sorted(nodes_of(result).values()) == ["n2", "n3"]
        assert [(each.placement.name, each.feasible) for each in result.tried] == [
            ("a", False),
            ("b", True),
        ]
        assert result.placement is not None
        assert result.placement.name == "b"

    def test_if_it_fits_nowhere_the_first_domain_says_why(self) -> None:
        lab = self.lab(pod_group(gang=3, topology=ZONE))
        result = lab.result(*(member(f"p{n}", cpu="1") for n in range(3)))
        assert result.status.message == (
            "pod group is unschedulable, 0/2 placements are available, first placement status: "
            "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"
        )
        assert messages_of(result) == {"p1": FULL}, "of the nodes of that domain alone"

    def test_a_member_that_has_a_node_decides_on_the_domain(self) -> None:
        lab = self.lab(member("old", node="n1"), pod_group(gang=1, topology=ZONE))
        result = lab.result(member("a", cpu="1"))
        assert nodes_of(result) == {"a": "n1"}

    def test_members_in_two_domains_are_an_error(self) -> None:
        lab = self.lab(
            member("x", node="n1"), member("y", node="n2"), pod_group(gang=1, topology=ZONE)
        )
        status = lab.result(member("a")).status
        assert status.code is Code.ERROR
        assert status.message == (
            "cannot determine domain for already scheduled pods: "
            "more than 1 domain found for pod group: a, b"
        )

    def test_no_node_has_the_label(self) -> None:
        lab = self.lab(pod_group(gang=1, topology="rack"))
        assert lab.result(member("a")).status.message == "no feasible placements found"

    def test_of_several_domains_the_one_with_more_pods_is_taken(self) -> None:
        lab = self.lab(pod_group(gang=1, topology=ZONE))
        result = lab.result(member("a", cpu="1"), member("b", cpu="1"))
        totals = {each.placement.name: dict(each.scores) for each in result.scores}
        assert totals["a"]["PodGroupPodsCount"] == 50
        assert totals["b"]["PodGroupPodsCount"] == 100
        assert sorted(nodes_of(result).values()) == ["n2", "n3"]

    def test_without_the_gate_there_are_no_placements(self) -> None:
        lab = GroupLab(*self.zones(), pod_group(gang=3, topology=ZONE))
        assert lab.result(*(member(f"p{n}", cpu="1") for n in range(3))).status.ok


class TestCompositeGroups:
    def lab(self, *, minimum: int, cpu: str = "2", topology: str | None = None) -> GroupLab:
        return GroupLab(
            node("n1", cpu=cpu, zone="a"),
            composite("top", gang=minimum, topology=topology),
            pod_group("one", gang=1, parent="top", created="2026-01-01T00:00:00Z"),
            pod_group("two", gang=2, parent="top", created="2026-01-02T00:00:00Z"),
            gates=COMPOSITE,
        )

    def pods(self) -> list[Any]:
        return [
            member("a", "one", cpu="1"),
            member("b", "two", cpu="1"),
            member("c", "two", cpu="1"),
        ]

    def test_all_groups_are_placed_if_there_is_room(self) -> None:
        lab = self.lab(minimum=2, cpu="3")
        results = lab.run(*self.pods(), root=composite_key())
        assert all(each.status.ok for each in results.values())
        assert nodes_of(results[key("two")]) == {"b": "n1", "c": "n1"}

    def test_a_group_that_fits_is_enough_if_one_is_needed(self) -> None:
        lab = self.lab(minimum=1)
        results = lab.run(*self.pods(), root=composite_key())
        assert results[composite_key()].status.ok
        assert results[key("one")].status.ok
        assert not results[key("two")].status.ok, "there is room for one of its two pods"

    def test_a_parent_that_fails_takes_its_groups_with_it(self) -> None:
        lab = self.lab(minimum=2)
        root = lab.info(composite_key(), lab.pending(*self.pods()))
        results = complete(root, lab.cycle.run(lab.framework, root, lab.state))
        top = results[composite_key()].status
        assert top.message == (
            "pod group is unschedulable, 0/1 placements are available, first placement status: "
            "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
        )
        assert results[key("one")].status == top
        assert [each.decision.status.message for each in results[key("one")].members] == [
            top.message
        ]
        assert lab.cluster.pod_count == 0

    def test_a_group_goes_where_its_parent_goes(self) -> None:
        lab = GroupLab(
            node("n1", cpu="4", zone="a", labels={"rack": "r1"}),
            node("n2", cpu="1", zone="b", labels={"rack": "r1"}),
            composite("top", gang=2, topology=ZONE),
            pod_group("one", gang=2, parent="top", topology=names.LABEL_HOSTNAME),
            pod_group("two", gang=1, parent="top", topology="rack"),
            gates=COMPOSITE,
        )
        lab.cluster.put_node(
            node("n1", cpu="4", zone="a", labels={"rack": "r1", names.LABEL_HOSTNAME: "n1"})
        )
        results = lab.run(
            member("a", "one", cpu="1"),
            member("b", "one", cpu="1"),
            member("c", "two", cpu="1"),
            root=composite_key(),
        )
        assert nodes_of(results[key("two")]) == {"c": "n1"}, "n2 has room, in another zone"
