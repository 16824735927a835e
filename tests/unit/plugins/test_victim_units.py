"""Units of preemption: what is evicted together, and which unit is more important."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Node, Pod
from kubesched.api.scheduling import CompositePodGroup, PodGroup
from kubesched.plugins.victim_units import VictimUnit, VictimUnits
from tests.support.group_objects import COMPOSITE, GroupLab, composite, member, pod_group
from tests.support.objects import node, pod


def units(*objects: Node | Pod | PodGroup | CompositePodGroup) -> list[VictimUnit]:
    """The units of all placed pods of a cluster with two nodes."""
    lab = GroupLab(node("n1"), node("n2"), *objects, gates=COMPOSITE)
    pods = [info for on_node in lab.cluster.table.pods for info in on_node.values()]
    return VictimUnits(lab.forest).of(pods)


def names(found: list[VictimUnit]) -> list[set[str]]:
    return [{each.pod.metadata.name for each in unit.pods} for unit in found]


class TestUnits:
    def test_a_pod_without_a_group_is_a_unit_of_its_own(self) -> None:
        found = units(pod("a", node="n1", priority=5), pod("b", node="n1"))
        assert names(found) == [{"a"}, {"b"}]
        assert [each.priority for each in found] == [5, 0]
        assert not any(each.is_group for each in found)

    def test_members_of_an_ordinary_group_are_units_of_their_own_with_its_priority(self) -> None:
        found = units(
            pod_group(gang=2, priority=7),
            member("a", node="n1", priority=1),
            member("b", node="n2", priority=2),
        )
        assert names(found) == [{"a"}, {"b"}]
        assert [each.priority for each in found] == [7, 7]
        assert all(each.is_group for each in found)

    def test_a_group_with_disruption_mode_all_is_one_unit_over_all_nodes(self) -> None:
        (found,) = units(
            pod_group(gang=2, all_or_none=True, priority=7),
            member("a", node="n1"),
            member("b", node="n2"),
        )
        assert names([found]) == [{"a", "b"}]
        assert found.priority == 7

    def test_the_highest_group_that_is_disrupted_as_a_whole_counts(self) -> None:
        (found,) = units(
            composite(gang=1, all_or_none=True, priority=9),
            pod_group("g", gang=1, all_or_none=True, parent="top"),
            pod_group("h", gang=1, parent="top"),
            member("a", "g", node="n1"),
            member("b", "h", node="n2"),
        )
        assert names([found]) == [{"a", "b"}]
        assert found.priority == 9

    def test_groups_are_told_from_single_pods_before_any_are_placed(self) -> None:
        lab = GroupLab(node("n1"), pod("a", node="n1"), pod_group(gang=1))
        assert not VictimUnits(lab.forest).any_grouped
        lab = GroupLab(node("n1"), member("a", node="n1"), pod_group(gang=1))
        assert VictimUnits(lab.forest).any_grouped


class TestImportance:
    def test_priority_then_kind_then_size_then_age(self) -> None:
        def started(name: str, at: str | None, priority: int = 0) -> Pod:
            made = pod(name, node="n1", priority=priority)
            return replace(made, status=replace(made.status, start_time=at))

        found = units(
            pod_group("pair", gang=2, all_or_none=True),
            pod_group("trio", gang=3, all_or_none=True),
            composite("top", gang=1, all_or_none=True),
            pod_group("child", gang=1, parent="top"),
            started("new", "2026-01-02T00:00:00Z"),
            started("not-started", None),
            started("high", None, priority=1),
            started("old", "2026-01-01T00:00:00Z"),
            *(member(f"p{n}", "pair", node="n1") for n in range(2)),
            *(member(f"t{n}", "trio", node="n1") for n in range(3)),
            member("c", "child", node="n1"),
        )
        assert names(sorted(found, key=lambda unit: unit.importance)) == [
            {"high"},
            {"c"},
            {"t0", "t1", "t2"},
            {"p0", "p1"},
            {"old"},
            {"new"},
            {"not-started"},
        ]
