"""What must hold of a group before it is tried."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.queue.queued_group import QueuedGroup
from kubesched.queue.queued_pod import QueuedPod
from kubesched.scheduler.group_checks import build_info, disagreement
from tests.support.group_objects import (
    COMPOSITE,
    GroupLab,
    composite,
    composite_key,
    key,
    member,
    pod_group,
)


def check(*pods: Pod, placed: tuple[Pod, ...] = (), policy: str | None = None) -> str:
    lab = GroupLab(pod_group(priority=5, policy=policy))
    info = lab.info(key(), lab.pending(*pods))
    return disagreement(info, placed, groups_have_policy=policy is not None)


def with_spec(each: Pod, **changes: object) -> Pod:
    return replace(each, spec=replace(each.spec, **changes))


def test_pods_that_agree_with_their_group_are_fine() -> None:
    assert check(member("a", priority=5), member("b", priority=5)) == ""


def test_all_pods_have_the_priority_of_the_group() -> None:
    assert check(member("a", priority=5), member("b")) == (
        "all pods in a single pod group should have the same priority as the pod group's "
        "priority, got 0 and 5"
    )


def test_pods_that_have_a_node_are_looked_at_too() -> None:
    assert "priority" in check(member("a", priority=5), placed=(member("old", priority=4),))


def test_all_pods_have_the_same_scheduler() -> None:
    other = with_spec(member("b", priority=5), scheduler_name="other")
    assert check(member("a", priority=5), other) == (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        'got: "other" and "default-scheduler"'
    )


def test_all_pods_have_the_same_preemption_policy() -> None:
    never = with_spec(member("b", priority=5), preemption_policy="Never")
    assert check(member("a", priority=5), never) == (
        "all pods in a single pod group should have the same preemption policy, "
        "got Never and PreemptLowerPriority"
    )


def test_with_the_gate_it_is_the_group_s() -> None:
    assert check(member("a", priority=5), policy="Never") == (
        "all pods in a single pod group should have the same preemption policy as the pod "
        "group's preemption policy, got PreemptLowerPriority and Never"
    )


def test_a_queued_tree_is_shown_as_a_tree() -> None:
    lab = GroupLab(
        composite("top"),
        pod_group("one", parent="top"),
        pod_group("two", parent="top"),
        gates=COMPOSITE,
    )
    queued = QueuedGroup(composite_key(), lab.forest, queued_at=0.0)
    for number, info in enumerate(lab.pending(member("b", "two"), member("a", "one"))):
        queued.add(QueuedPod(info, queued_at=float(number)))
    root = build_info(lab.forest, queued)
    assert root is not None
    shown = {child.key.name: [pod.uid for pod in child.pods] for child in root.children}
    assert shown == {"one": ["a"], "two": ["b"]}
    assert [pod.uid for pod in root.pods] == ["a", "b"]

    without = build_info(lab.forest, queued, leaving_out={"a"})
    assert without is not None
    assert [pod.uid for pod in without.pods] == ["b"]


def test_a_group_that_is_gone_cannot_be_shown() -> None:
    lab = GroupLab()
    queued = QueuedGroup(key(), lab.forest, queued_at=0.0)
    (info,) = lab.pending(member("a"))
    queued.add(QueuedPod(info, queued_at=0.0))
    assert build_info(lab.forest, queued) is None
