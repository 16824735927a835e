"""Redaction: nothing that tells a name is left, and everything that decides is."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from kubesched.api.core import NodeSelectorRequirement
from kubesched.api.meta import LabelSelectorRequirement, ObjectMeta
from kubesched.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceClass,
    DeviceClassConfiguration,
    DeviceClassSpec,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubesched.api.storage import TopologySelectorLabelRequirement
from kubesched.kinds import KINDS, watched
from kubesched.recording.entries import Answered, Decided
from kubesched.recording.redaction import REDACTED, REDACTIONS, NameRedactor
from tests.support.objects import node, pod
from tests.support.recorded_engine import record
from tests.support.recorded_workload import APPS, NAMESPACES, Workload, configuration
from tests.support.storage_objects import claim, ephemeral_volume, persistent_volume, with_volumes

#: Fields with text that stay as they are: words of the API, times, amounts, keys, drivers.
KEPT = {
    "ObjectMeta": {"resource_version", "creation_timestamp", "deletion_timestamp", "finalizers"},
    "OwnerReference": {"api_version", "kind"},
    "LabelSelectorRequirement": {"key", "operator"},
    "NodeSelectorRequirement": {"key", "operator"},
    "TopologySelectorLabelRequirement": {"key"},
    "ResourceRequirements": {"requests", "limits"},
    "ContainerPort": {"host_ip", "protocol"},
    "ContainerRestartRule": {"action"},
    "Container": {"restart_policy"},
    "PodAffinityTerm": {"topology_key", "match_label_keys", "mismatch_label_keys"},
    "Toleration": {"key", "operator", "effect"},
    "TopologySpreadConstraint": {
        "topology_key",
        "when_unsatisfiable",
        "node_affinity_policy",
        "node_taints_policy",
        "match_label_keys",
    },
    "CSIVolumeSource": {"driver"},
    "AzureDiskVolumeSource": {"kind"},
    "PodSpec": {"scheduler_name", "preemption_policy", "overhead"},
    "PodCondition": {"type", "status", "reason", "last_probe_time", "last_transition_time"},
    "ContainerStatus": {"allocated_resources"},
    "PodStatus": {"phase", "start_time", "allocated_resources"},
    "Taint": {"key", "effect"},
    "NodeCondition": {"type", "status"},
    "NodeStatus": {"allocatable", "declared_features"},
    "ClaimReference": {"kind", "api_version", "resource_version"},
    "CSIPersistentVolumeSource": {"driver"},
    "PersistentVolumeSpec": {"capacity", "access_modes", "volume_mode"},
    "PersistentVolumeStatus": {"phase"},
    "PersistentVolumeClaimSpec": {"access_modes", "volume_mode"},
    "PersistentVolumeClaimStatus": {"phase"},
    "StorageClass": {"provisioner", "volume_binding_mode"},
    "CSINodeDriver": {"name", "topology_keys"},
    "CSIStorageCapacity": {"capacity", "maximum_volume_size"},
    "VolumeAttachmentSpec": {"attacher"},
    "PodDisruptionBudgetStatus": set(),
    "CELDeviceSelector": {"expression"},
    "OpaqueDeviceConfiguration": {"driver"},
    "DeviceClassSpec": {"extended_resource_name"},
    "DeviceCounter": {"value"},
    "CounterSet": {"counters"},
    "DeviceCounterConsumption": {"compatibility_groups", "counters"},
    "DeviceAttribute": {"string_value", "version_value", "string_values", "version_values"},
    "CapacityRequestPolicyRange": {"min", "max", "step"},
    "CapacityRequestPolicy": {"default", "valid_values"},
    "DeviceCapacity": {"value"},
    "DeviceTaint": {"key", "effect", "time_added"},
    "NodeAllocatableResourceMapping": {"capacity_key", "allocation_multiplier"},
    "Device": {
        "attributes",
        "capacity",
        "binding_conditions",
        "binding_failure_conditions",
        "node_allocatable_resource_mappings",
        "node_allocatable_resources",
    },
    "NodeAllocatableMapping": {"capacity_key", "capacity_multiplier", "device_multiplier"},
    "NodeAllocatableOverhead": {"per_pod", "per_container"},
    "NodeAllocatableMappedResources": {"name", "quantity"},
    "NodeAllocatableOverheadResources": {"name", "per_pod", "per_container"},
    "ResourceSliceSpec": {"driver", "skip_node_operations"},
    "DeviceToleration": {"key", "operator", "effect"},
    "CapacityRequirements": {"requests"},
    "ExactDeviceRequest": {"allocation_mode"},
    "DeviceSubRequest": {"allocation_mode"},
    "DeviceConstraint": {"match_attribute", "distinct_attribute"},
    "DeviceRequestAllocationResult": {
        "skip_node_operations",
        "driver",
        "binding_conditions",
        "binding_failure_conditions",
        "consumed_capacity",
    },
    "DeviceAllocationConfiguration": {"source"},
    "CompositePodGroupSpec": {"preemption_policy"},
    "PodGroupSpec": {"preemption_policy"},
    "CoscheduledGroupSpec": {"min_resources"},
    "CoscheduledGroupStatus": {"phase", "schedule_start_time"},
    "TopologyConstraint": {"key"},
    "GroupCondition": {"type", "status", "reason", "last_transition_time"},
    "VolumeMount": {"bind_mount_options"},
    "AllocationResult": {"allocation_timestamp"},
    "ResourceClaimConsumerReference": {"api_group", "resource"},
    "DeviceCondition": {"type", "status", "last_transition_time", "reason"},
    "AllocatedDeviceStatus": {"driver"},
    "DeviceTaintSelector": {"driver"},
    "DeviceDerivedAttribute": {"name", "expression"},
    "ContainerExtendedResourceRequest": {"resource_name"},
}
#: Redacted as a whole.
WHOLE = {
    "ObjectMeta": {
        "name", "generate_name", "namespace", "uid", "labels", "annotations",
    },
    "OwnerReference": {"name", "uid"},
    LabelSelectorRequirement.__name__: {"values"},
    NodeSelectorRequirement.__name__: {"values"},
    TopologySelectorLabelRequirement.__name__: {"values"},
}  # fmt: skip


def structs(kind: Any, seen: set[type[Struct]]) -> Iterator[type[Struct]]:
    """Return all structs that a type is made of."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        if kind in seen:
            return
        seen.add(kind)
        yield kind
        for field in msgspec.structs.fields(kind):
            yield from structs(field.type, seen)
    for part in get_args(kind):
        yield from structs(part, seen)


