"""Claims that the pods of a group share, and what is given up if the group does not fit."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import NodeSelector, Pod
from kubesched.api.resource import ResourceClaim, ResourceClaimConsumerReference
from kubesched.api.scheduling import PodGroup, PodGroupResourceClaim
from kubesched.framework.null_writers import NullClaimWriter
from kubesched.framework.status import Code
from kubesched.plugins.dynamic_resources import DynamicResources
from tests.support.device_objects import (
    allocated,
    claim,
    claiming,
    device,
    device_class,
    fill,
    request,
    result,
    slice_of,
)
from tests.support.group_objects import (
    GROUPS,
    GroupLab,
    key,
    member,
    messages_of,
    nodes_of,
    pod_group,
)
from tests.support.objects import node, pod, requirement, term

CLAIMS = GROUPS.replace(DRAWorkloadResourceClaims=True)
NOWHERE = NodeSelector(node_selector_terms=(term(requirement("disk", "In", "none")),))


def sharing(*claims: str, **options: Any) -> PodGroup:
    made = pod_group(**options)
    references = tuple(PodGroupResourceClaim(name=n, resource_claim_name=n) for n in claims)
    return replace(made, spec=replace(made.spec, resource_claims=references))


class Written(NullClaimWriter):
    """Remembers what would be written."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def deallocate(self, claim: ResourceClaim) -> None:
        self.calls.append(("deallocate", claim.metadata.name))

    def unreserve(self, claim: ResourceClaim, uid: str) -> None:
        self.calls.append((f"unreserve {uid}", claim.metadata.name))


class Shared(GroupLab):
    """Two nodes with one device each, and writes that are remembered."""

    def __init__(self, *objects: Any, gates: Any = CLAIMS) -> None:
        groups = [each for each in objects if isinstance(each, PodGroup)]
        super().__init__(node("n1"), node("n2"), *groups, gates=gates)
        fill(
            self.cluster,
            device_class(),
            slice_of("s1", device("a"), node="n1"),
            slice_of("s2", device("b"), node="n2"),
            *(each for each in objects if isinstance(each, ResourceClaim)),
        )
        writer = Written()
        self.written = writer.calls
        self.plugin._binder._writer = writer

    @property
    def plugin(self) -> DynamicResources:
        plugins = self.framework.plugins.filter
        (found,) = [each for each in plugins if isinstance(each, DynamicResources)]
        return found

    def give_up(self, *pods: Pod) -> tuple[Code, str]:
        self.run(*pods)
        info = self.info(key(), self.pending(*pods))
        status = self.plugin.pod_group_post_filter(self.state, info, self.trial(info)).status
        return status.code, status.message


def test_members_share_what_the_first_of_them_got() -> None:
    lab = Shared(claim("c", request()), pod_group(gang=2))
    result_of = lab.result(claiming(member("a"), "c"), claiming(member("b"), "c"))
    nodes = nodes_of(result_of)
    assert result_of.status.ok
    assert nodes["a"] == nodes["b"], "the devices are there"
    assert lab.cluster.devices.claims.pending_count == 0, "all of it is undone"


def test_members_bind_what_they_share() -> None:
    lab = Shared(claim("c", request()), pod_group(gang=2))
    pods = [claiming(member("a"), "c"), claiming(member("b"), "c")]
    result_of = lab.result(*pods)
    states = [each.decision.state for each in result_of.members]
    node_name = result_of.members[0].decision.node_name
    for state, info in zip(states, lab.pending(*pods), strict=True):
        assert lab.framework.reserve(state, info, node_name).ok
    first, second = (state.read("DynamicResources") for state in states)
    assert first.decided == second.decided
    assert lab.cluster.devices.claims.pending_count == 1
    lab.framework.unreserve(states[0], lab.pending(pods[0])[0], node_name)
    assert lab.cluster.devices.claims.pending_count == 1, "the other still counts on it"
    lab.framework.unreserve(states[1], lab.pending(pods[1])[0], node_name)
    assert lab.cluster.devices.claims.pending_count == 0
    lab.cluster.devices.validate()


