"""Which pods are members of a group: those that wait, those that are assumed, those on nodes."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.transaction import Transaction
from tests.support.group_objects import coscheduled_key, key, labelled, member, pod_group
from tests.support.objects import node, pod


def bound(each: Pod, node_name: str = "n1") -> Pod:
    return replace(each, spec=replace(each.spec, node_name=node_name))


def test_a_pod_names_its_group() -> None:
    groups = Cluster().groups
    assert groups.of(member("p", "g")) == key("g")
    assert groups.of(pod("p")) is None
    assert str(key("g")) == "podgroup/default/g"


def test_without_the_gate_what_the_spec_names_does_not_count() -> None:
    groups = Cluster().groups
    groups.by_spec = False
    assert groups.of(member("p", "g")) is None


def test_a_label_names_a_group_where_the_pods_profile_says_so() -> None:
    cluster = Cluster()
    cluster.put_pod(bound(labelled("early", "g")))
    assert cluster.groups.of(labelled("p", "g")) is None

    cluster.group_by_label("default-scheduler")

    assert cluster.groups.of(labelled("p", "g")) == coscheduled_key("g")
    other = labelled("p", "g")
    other = replace(other, spec=replace(other.spec, scheduler_name="other"))
    assert cluster.groups.of(other) is None
    assert set(cluster.groups.members(coscheduled_key("g")).placed) == {"early"}
    cluster.validate()


def test_a_member_that_is_assumed_counts_once_and_has_a_node() -> None:
    cluster = Cluster()
    cluster.put_node(node("n1"))
    info = cluster.compiler.pending(member("p"))
    cluster.groups.put_pending(info)
    assert (cluster.groups.members(key()).count, cluster.groups.members(key()).placed_count) == (
        1,
        0,
    )

    cluster.assume(info, "n1")

    members = cluster.groups.members(key())
    assert (members.count, members.placed_count, members.unplaced()) == (1, 1, [])


def test_an_assumption_that_is_taken_back_leaves_the_member_waiting() -> None:
    cluster = Cluster()
    cluster.put_node(node("n1"))
    info = cluster.compiler.pending(member("p"))
    cluster.groups.put_pending(info)
    cluster.assume(info, "n1")

    cluster.forget("p")

    assert cluster.groups.members(key()).unplaced() == [info]


def test_an_assumed_member_that_is_deleted_is_gone() -> None:
    cluster = Cluster()
    cluster.put_node(node("n1"))
    info = cluster.compiler.pending(member("p"))
    cluster.groups.put_pending(info)
    cluster.assume(info, "n1")

    cluster.groups.remove_pending(info.pod)
    cluster.forget("p")

    assert cluster.groups.members(key()).count == 0
    assert list(cluster.groups.groups_with_members()) == []


def test_groups_are_found_by_the_group_that_they_are_part_of() -> None:
    groups = Cluster().groups
    groups.objects.put(pod_group("a", parent="top"))
    groups.objects.put(pod_group("b"))

    assert [each.metadata.name for each in groups.objects.parts_of("default", "top")] == ["a"]
    assert groups.objects.parts_of("other", "top") == []


class MembershipMachine(RuleBasedStateMachine):
    """Members come, are assumed, bound, forgotten and deleted, also in transactions."""

    first: ClassVar = {
        f"p{n}": member(f"p{n}", f"g{n % 2}") if n < 4 else labelled(f"p{n}", f"g{n % 2}")
        for n in range(8)
    }

    def __init__(self) -> None:
        super().__init__()
        self.pods = dict(self.first)
        self.cluster = Cluster()
        self.cluster.group_by_label("default-scheduler")
        self.cluster.put_node(node("n1"))
        #: uid → "pending", "assumed" or "bound"
        self.model: dict[str, str] = {}
        self.tx: Transaction | None = None
        self.before: dict[str, str] = {}

    uids = st.sampled_from(sorted(first))

    @rule(uid=uids, group=st.sampled_from(["g0", "g1"]))
    def relabel(self, uid: str, group: str) -> None:
        if uid in self.model and self.tx is None and self.pods[uid].spec.scheduling_group is None:
            if self.model[uid] == "assumed":
                return  # the new version counts once it is bound, or not
            self.pods[uid] = labelled(uid, group)
            if self.model[uid] == "bound":
                self.cluster.put_pod(bound(self.pods[uid]))
            else:
                self.cluster.groups.put_pending(self.cluster.compiler.pending(self.pods[uid]))

    @rule(uid=uids)
    def come(self, uid: str) -> None:
        if uid not in self.model and self.tx is None:
            info = self.cluster.compiler.pending(self.pods[uid])
            self.cluster.groups.put_pending(info)
            self.model[uid] = "pending"

    @rule(uid=uids)
    def assume(self, uid: str) -> None:
        if self.model.get(uid) == "pending":
            info = self.cluster.compiler.pending(self.pods[uid])
            if self.tx is None:
                self.cluster.assume(info, "n1")
            else:
                self.tx.place(info, "n1")
            self.model[uid] = "assumed"

    @rule(uid=uids)
    def forget(self, uid: str) -> None:
        if self.model.get(uid) == "assumed" and self.tx is None:
            self.cluster.forget(uid)
            self.model[uid] = "pending"

    @rule(uid=uids)
    def bind(self, uid: str) -> None:
        if uid in self.model and self.tx is None:
            each = bound(self.pods[uid])
            self.cluster.groups.remove_pending(each)
            self.cluster.put_pod(each)
            self.model[uid] = "bound"

    @rule(uid=uids)
    def delete(self, uid: str) -> None:
        if uid in self.model and self.tx is None:
            self.cluster.groups.remove_pending(self.pods[uid])
            self.cluster.forget(uid)
            self.cluster.remove_pod(uid)
            del self.model[uid]

    @rule(uid=uids)
    def evict(self, uid: str) -> None:
        if self.tx is not None and self.model.get(uid) == "bound":
            self.tx.remove(uid)
            del self.model[uid]

    @rule()
    def begin(self) -> None:
        if self.tx is None:
            self.tx, self.before = self.cluster.transaction(), dict(self.model)

    @rule()
    def undo(self) -> None:
        if self.tx is not None:
            self.tx.undo()
            self.tx, self.model = None, self.before

    @invariant()
    def members_are_what_the_pods_say(self) -> None:
        self.cluster.validate()
        for each in (make(name) for make in (key, coscheduled_key) for name in ("g0", "g1")):
            members = self.cluster.groups.members(each)
            of_group = {
                uid: state
                for uid, state in self.model.items()
                if self.cluster.groups.of(self.pods[uid]) == each
            }
            placed = {uid for uid, state in of_group.items() if state != "pending"}
            assert members.count == len(of_group)
            assert set(members.placed) == placed
            assert {each.uid for each in members.unplaced()} == of_group.keys() - placed


TestMembership = MembershipMachine.TestCase
TestMembership.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
