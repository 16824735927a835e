"""What wakes pods that wait for devices."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.resource import ResourceClaim
from kubesched.plugins.claim_hints import registrations
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change
from tests.support.device_objects import (
    allocated,
    claim,
    claiming,
    claiming_from_template,
    fill,
    request,
    result,
)
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

HAS = allocated(claim("own", request()), result("a"), version="2")
HAS_NONE = claim("own", request(), version="3")
OTHER = allocated(claim("other", request()), result("a"), version="2")
OTHER_FREED = claim("other", request(), version="3")
MARKED = replace(HAS_NONE, metadata=replace(HAS_NONE.metadata, finalizers=("x",)))
WAITING = claiming(pod("p"), "own")


def helps(
    old: ResourceClaim | None,
    new: ResourceClaim | None,
    waiting: Pod = WAITING,
    *known: ResourceClaim,
) -> bool:
    lab = Lab(node("n1"))
    fill(lab.cluster, *(known or (HAS_NONE,)))
    (found,) = [
        each
        for each in registrations(lab.cluster.devices)
        if each.event.resource == Resource.RESOURCE_CLAIM
    ]
    assert found.hint is not None
    assert found.screen is not None
    info = lab.pending(waiting)
    lab.cluster.put_pending(info)
    change = Change(ClusterEvent(Resource.RESOURCE_CLAIM, Action.UPDATE), old, new)
    helped = found.hint(info, change)
    assert found.screen(info, change) or info.uid in found.apart(change) or not helped
    return helped


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        (None, HAS_NONE, True),
        (HAS_NONE, HAS, True),
        (HAS, HAS_NONE, True),
        (HAS_NONE, MARKED, False),
        (None, OTHER_FREED, False),
        (OTHER_FREED, OTHER, False),
        (OTHER, OTHER_FREED, True),
        (OTHER, None, True),
        (OTHER_FREED, None, False),
    ],
)
def test_devices_that_are_freed_help_all_and_a_claim_its_own_pod(
    old: ResourceClaim | None, new: ResourceClaim | None, want: bool
) -> None:
    assert helps(old, new) == want


def test_a_pod_whose_claims_are_not_there_cannot_be_helped() -> None:
    assert not helps(OTHER, OTHER_FREED, claiming(pod("p"), "own", "missing"))
    assert helps(OTHER, None, claiming(pod("p"), "own", "missing"))


def test_a_claim_that_was_made_for_the_pod_helps_it() -> None:
    lab = Lab(node("n1"))
    fill(lab.cluster, claim("own", owner="p"))
    (hint,) = [
        each.hint
        for each in registrations(lab.cluster.devices)
        if each.event.resource == Resource.TARGET_POD
    ]
    assert hint is not None
    event = ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    before = claiming_from_template(pod("p"), "t")
    for given, want in (("own", True), ("later", False)):
        now = claiming_from_template(pod("p"), "t", given)
        assert hint(lab.pending(before), Change(event, before, now)) == want


# --- which pods are asked at all ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "may_help", "apart"),
    [
        (None, HAS_NONE, False, ["p"]),
        (HAS_NONE, HAS, False, ["p"]),
        (OTHER_FREED, OTHER, False, []),
        (HAS, HAS_NONE, True, ["p"]),
        (OTHER, None, True, []),
    ],
)
def test_of_pods_that_are_alike_only_those_with_the_claim_are_asked(
    old: ResourceClaim | None, new: ResourceClaim | None, may_help: bool, apart: list[str]
) -> None:
    lab = Lab(node("n1"))
    waiting = lab.pending(WAITING)
    lab.cluster.put_pending(waiting)
    (found,) = [each for each in registrations(lab.cluster.devices) if each.screen]
    change = Change(ClusterEvent(Resource.RESOURCE_CLAIM, Action.UPDATE), old, new)
    assert found.screen is not None
    assert found.screen(waiting, change) == may_help
    assert list(found.apart(change)) == apart


def test_groups_may_use_claims_that_their_pods_do_not_name() -> None:
    lab = Lab(node("n1"))
    all_of_them = registrations(lab.cluster.devices, of_groups=True)
    (found,) = [each for each in all_of_them if each.screen]
    change = Change(ClusterEvent(Resource.RESOURCE_CLAIM, Action.UPDATE), OTHER_FREED, OTHER)
    assert found.screen is not None
    assert found.screen(lab.pending(WAITING), change)


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        (None, HAS_NONE, ["default/p"]),
        (HAS_NONE, HAS, ["default/p"]),
        (HAS_NONE, None, ["default/p"]),
        (OTHER_FREED, OTHER, []),
        (HAS, HAS_NONE, None),
        (OTHER, OTHER_FREED, None),
        (OTHER, None, None),
    ],
)
def test_only_devices_that_are_given_back_concern_other_pods(
    old: ResourceClaim | None, new: ResourceClaim | None, want: list[str] | None
) -> None:
    lab = Lab(node("n1"))
    lab.cluster.put_pending(lab.pending(WAITING))
    (pre_hint,) = [each.pre_hint for each in registrations(lab.cluster.devices) if each.pre_hint]
    event = ClusterEvent(Resource.RESOURCE_CLAIM, Action.UPDATE)
    found = pre_hint(Change(event, old, new))
    assert (None if found is None else list(found)) == want