def has_text(kind: Any) -> bool:
    if kind is str:
        return True
    return any(has_text(each) for each in get_args(kind))


def test_every_field_with_text_is_redacted_or_kept_on_purpose() -> None:
    seen: set[type[Struct]] = set()
    undecided = [
        f"{each.__name__}.{field.name}"
        for kind in watched()
        for each in structs(kind.type, seen)
        for field in msgspec.structs.fields(each)
        if has_text(field.type)
        and field.name not in REDACTIONS.get(each, {})
        and field.name not in KEPT.get(each.__name__, ())
        and field.name not in WHOLE.get(each.__name__, ())
    ]
    assert undecided == []
    assert len(seen) > 60


def test_no_two_kinds_say_what_to_do_with_a_struct() -> None:
    assert len(REDACTIONS) == sum(len(kind.redactions) for kind in KINDS.values())


def test_rules_are_for_fields_that_exist() -> None:
    for kind, fields in REDACTIONS.items():
        assert fields.keys() <= {each.name for each in msgspec.structs.fields(kind)}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """All of a redacted recording."""
    path = tmp_path_factory.mktemp("redacted") / "r"
    record(path, Workload(steps=150), seed=2, redactor=NameRedactor())
    return gzip.decompress(path.read_bytes()).decode()


def test_no_name_is_left_in_a_recording(text: str) -> None:
    assert text.count('"is":"decided"') > 50
    # Among thousands of random letters there may be any short word.
    said = re.sub(r"\bx[a-z2-7]{13}\b", "", text)
    for name in (
        *(f'"{app}-' for app in APPS),
        *(f'"{app}"' for app in APPS),
        *(f'"{namespace}"' for namespace in NAMESPACES),
        '"node-', '"pv-', '"data-', "uid-", "rs-", "registry/", "batch", "ssd", "hdd", "canary",
    ):  # fmt: skip
        assert name not in said, name
    # What decides, and tells nobody's name, is there.
    for kept in ("topology.kubernetes.io/zone", '"z1"', '"disk"', '"size":"', "default-scheduler"):
        assert kept in text


def test_the_header_says_that_it_is_redacted(text: str) -> None:
    assert '"redacted":true' in text.splitlines()[0]


def test_the_claim_of_an_ephemeral_volume_is_still_found_by_its_name() -> None:
    redactor = NameRedactor()
    made = redactor.object("Pod", with_volumes(pod("web-0"), ephemeral_volume("scratch")))
    of_pod = redactor.object("PersistentVolumeClaim", claim("web-0-scratch", owner="web-0"))
    assert of_pod.metadata.name == f"{made.metadata.name}-{made.spec.volumes[0].name}"
    assert of_pod.metadata.owner_references[0].uid == made.metadata.uid


