"""Groups of groups: roots, leaves, and what counts for preemption."""

from __future__ import annotations

from kubesched.cluster.cluster import Cluster
from kubesched.cluster.group_forest import GroupForest
from tests.support.group_objects import composite, composite_key, key, member, pod_group


def forest_of(*groups: object, composite_gate: bool = True) -> GroupForest:
    cluster = Cluster()
    for each in groups:
        store = (
            cluster.groups.composites
            if type(each).__name__ == "CompositePodGroup"
            else cluster.groups.objects
        )
        store.put(each)  # type: ignore[arg-type]
    return GroupForest(cluster.groups, composite=composite_gate)


TREE = (
    composite("top", priority=7),
    composite("mid", parent="top", all_or_none=True),
    pod_group("late", parent="mid", created="2026-01-02T00:00:00Z"),
    pod_group("early", parent="mid", created="2026-01-01T00:00:00Z", all_or_none=True),
    pod_group("single", priority=3, all_or_none=True),
)


def test_the_root_is_the_highest_group() -> None:
    forest = forest_of(*TREE)
    assert forest.root_of(key("late")) == composite_key("top")
    assert forest.root_of(key("single")) == key("single")


def test_without_the_gate_parents_are_ignored() -> None:
    forest = forest_of(*TREE, composite_gate=False)
    assert forest.root_of(key("late")) == key("late")
    assert forest.children(composite_key("mid")) == []


def test_a_group_whose_parent_is_not_known_has_no_root() -> None:
    assert forest_of(pod_group("g", parent="top")).root_of(key("g")) is None
    assert forest_of().root_of(key("g")) is None


def test_a_group_above_itself_has_no_root() -> None:
    forest = forest_of(composite("a", parent="b"), composite("b", parent="a"))
    assert forest.root_of(composite_key("a")) is None
    assert list(forest.leaves(composite_key("a"))) == []


def test_groups_are_scheduled_in_the_order_of_their_age() -> None:
    assert list(forest_of(*TREE).leaves(composite_key("top"))) == [key("early"), key("late")]


def test_a_member_has_the_priority_of_its_root() -> None:
    forest = forest_of(*TREE)
    compile_pod = Cluster().compiler.pending
    assert forest.priority_of(compile_pod(member("p", "late", priority=1))) == 7
    assert forest.priority_of(compile_pod(member("p", "single", priority=1))) == 3
    assert forest.priority_of(compile_pod(member("p", "unknown", priority=1))) == 1


def test_the_highest_group_that_is_disrupted_as_a_whole_counts() -> None:
    forest = forest_of(*TREE)
    compile_pod = Cluster().compiler.pending
    assert forest.unit_of(compile_pod(member("p", "early"))) == composite_key("mid")
    assert forest.unit_of(compile_pod(member("p", "late"))) == composite_key("mid")
    assert forest.unit_of(compile_pod(member("p", "single"))) == key("single")
    assert forest.unit_of(compile_pod(member("p", "unknown"))) is None
