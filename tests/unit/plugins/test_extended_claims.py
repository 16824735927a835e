"""Which requests a pod's extended resources amount to, and which containers use which."""

from __future__ import annotations

from kubesched.api.core import Pod
from kubesched.cluster.cluster import Cluster
from kubesched.plugins.extended_claims import (
    backed_by_devices,
    claim_in_memory,
    claim_on_node,
    is_in_memory,
)
from tests.support.device_objects import device_class, fill
from tests.support.objects import container, pod

GPU, NIC = "example.com/gpu", "example.com/nic"


def cluster() -> Cluster:
    made = Cluster()
    fill(made, device_class("gpu", resource=GPU), device_class("nic", resource=NIC))
    return made


def asked(made: Pod, *names: str) -> tuple[dict[str, int], list[tuple[str, str, str]]]:
    """The counts of all requests by name, and (container, resource, request) of all mappings."""
    resources = cluster().devices.extended_resources
    found = claim_on_node(claim_in_memory(made), made, names, resources)
    requests = found.claim.spec.devices.requests
    assert [each.name for each in requests] == sorted(each.name for each in requests)
    counts = {each.name: each.exactly.count for each in requests if each.exactly is not None}
    mapped = [(e.container_name, e.resource_name, e.request_name) for e in found.mappings]
    return counts, mapped


def test_each_container_has_a_request_of_its_own() -> None:
    made = pod(
        containers=[
            container("a", requests={"cpu": "1", GPU: "2", NIC: "1"}),
            container("b", requests={GPU: "1"}),
        ]
    )
    counts, mapped = asked(made, GPU, NIC)
    assert counts == {
        "container-0-request-1": 2,
        "container-0-request-2": 1,
        "container-1-request-0": 1,
    }
    assert mapped == [
        ("a", GPU, "container-0-request-1"),
        ("b", GPU, "container-1-request-0"),
        ("a", NIC, "container-0-request-2"),
    ]


def test_only_what_is_devices_on_the_node_is_asked_for() -> None:
    made = pod(containers=[container("a", requests={GPU: "2", NIC: "1"})])
    assert asked(made, NIC)[0] == {"container-0-request-1": 1}


def test_init_containers_use_the_devices_of_those_that_run_later() -> None:
    made = pod(
        init_containers=[container("i", requests={GPU: "1"})],
        containers=[container("a", requests={GPU: "2"})],
    )
    counts, mapped = asked(made, GPU)
    assert counts == {"container-1-request-0": 2}
    assert ("i", GPU, "container-1-request-0") in mapped


def test_what_init_containers_need_beyond_that_is_the_largest_of_their_remainders() -> None:
    made = pod(
        init_containers=[
            container("i", requests={GPU: "3"}),
            container("j", requests={GPU: "5"}),
        ],
        containers=[container("a", requests={GPU: "2"})],
    )
    counts, mapped = asked(made, GPU)
    assert counts == {"container-1-request-0": 3, "container-2-request-0": 2}
    assert mapped == [
        ("a", GPU, "container-2-request-0"),
        ("i", GPU, "container-2-request-0"),
        ("i", GPU, "container-1-request-0"),
        ("j", GPU, "container-2-request-0"),
        ("j", GPU, "container-1-request-0"),
    ]


def test_a_sidecar_keeps_its_devices() -> None:
    made = pod(
        init_containers=[
            container("early", requests={GPU: "1"}),
            container("side", requests={GPU: "1"}, sidecar=True),
            container("late", requests={GPU: "1"}),
        ],
        containers=[container("a")],
    )
    counts, _ = asked(made, GPU)
    assert counts == {"container-1-request-0": 1, "container-2-request-0": 1}


def test_amounts_that_are_no_whole_number_ask_for_nothing() -> None:
    assert asked(pod(containers=[container("a", requests={GPU: "500m"})]), GPU) == ({}, [])


def test_the_claim_is_the_pod_s_and_has_no_name_yet() -> None:
    made = claim_in_memory(pod("p"))
    assert is_in_memory(made)
    assert made.metadata.generate_name == "p-extended-resources-"
    assert [(each.kind, each.uid) for each in made.metadata.owner_references] == [("Pod", "p")]
    assert made.metadata.uid != claim_in_memory(pod("p")).metadata.uid


def test_resources_matter_only_if_a_class_stands_for_one_of_them() -> None:
    resources = cluster().devices.extended_resources
    assert backed_by_devices({"cpu": 1, GPU: 1, "example.com/other": 2}, resources) == {
        GPU: 1,
        "example.com/other": 2,
    }
    assert backed_by_devices({"cpu": 1, GPU: 0, "example.com/other": 2}, resources) == {}


def test_of_two_classes_for_a_resource_the_newer_one_counts_then_the_lower_name() -> None:
    made = Cluster()
    resources = made.devices.extended_resources
    fill(made, device_class("old", resource=GPU, created="2025-01-01T00:00:00Z"))
    fill(made, device_class("new", resource=GPU, created="2025-01-02T00:00:00Z"))
    fill(made, device_class("a", resource=NIC), device_class("b", resource=NIC))
    assert [each and each.metadata.name for each in map(resources.class_of, (GPU, NIC))] == [
        "new",
        "a",
    ]
    made.devices.classes.remove(device_class("new"))
    found = resources.class_of(GPU)
    assert found is not None
    assert found.metadata.name == "old"