def test_what_a_claim_got_is_still_found_by_the_names_of_its_requests() -> None:
    redactor = NameRedactor()
    alternative = DeviceSubRequest(name="small", device_class_name="gold-gpus")
    request = DeviceRequest(name="team-gpu", first_available=(alternative,))
    got = DeviceRequestAllocationResult(
        request="team-gpu/small", driver="d", pool="node-1", device="gpu-0"
    )
    made = redactor.object(
        "ResourceClaim",
        ResourceClaim(
            spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
            status=ResourceClaimStatus(
                allocation=AllocationResult(devices=DeviceAllocationResult(results=(got,)))
            ),
        ),
    )
    (hidden,), (result,) = made.spec.devices.requests, made.status.allocation.devices.results
    assert result.request == f"{hidden.name}/{hidden.first_available[0].name}"
    gpus = redactor.object("DeviceClass", DeviceClass(metadata=ObjectMeta(name="gold-gpus")))
    assert hidden.first_available[0].device_class_name == gpus.metadata.name
    pool = ResourcePool(name="node-1")
    of_node = redactor.object("ResourceSlice", ResourceSlice(spec=ResourceSliceSpec(pool=pool)))
    assert of_node.spec.pool.name == result.pool
    text = str(msgspec.to_builtins([made, gpus, of_node]))
    assert not any(name in text for name in ("team", "small", "gold", "node-1", "gpu-0"))


def test_parameters_that_only_a_driver_understands_are_left_out() -> None:
    opaque = OpaqueDeviceConfiguration(driver="d", parameters={"password": ["secret"]})
    spec = DeviceClassSpec(config=(DeviceClassConfiguration(opaque=opaque),))
    made = NameRedactor().object("DeviceClass", DeviceClass(spec=spec))
    assert made.spec.config[0].opaque == OpaqueDeviceConfiguration(driver="d")


def test_volumes_keep_their_order() -> None:
    redactor = NameRedactor()
    names = ["pv-b", "pv-a", "pv-c"]
    hidden = {
        name: redactor.object("PersistentVolume", persistent_volume(name)).metadata.name
        for name in names
    }
    assert sorted(names, key=lambda name: hidden[name]) == sorted(names)
    bound = redactor.object("PersistentVolumeClaim", claim("c", volume="pv-a"))
    assert bound.spec.volume_name == hidden["pv-a"]


def test_images_match_as_they_did() -> None:
    redactor = NameRedactor()
    made = redactor.object("Node", node(images={"a/app:latest": 1, "a/app": 2}))
    tagged, untagged = (each.names[0] for each in made.status.images)
    implicit = redactor.object("Pod", pod(image="a/app")).spec.containers[0].image
    assert implicit == tagged != untagged
    assert ":" in implicit


def test_numbers_in_labels_of_nodes_are_kept_and_others_hidden() -> None:
    redactor = NameRedactor()
    made = redactor.object("Node", node(labels={"size": "5", "owner": "alice"}))
    labels = made.metadata.labels
    assert labels["size"] == "5"
    assert labels["owner"] not in ("", "alice")
    of_pod = redactor.object("Pod", pod(labels={"customer": "4711"}))
    assert of_pod.metadata.labels["customer"] != "4711"


def test_addresses_and_names_in_the_configuration_are_hidden() -> None:
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "team", "operator": "In", "values": ["alice"]}]}
            ]
        }
    }
    known = {
        "clientConnection": {"kubeconfig": "/home/alice/config", "qps": 5},
        "extenders": [{"urlPrefix": "https://alice.example.com", "weight": 1}],
        "profiles": [
            {"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}]}
        ],
    }
    redactor = NameRedactor()
    hidden = redactor.configuration(known)
    assert "alice" not in str(hidden)
    assert hidden["clientConnection"] == {"qps": 5}
    value = redactor.object("Node", node(labels={"team": "alice"})).metadata.labels["team"]
    assert value in str(hidden)
    assert "alice" in str(known)
    configuration({})  # what is not there is no trouble
    assert redactor.configuration({}) == {}


def test_messages_of_others_plugins_are_left_out() -> None:
    redactor = NameRedactor()
    decided = Decided(
        uid="u", namespace="n", name="p", profile="x", message="ask alice", plugins=("Theirs",)
    )
    assert redactor.entry(decided).message == REDACTED  # type: ignore[attr-defined]


def test_messages_that_quote_a_failed_extender_are_left_out() -> None:
    """It ends the message of a pod that preemption could have helped."""
    redactor = NameRedactor()
    decided = Decided(
        uid="u", namespace="n", name="p", profile="x", message="preemption: ask alice"
    )
    assert "alice" not in str(redactor.entry(Answered(error="ask alice")))
    assert redactor.entry(decided).message == REDACTED  # type: ignore[attr-defined]
    assert redactor.entry(decided).message == decided.message  # type: ignore[attr-defined]
    redactor.entry(Answered(error="ask alice"))
    placed = replace(decided, message="")
    assert redactor.entry(placed).message == ""  # type: ignore[attr-defined]
