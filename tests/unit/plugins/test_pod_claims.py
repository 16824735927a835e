"""Which claims a pod refers to, which of them it may use, and what they are reserved for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod, PodResourceClaim
from kubesched.api.meta import OwnerReference
from kubesched.api.resource import ResourceClaim, ResourceClaimConsumerReference
from kubesched.api.scheduling import (
    GroupStatus,
    PodGroup,
    PodGroupResourceClaim,
    PodGroupResourceClaimStatus,
)
from kubesched.cluster.device_uses import DeviceUses
from kubesched.cluster.resource_claims import ResourceClaims
from kubesched.errors import ObjectError
from kubesched.plugins.pod_claims import (
    claim_name_of_group,
    is_for_group,
    is_reserved_for,
    named_claims,
    usable_claims,
    user_of,
)
from tests.support.device_objects import claim, claiming, claiming_from_template
from tests.support.group_objects import member, pod_group
from tests.support.objects import pod


def known(*claims: ResourceClaim) -> ResourceClaims:
    found = ResourceClaims(DeviceUses())
    for each in claims:
        found.put(each)
    return found


def owned(made: ResourceClaim, version: str = "v1beta1", name: str = "g") -> ResourceClaim:
    owner = OwnerReference(
        api_version=f"scheduling.k8s.io/{version}",
        kind="PodGroup",
        name=name,
        uid=f"uid-{name}",
        controller=True,
    )
    return replace(made, metadata=replace(made.metadata, owner_references=(owner,)))


def test_claims_are_in_the_order_of_the_spec_with_their_names_there() -> None:
    claims = known(claim("c"), claim("d"))
    found = named_claims(claiming(pod("p"), "d", "c"), claims, of_groups=False)
    assert [(name, each.metadata.name) for name, each in found] == [("d", "d"), ("c", "c")]


def test_a_claim_that_is_not_needed_is_left_out() -> None:
    assert usable_claims(claiming_from_template(pod("p"), "t", None), known()) == []


def test_a_reference_of_an_unknown_form_is_refused() -> None:
    made = pod("p")
    strange = replace(made, spec=replace(made.spec, resource_claims=(PodResourceClaim(name="x"),)))
    text = 'pod "default/p", spec.resourceClaim "x": none of the supported fields are set'
    with pytest.raises(ObjectError, match=text):
        usable_claims(strange, known())


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1", "v1"])
def test_a_claim_may_be_made_for_the_group_if_the_gate_is_on(version: str) -> None:
    asking = claiming_from_template(member("p"), "t", "c")
    claims = known(owned(claim("c"), version))
    assert usable_claims(asking, claims, of_groups=True)
    with pytest.raises(ObjectError, match=r"\(Pod is not owner\)"):
        usable_claims(asking, claims)


@pytest.mark.parametrize("made", [claim("c"), owned(claim("c"), name="other")])
def test_a_claim_for_neither_is_refused(made: ResourceClaim) -> None:
    asking = claiming_from_template(member("p"), "t", "c")
    text = (
        r"ResourceClaim default/c was not created for Pod default/p "
        r"\(neither Pod nor PodGroup g is the owner\)"
    )
    with pytest.raises(ObjectError, match=text):
        usable_claims(asking, known(made), of_groups=True)


def reserved(*users: ResourceClaimConsumerReference) -> ResourceClaim:
    made = claim("c")
    return replace(made, status=replace(made.status, reserved_for=users))


FOR_GROUP = ResourceClaimConsumerReference(
    api_group="scheduling.k8s.io", resource="podgroups", name="g", uid="uid-g"
)


@pytest.mark.parametrize(
    ("asking", "made", "want", "with_groups"),
    [
        (pod("p"), claim("c"), False, False),
        (pod("p"), reserved(ResourceClaimConsumerReference(uid="p")), True, True),
        (pod("p"), reserved(FOR_GROUP), False, False),
        (member("p"), reserved(FOR_GROUP), False, True),
        (member("p", group="other"), reserved(FOR_GROUP), False, False),
    ],
)
def test_a_reservation_for_the_group_is_one_for_its_pods(
    asking: Pod, made: ResourceClaim, want: bool, with_groups: bool
) -> None:
    assert is_reserved_for(asking, made) is want
    assert is_reserved_for(asking, made, of_groups=True) is with_groups


def group_with(*claims: PodGroupResourceClaim) -> PodGroup:
    made = pod_group()
    return replace(made, spec=replace(made.spec, resource_claims=claims))


def test_a_claim_is_the_groups_if_all_of_the_reference_is_the_same() -> None:
    asking = claiming(member("p"), "c")
    (reference,) = asking.spec.resource_claims
    same = group_with(PodGroupResourceClaim(name="c", resource_claim_name="c"))
    assert user_of(asking, same, reference) == FOR_GROUP
    for other in (
        PodGroupResourceClaim(name="x", resource_claim_name="c"),
        PodGroupResourceClaim(name="c", resource_claim_name="x"),
        PodGroupResourceClaim(name="c", resource_claim_template_name="c"),
    ):
        assert user_of(asking, group_with(other), reference).resource == "pods"
    assert user_of(asking, None, reference).name == "p"


def test_references_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ObjectError, match="Pod default/p claim x: none of the supported fields"):
        user_of(pod("p"), None, PodResourceClaim(name="x"))
    asking = claiming(member("p"), "c")
    strange = group_with(PodGroupResourceClaim(name="x"))
    with pytest.raises(ObjectError, match="PodGroup default/g claim x: none of the supported"):
        user_of(asking, strange, asking.spec.resource_claims[0])


def test_a_groups_claim_is_named_or_made_from_a_template() -> None:
    named = PodGroupResourceClaim(name="own", resource_claim_name="c")
    made = PodGroupResourceClaim(name="own", resource_claim_template_name="t")
    group = pod_group()
    assert claim_name_of_group(group, named) == "c"
    with pytest.raises(ObjectError, match="PodGroup default/g: ResourceClaim not created yet"):
        claim_name_of_group(group, made)
    entry = PodGroupResourceClaimStatus(name="own", resource_claim_name="c-1")
    group = replace(group, status=GroupStatus(resource_claim_statuses=(entry,)))
    assert claim_name_of_group(group, made) == "c-1"
    with pytest.raises(ObjectError, match="resourceClaim x: none of the supported fields"):
        claim_name_of_group(group, PodGroupResourceClaim(name="x"))


def test_who_made_a_groups_claim_is_told_by_uid() -> None:
    assert is_for_group(pod_group(), owned(claim("c")))
    assert not is_for_group(pod_group("other"), owned(claim("c")))
    assert not is_for_group(pod_group(), claim("c"))
