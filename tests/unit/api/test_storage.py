"""Storage objects as the API server sends them."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.api.core import Volume
from kubesched.api.storage import (
    ANNOTATION_CLASS,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)


def test_a_volume_with_everything_that_is_read() -> None:
    volume = msgspec.convert(
        {
            "metadata": {"name": "pv1", "labels": {"topology.kubernetes.io/zone": "a"}},
            "spec": {
                "capacity": {"storage": "5Gi"},
                "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "ns", "name": "c"},
                "storageClassName": "fast",
                "volumeMode": "Block",
                "volumeAttributesClassName": "gold",
                "persistentVolumeReclaimPolicy": "Delete",
                "csi": {"driver": "d", "volumeHandle": "h", "fsType": "ext4"},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "k", "operator": "Exists"}]}
                        ]
                    }
                },
            },
            "status": {"phase": "Available"},
        },
        PersistentVolume,
    )

    assert volume.spec.capacity == {"storage": "5Gi"}
    assert volume.spec.access_modes == ("ReadWriteOnce", "ReadOnlyMany")
    assert volume.spec.claim_ref is not None
    assert (volume.spec.claim_ref.namespace, volume.spec.claim_ref.name) == ("ns", "c")
    assert (volume.spec.volume_mode, volume.spec.volume_attributes_class_name) == ("Block", "gold")
    assert volume.spec.csi is not None
    assert (volume.spec.csi.driver, volume.spec.csi.volume_handle) == ("d", "h")
    assert volume.spec.node_affinity is not None
    assert volume.spec.node_affinity.required is not None
    assert volume.spec.node_affinity.required.node_selector_terms[0].match_expressions[0].key == "k"
    assert volume.status.phase == "Available"


def test_a_claim_with_everything_that_is_read() -> None:
    claim = msgspec.convert(
        {
            "metadata": {
                "name": "c",
                "namespace": "ns",
                "annotations": {"volume.kubernetes.io/selected-node": "n1"},
                "deletionTimestamp": "2025-01-01T00:00:00Z",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
                ],
            },
            "spec": {
                "accessModes": ["ReadWriteOncePod"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
                "volumeMode": "Filesystem",
                "volumeName": "pv1",
                "selector": {"matchLabels": {"disk": "ssd"}},
                "volumeAttributesClassName": "gold",
            },
            "status": {"phase": "Bound", "capacity": {"storage": "5Gi"}},
        },
        PersistentVolumeClaim,
    )

    assert claim.spec.resources is not None
    assert claim.spec.resources.requests == {"storage": "1Gi"}
    assert claim.spec.storage_class_name == ""
    assert claim.spec.selector is not None
    assert claim.spec.selector.match_labels == {"disk": "ssd"}
    assert claim.metadata.owner_references[0].uid == "u"
    assert (claim.spec.volume_name, claim.status.phase) == ("pv1", "Bound")


@pytest.mark.parametrize(
    ("annotation", "field", "expected"),
    [
        (None, None, ""),
        (None, "", ""),
        (None, "fast", "fast"),
        ("slow", "fast", "slow"),
        ("", "fast", ""),
    ],
)
def test_the_annotation_for_the_class_goes_before_the_field(
    annotation: str | None, field: str | None, expected: str
) -> None:
    meta = {"annotations": {} if annotation is None else {ANNOTATION_CLASS: annotation}}
    claim = {"metadata": meta, "spec": {} if field is None else {"storageClassName": field}}

    assert msgspec.convert(claim, PersistentVolumeClaim).storage_class == expected
    assert msgspec.convert(claim, PersistentVolume).storage_class == expected


def test_classes_drivers_nodes_capacities_and_attachments() -> None:
    storage_class = msgspec.convert(
        {
            "metadata": {"name": "fast"},
            "provisioner": "d",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
            "parameters": {"type": "ssd"},
        },
        StorageClass,
    )
    driver = msgspec.convert(
        {"spec": {"storageCapacity": True, "preventPodSchedulingIfMissing": True}}, CSIDriver
    )
    csi_node = msgspec.convert(
        {
            "spec": {
                "drivers": [
                    {"name": "d", "nodeID": "i-1", "allocatable": {"count": 39}},
                    {"name": "e", "nodeID": "i-1", "topologyKeys": ["zone"]},
                ]
            }
        },
        CSINode,
    )
    capacity = msgspec.convert(
        {
            "storageClassName": "fast",
            "capacity": "10Gi",
            "maximumVolumeSize": "1Gi",
            "nodeTopology": {"matchLabels": {"zone": "a"}},
        },
        CSIStorageCapacity,
    )
    attachment = msgspec.convert(
        {"spec": {"attacher": "d", "nodeName": "n1", "source": {"persistentVolumeName": "pv1"}}},
        VolumeAttachment,
    )

    assert storage_class.allowed_topologies[0].match_label_expressions[0].values == ("a",)
    assert storage_class.volume_binding_mode == "WaitForFirstConsumer"
    assert driver.spec.storage_capacity is True
    assert driver.spec.prevent_pod_scheduling_if_missing is True
    limits = [each.allocatable and each.allocatable.count for each in csi_node.spec.drivers]
    assert limits == [39, None]
    assert (capacity.capacity, capacity.maximum_volume_size) == ("10Gi", "1Gi")
    assert attachment.spec.source.persistent_volume_name == "pv1"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, ("pd_name", "d")),
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, ("volume_id", "vol-1")),
        ({"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.x", "lun": 0}}, ("iqn", "iqn.x")),
        ({"rbd": {"monitors": ["a", "b"], "image": "i"}}, ("monitors", ("a", "b"))),
        ({"azureDisk": {"diskName": "d", "diskURI": "/x"}}, ("disk_uri", "/x")),
        ({"azureFile": {"secretName": "s", "shareName": "f"}}, ("share_name", "f")),
        ({"cinder": {"volumeID": "c"}}, ("volume_id", "c")),
        ({"vsphereVolume": {"volumePath": "p"}}, ("volume_path", "p")),
        ({"portworxVolume": {"volumeID": "w"}}, ("volume_id", "w")),
        ({"csi": {"driver": "d"}}, ("driver", "d")),
        ({"persistentVolumeClaim": {"claimName": "c", "readOnly": True}}, ("claim_name", "c")),
    ],
)
def test_sources_of_a_pods_volume(source: dict[str, object], expected: tuple[str, object]) -> None:
    volume = msgspec.convert({"name": "v", **source}, Volume)

    found = [each for each in msgspec.structs.asdict(volume).values() if each not in ("v", None)]
    assert len(found) == 1
    assert getattr(found[0], expected[0]) == expected[1]


def test_an_ephemeral_volume_is_known_as_such_and_its_template_is_not_read() -> None:
    manifest = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": []}}}}

    assert msgspec.convert(manifest, Volume).ephemeral is not None
    assert msgspec.convert({"name": "v", "emptyDir": {}}, Volume).ephemeral is None
