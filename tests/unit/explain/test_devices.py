"""A pod that waits for devices: how many there are, what excludes them, and what would help."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.resource import ResourceClaimTemplate, ResourceClaimTemplateSpec
from kubesched.explain.explaining import explain
from kubesched.explain.report import Explanation, HelpfulChange
from tests.support.device_objects import (
    DRIVER,
    allocated,
    alternative,
    claim,
    claiming,
    claiming_from_template,
    device,
    device_class,
    first_of,
    request,
    result,
    same,
    slice_of,
    taint,
)
from tests.support.objects import node, pod
from tests.support.worlds import explained, world_of

LARGE = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
P = claiming(pod("p"), "c")


def _gpus(node_name: str, *memory: str, **options: Any) -> Any:
    devices = [
        device(f"gpu-{number}", capacities={"memory": each}, **options)
        for number, each in enumerate(memory)
    ]
    return slice_of(f"s-{node_name}", *devices, node=node_name)


def _using(name: str, *devices: str, node_name: str = "n1", priority: int = 0) -> list[Any]:
    """A pod on a node whose claim has devices of it."""
    owned = claim(f"c-{name}", request("r", count=len(devices)))
    results = [result(each, node_name) for each in devices]
    made = pod(name, node=node_name, priority=priority)
    return [claiming(made, f"c-{name}"), allocated(owned, *results, users=[made.metadata.uid])]


def _change(said: Explanation, kind: str) -> HelpfulChange:
    [found] = [each for each in said.changes if each.kind == kind]
    return found


def test_devices_are_counted_by_what_excludes_them() -> None:
    said = explained(
        P,
        node("n1"),
        node("n2"),
        device_class(),
        claim("c", request("r", LARGE, count=3)),
        _gpus("n1", "80Gi", "80Gi", "24Gi"),
        _gpus("n2", "80Gi", "24Gi", taints=[taint(key="hot")]),
        *_using("other", "gpu-0"),
    )

    assert said.message.startswith("0/2 nodes are available: 2 cannot allocate all claims.")
    assert said.devices is not None
    assert (said.devices.devices, said.devices.nodes) == (5, 2)
    [asked] = said.devices.requests
    assert (asked.claim, asked.request, asked.count) == ("default/c", "r", 3)
    assert (asked.devices, asked.usable) == (5, 1)
    assert [(each.cause, each.text, each.devices) for each in asked.causes] == [
        ("selector", "lack memory >= 40Gi", 2),
        ("taint", "have taint hot:NoSchedule", 1),
        ("in use", "are in use", 1),
    ]
    assert asked.causes[-1].pods == ("default/other",)


def test_the_node_that_comes_closest_is_named_with_its_numbers() -> None:
    said = explained(
        P,
        node("n1"),
        node("n2"),
        device_class(),
        claim("c", request("r", LARGE, count=3)),
        _gpus("n1", "80Gi", "24Gi"),
        _gpus("n2", "80Gi", "80Gi", "24Gi"),
    )

    assert said.devices is not None
    best = said.devices.closest[0]
    assert (best.node, best.usable, best.wanted, best.devices) == ("n2", 2, 3, 3)
    assert best.text == "2 of 3 usable, 1 lacks memory >= 40Gi"


def test_constraints_say_how_many_devices_can_be_had_together() -> None:
    said = explained(
        P,
        node("n1"),
        device_class(),
        claim("c", request("r", count=3), constraints=[same("numa")]),
        slice_of("s", *(device(f"g{i}", numa=i // 2) for i in range(4)), node="n1"),
    )

    assert said.devices is not None
    assert said.devices.closest[0].text == (
        f"4 of 4 usable, at most 2 together, by the constraints on {DRIVER}/numa"
    )
    assert _change(said, "deviceConstraint").title == (
        f"drop the constraint that devices have the same {DRIVER}/numa"
    )
    assert _change(said, "deviceCount").title == "claim 2 devices instead of 3 in request r"


def test_counters_that_devices_share_are_a_cause_of_their_own() -> None:
    parts = [device(f"half-{i}", counters={"gpu": {"memory": "20Gi"}}) for i in range(2)]
    whole = device("whole", counters={"gpu": {"memory": "40Gi"}}, size="whole")
    said = explained(
        P,
        node("n1"),
        device_class(),
        claim("c", request("r", f'device.attributes["{DRIVER}"].?size.orValue("") == "whole"')),
        slice_of("s", *parts, whole, node="n1", slices=2),
        slice_of("t", node="n1", slices=2, counters={"gpu": {"memory": "40Gi"}}),
        *_using("half", "half-0"),
    )

    assert said.devices is not None
    causes = said.devices.requests[0].causes
    assert [(each.cause, each.devices) for each in causes] == [("selector", 2), ("counter", 1)]
    assert _change(said, "evict").title == "evict default/half (priority 0) from n1"


def test_users_of_devices_are_proposed_for_eviction_the_least_important_and_fewest() -> None:
    said = explained(
        P,
        node("n1"),
        device_class(),
        claim("c", request("r", count=2)),
        _gpus("n1", "80Gi", "80Gi", "80Gi"),
        *_using("important", "gpu-0", priority=100),
        *_using("batch", "gpu-1"),
    )

    change = _change(said, "evict")
    assert [each.pod for each in change.evict] == ["default/batch"]
    assert change.commands == ("kubectl -n default delete pod batch",)
    # kube-scheduler does not preempt for devices, so priority makes no difference to it.
    assert said.preemption is not None
    assert not said.preemption.node


def test_pods_of_the_same_controller_are_not_evicted_for_each_other() -> None:
    owner = (OwnerReference(kind="Job", name="j", uid="j", controller=True),)
    sibling, taken = _using("sibling", "gpu-0")
    sibling = replace(sibling, metadata=replace(sibling.metadata, owner_references=owner))
    waiting = replace(P, metadata=replace(P.metadata, owner_references=owner))

    said = explained(
        waiting,
        node("n1"),
        device_class(),
        claim("c", request()),
        _gpus("n1", "80Gi"),
        sibling,
        taken,
    )

    assert [each.kind for each in said.changes] == ["node"]


def test_claims_that_would_be_served_are_proposed_with_their_patch() -> None:
    said = explained(
        P,
        node("n1"),
        device_class(),
        claim("c", request("r", f"{LARGE} && true", count=1)),
        _gpus("n1", "24Gi", taints=[taint(key="hot", value="very")]),
    )
    assert [each.kind for each in said.changes] == []

    said = explained(
        P,
        node("n1"),
        device_class(),
        claim("c", request("r", f"{LARGE} && true")),
        _gpus("n1", "24Gi"),
    )
    change = _change(said, "deviceSelector")
    assert change.title == "drop device selector memory >= 40Gi of request r"
    assert change.claim == "default/c"
    [operation] = change.claim_patch
    assert (operation.op, operation.value) == ("replace", "true")
    assert operation.path == "/spec/devices/requests/0/exactly/selectors/0/cel/expression"
    assert change.note.startswith("A claim cannot be changed: delete the ResourceClaim c")

    said = explained(
        P,
        node("n1"),
        device_class(),
        claim("c", first_of("r", alternative("a"), alternative("b", count=2))),
        _gpus("n1", "24Gi", taints=[taint(key="hot", value="very")]),
    )
    titles = [each.title for each in said.changes if each.kind == "deviceToleration"]
    assert titles == ["tolerate device taint hot=very:NoSchedule in request r"]


def test_a_new_node_brings_its_devices() -> None:
    said = explained(
        P,
        node("n1"),
        node("bare"),
        device_class(),
        claim("c", request()),
        _gpus("n1", "80Gi"),
        *_using("a", "gpu-0", priority=10),
    )

    assert _change(said, "node").title == (
        f"one more node like n1 (4 cpu, 8Gi, 1 of {DRIVER}; there are 1)"
    )


def test_a_pod_that_is_not_there_yet_gets_claims_of_its_template() -> None:
    template = ResourceClaimTemplate(
        metadata=ObjectMeta(name="t", namespace="default"),
        spec=ResourceClaimTemplateSpec(spec=claim("c", request("r", count=2)).spec),
    )
    world = world_of(node("n1"), device_class(), _gpus("n1", "80Gi"), template)

    said = explain(world, claiming_from_template(pod("p"), "t"))

    assert said.devices is not None
    assert said.devices.closest[0].text == "1 of 1 usable"
    note = "A claim cannot be changed: change the ResourceClaimTemplate t, then create the pod anew"
    assert _change(said, "deviceCount").note.startswith(note)
    assert not len(world.cluster.devices.claims)


def test_a_claim_whose_devices_are_elsewhere_is_named_with_its_users() -> None:
    user, taken = _using("user", "gpu-0")
    waiting = claiming(pod("p", node_selector={"no": "where"}), "c-user")

    said = explained(waiting, node("n1"), device_class(), _gpus("n1", "80Gi"), user, taken)

    assert said.devices is not None
    [shared] = said.devices.allocated
    assert (shared.claim, shared.pods) == ("default/c-user", ("default/user",))
    assert shared.devices == (f"{DRIVER}/n1/gpu-0",)


def test_a_pod_on_a_node_is_explained_as_if_its_devices_were_free() -> None:
    user, taken = _using("user", "gpu-0")
    world = world_of(node("n1"), node("n2"), device_class(), _gpus("n1", "80Gi"), user, taken)

    said = explain(world, user)

    assert isinstance(user, Pod)
    assert (said.outcome, said.feasible_nodes) == ("Schedulable", 1)
    assert len(world.cluster.devices.uses) == 1


def test_pods_without_claims_are_told_nothing_of_devices() -> None:
    said = explained(pod("p", cpu="99"), node("n1"), device_class(), _gpus("n1", "80Gi"))

    assert said.devices is None
