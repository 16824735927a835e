"""Claims are made from templates as the controller of claims makes them."""

from __future__ import annotations

from kubesched.api.claim_templates import among, with_claims, without_own_claims
from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import (
    DeviceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from kubesched.cluster.device_uses import DeviceUses
from kubesched.cluster.resource_claims import ResourceClaims
from kubesched.plugins.pod_claims import usable_claims
from tests.support.device_objects import claiming_from_template, request
from tests.support.objects import pod

SPEC = ResourceClaimSpec(devices=DeviceClaim(requests=(request(count=2),)))
TEMPLATE = ResourceClaimTemplate(
    metadata=ObjectMeta(name="two-gpus", namespace="default"),
    spec=ResourceClaimTemplateSpec(metadata=ObjectMeta(labels={"a": "b"}), spec=SPEC),
)


def test_a_pod_gets_a_claim_of_its_own_which_the_plugin_can_use() -> None:
    made, (claim,) = with_claims(claiming_from_template(pod("p"), "two-gpus"), among([TEMPLATE]))

    assert claim.spec == SPEC
    assert claim.metadata.labels == {"a": "b"}
    claims = ResourceClaims(DeviceUses())
    claims.put(claim)
    assert usable_claims(made, claims) == [claim]
    assert claims.of_pod(made) == [claim]


def test_a_claim_that_is_there_stays_and_one_without_template_is_missing() -> None:
    has_one = claiming_from_template(pod("p"), "two-gpus", "given")
    assert with_claims(has_one, among([TEMPLATE])) == (has_one, ())
    unknown = claiming_from_template(pod("p"), "other")
    assert with_claims(unknown, among([TEMPLATE])) == (unknown, ())
    assert without_own_claims(has_one) == claiming_from_template(pod("p"), "two-gpus")
    assert without_own_claims(pod("p")) == pod("p")
