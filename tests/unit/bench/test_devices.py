"""Devices, and claims for them."""

from __future__ import annotations

import msgspec

from kubesched.bench import objects
from kubesched.bench.api_objects import Named
from kubesched.bench.devices import claim_of, claim_templates_of, slice_of

POD = objects.pod(
    resourceClaims=[
        {"name": "gpu", "resourceClaimTemplateName": "one-gpu"},
        {"name": "shared", "resourceClaimName": "there-already"},
    ]
)


def named(name: str) -> Named:
    return msgspec.convert({"metadata": {"name": name, "uid": f"uid-{name}"}}, type=Named)


def test_a_slice_has_all_devices_of_its_node() -> None:
    made = slice_of("driver.example.com", "node-1", devices=3)

    assert made["spec"]["nodeName"] == made["spec"]["pool"]["name"] == "node-1"
    assert [each["name"] for each in made["spec"]["devices"]] == [
        "instance-0",
        "instance-1",
        "instance-2",
    ]


def test_only_templates_need_claims_to_be_made() -> None:
    assert claim_templates_of(POD) == {"gpu": "one-gpu"}
    assert claim_templates_of(objects.pod()) == {}


def test_a_claim_belongs_to_its_pod() -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"devices": {"requests": [{"name": "r"}]}},
    }

    claim = claim_of(named("pod-1"), "gpu", template)

    assert claim["spec"] == template["spec"]
    assert claim["metadata"]["labels"] == {"a": "b"}
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Pod", "pod-1", "uid-pod-1")
    assert owner["controller"]