def test_a_pod_outside_the_group_has_to_wait() -> None:
    lab = Shared(claim("c", request()), pod_group(gang=1))
    made = lab.result(claiming(member("a"), "c")).members[0]
    assert lab.framework.reserve(made.decision.state, made.pod, "n1").ok
    assert messages_of(lab.result(claiming(member("b"), "c"))) == {
        "b": "0/2 nodes are available: resource claim default/c is in the process of being "
        "allocated."
    }


def users_of(lab: Shared, asking: Pod) -> list[ResourceClaimConsumerReference]:
    made = lab.result(asking).members[0]
    devices = made.decision.state.read("DynamicResources")
    return [devices.user_of(number) for number in range(len(devices.claims))]


def test_claims_that_the_group_names_are_reserved_for_it() -> None:
    lab = Shared(claim("c", request()), claim("d", request()), sharing("c", gang=1))
    asking = claiming(member("a"), "c")
    (of_group,) = users_of(lab, asking)
    assert (of_group.api_group, of_group.resource, of_group.name, of_group.uid) == (
        "scheduling.k8s.io",
        "podgroups",
        "g",
        "uid-g",
    )
    (of_pod,) = users_of(lab, claiming(member("b"), "d"))
    assert (of_pod.api_group, of_pod.resource, of_pod.name) == ("", "pods", "b")
    off = Shared(claim("c", request()), sharing("c", gang=1), gates=GROUPS)
    assert users_of(off, asking)[0].resource == "pods"


@pytest.mark.parametrize("users", [[], ["a"]])
def test_an_allocation_that_is_of_no_use_is_given_up(users: list[str]) -> None:
    held = allocated(claim("c", request()), result("a"), selector=NOWHERE, users=users)
    lab = Shared(held, pod_group(gang=1))
    code, text = lab.give_up(claiming(member("a"), "c"))
    assert code is Code.UNSCHEDULABLE
    assert text == "deallocation and deletion of ResourceClaims completed"
    assert lab.written == [("deallocate", "c")]


def reserved_for_group(made: ResourceClaim) -> ResourceClaim:
    user = ResourceClaimConsumerReference(
        api_group="scheduling.k8s.io", resource="podgroups", name="g", uid="uid-g"
    )
    return replace(made, status=replace(made.status, reserved_for=(user,)))


def test_what_only_the_group_uses_is_given_up_too() -> None:
    held = allocated(claim("c", request()), result("a"), selector=NOWHERE)
    lab = Shared(reserved_for_group(held), sharing("c", gang=1))
    assert lab.give_up(claiming(member("a"), "c"))[1] == (
        "deallocation of PodGroup ResourceClaim completed"
    )
    assert lab.written == [("deallocate", "c")]


def test_a_claim_that_could_be_used_is_no_longer_reserved_for_a_group_that_does_not_fit() -> None:
    held = reserved_for_group(allocated(claim("c", request()), result("a")))
    lab = Shared(held, sharing("c", gang=1))
    code, text = lab.give_up(claiming(member("a", cpu="100"), "c"))
    assert (code, text) == (
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        "ResourceClaim unreserved for PodGroup",
    )
    assert lab.written == [("unreserve uid-g", "c")]


def test_nothing_is_given_up_while_another_member_runs() -> None:
    held = reserved_for_group(allocated(claim("c", request()), result("a")))
    lab = Shared(held, sharing("c", gang=1))
    lab.cluster.put_pod(member("old", node="n1"))
    assert lab.give_up(claiming(member("a", cpu="100"), "c"))[1] == (
        "deallocation and deletion of ResourceClaims completed"
    )
    assert lab.written == []


def test_a_group_that_is_not_known_yet_has_no_claims() -> None:
    lab = Shared(claim("c", request()), sharing("c", gang=1))
    stray = lab.cluster.compiler.pending(claiming(member("x", group="other"), "c"))
    assert lab.plugin._users(pod("alone")) == []
    with pytest.raises(
        Exception, match="pod group state not found for pod group podgroup/default/other"
    ):
        lab.plugin._users(stray.pod)
