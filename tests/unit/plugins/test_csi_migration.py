"""Disks of old, as volumes of the CSI drivers in charge now."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.api import names
from kubesched.api.core import Volume
from kubesched.api.meta import ObjectMeta
from kubesched.api.storage import ANNOTATION_MIGRATED_PLUGINS, CSINode, PersistentVolume
from kubesched.errors import ObjectError
from kubesched.plugins import csi_migration
from tests.support.storage_objects import claim_volume, persistent_volume

ZONE, OLD_ZONE = names.LABEL_ZONE, names.LABEL_ZONE_BETA
REGION, OLD_REGION = names.LABEL_REGION, names.LABEL_REGION_BETA


def volume(
    source: dict[str, Any],
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    terms: list[dict[str, list[str]]] | None = None,
    **spec: Any,
) -> PersistentVolume:
    """Make a volume; a term is label → values."""
    if terms is not None:
        spec["nodeAffinity"] = {
            "required": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": key, "operator": "In", "values": values}
                            for key, values in each.items()
                        ]
                    }
                    for each in terms
                ]
            }
        }
    metadata = {"name": "pv", "labels": labels or {}, "annotations": annotations or {}}
    return msgspec.convert({"metadata": metadata, "spec": {**source, **spec}}, PersistentVolume)


def terms_of(translated: PersistentVolume) -> list[dict[str, tuple[str, ...]]]:
    affinity = translated.spec.node_affinity
    if affinity is None or affinity.required is None:
        return []
    return [
        {each.key: each.values for each in term.match_expressions}
        for term in affinity.required.node_selector_terms
    ]


GCE = {"gcePersistentDisk": {"pdName": "disk"}}
AWS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
VSPHERE = {"vsphereVolume": {"volumePath": "[store] disk.vmdk"}}


@pytest.mark.parametrize(
    ("source", "plugin", "driver", "handle"),
    [
        (
            GCE,
            "kubernetes.io/gce-pd",
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk",
        ),
        (AWS, "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "vol-1"),
        (
            {"azureDisk": {"diskName": "d", "diskURI": "/subscriptions/d"}},
            "kubernetes.io/azure-disk",
            "disk.csi.azure.com",
            "/subscriptions/d",
        ),
        (
            {"azureFile": {"secretName": "azure-storage-account-me-secret", "shareName": "s"}},
            "kubernetes.io/azure-file",
            "file.csi.azure.com",
            "#me#s#pv#ns",
        ),
        (
            {"cinder": {"volumeID": "c"}},
            "kubernetes.io/cinder",
            "cinder.csi.openstack.org",
            "c",
        ),
        (VSPHERE, "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "[store] disk.vmdk"),
        (
            {"portworxVolume": {"volumeID": "w"}},
            "kubernetes.io/portworx-volume",
            "pxd.portworx.com",
            "w",
        ),
    ],
)
def test_every_kind_of_disk(source: dict[str, Any], plugin: str, driver: str, handle: str) -> None:
    in_tree = volume(source, claimRef={"namespace": "ns", "name": "c"})
    inline = msgspec.convert({"name": "pv", **source}, Volume)

    assert csi_migration.plugin_of(in_tree) == plugin
    assert csi_migration.plugin_of_inline(inline) == plugin
    translated = csi_migration.translated(in_tree)
    for found in (
        csi_migration.csi_source(in_tree),
        csi_migration.inline_source(inline, "ns"),
        translated.spec.csi,
    ):
        assert found is not None
        assert (found.driver, found.volume_handle) == (driver, handle)
    assert csi_migration.plugin_of(translated) is None
    assert translated.metadata == in_tree.metadata


def test_volumes_of_csi_drivers_are_not_migrated() -> None:
    assert csi_migration.plugin_of(persistent_volume("pv")) is None
    assert csi_migration.plugin_of_inline(claim_volume("c")) is None
    with pytest.raises(ObjectError, match="could not find in-tree plugin"):
        csi_migration.translated(persistent_volume("pv"))
    with pytest.raises(ObjectError, match="could not find in-tree plugin"):
        csi_migration.inline_source(claim_volume("c"), "ns")


# --- handles ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        ({}, "zones/UNSPECIFIED"),
        ({ZONE: "us-east1-b"}, "zones/us-east1-b"),
        ({ZONE: "us-east1-b", OLD_ZONE: "us-east1-c"}, "zones/us-east1-c"),
        ({ZONE: "us-east1-b__us-east1-c"}, "regions/us-east1"),
    ],
)
def test_the_handle_of_a_disk_of_googles_names_its_place(
    labels: dict[str, str], place: str
) -> None:
    source = csi_migration.csi_source(volume(GCE, labels=labels))

    assert source.volume_handle == f"projects/UNSPECIFIED/{place}/disks/disk"


@pytest.mark.parametrize(
    ("zones", "message"),
    [
        ("a__b", "zone in unexpected format, expected: {locale}-{region}-{zone}, got: a"),
        (
            "us-east1-b__us-west1-c",
            "multiple or no regions gotten from zones, got: map[us-east1:{} us-west1:{}]",
        ),
    ],
)
def test_zones_that_have_no_region(zones: str, message: str) -> None:
    with pytest.raises(ObjectError) as refused:
        csi_migration.translated(volume(GCE, labels={ZONE: zones}))
    assert str(refused.value) == f"failed to get region from zones: {message}"


@pytest.mark.parametrize(
    ("volume_id", "handle"),
    [("vol-1", "vol-1"), ("aws://us-east-1a/vol-1", "vol-1"), ("aws:///vol-1", "vol-1")],
)
def test_ids_of_disks_of_amazons(volume_id: str, handle: str) -> None:
    disk = volume({"awsElasticBlockStore": {"volumeID": volume_id}})
    assert csi_migration.csi_source(disk).volume_handle == handle


@pytest.mark.parametrize("volume_id", ["aws://zone/disk", "aws://zone/vol-1/x", "aws://["])
def test_ids_that_make_no_sense(volume_id: str) -> None:
    disk = volume({"awsElasticBlockStore": {"volumeID": volume_id}})
    with pytest.raises(ObjectError, match="Invalid format for AWS volume"):
        csi_migration.csi_source(disk)


def test_disks_of_microsofts_must_be_managed() -> None:
    managed = volume({"azureDisk": {"diskName": "d", "diskURI": "u", "kind": "Managed"}})
    dedicated = volume({"azureDisk": {"diskName": "d", "diskURI": "u", "kind": "Dedicated"}})

    assert csi_migration.csi_source(managed).volume_handle == "u"
    with pytest.raises(ObjectError, match=r"kind\(Dedicated\) is not supported"):
        csi_migration.csi_source(dedicated)


def test_shares_of_microsofts_have_their_secret_somewhere() -> None:
    share = {"secretName": "plain", "shareName": "s"}
    annotations = {"kubernetes.io/azure-file-resource-group": "group"}

    named = volume({"azureFile": {**share, "secretNamespace": "x"}}, annotations=annotations)
    assert csi_migration.csi_source(named).volume_handle == "group#plain#s#pv#x"
    with pytest.raises(ObjectError, match="could not find a secret namespace"):
        csi_migration.csi_source(volume({"azureFile": share}))


# --- node affinity ------------------------------------------------------------------------------

GKE_ZONE = "topology.gke.io/zone"


@pytest.mark.parametrize(
    ("labels", "terms", "expected"),
    [
        pytest.param({}, None, [], id="no zone"),
        pytest.param({}, [{ZONE: ["a", "b"]}], [{GKE_ZONE: ("a", "b")}], id="in the affinity"),
        pytest.param({}, [{OLD_ZONE: ["a"]}], [{GKE_ZONE: ("a",)}], id="in the old words"),
        pytest.param({ZONE: "us-e-b"}, None, [{GKE_ZONE: ("us-e-b",)}], id="in the label"),
        pytest.param({OLD_ZONE: "us-e-b"}, None, [{GKE_ZONE: ("us-e-b",)}], id="in the old label"),
        pytest.param(
            {ZONE: "us-e-c__us-e-b"}, None, [{GKE_ZONE: ("us-e-b", "us-e-c")}], id="several"
        ),
        pytest.param(
            {ZONE: "us-e-b"}, [{ZONE: ["a"]}], [{GKE_ZONE: ("a",)}], id="the affinity goes first"
        ),
        pytest.param(
            {ZONE: "us-e-b"},
            [{"disk": ["ssd"]}],
            [{"disk": ("ssd",), GKE_ZONE: ("us-e-b",)}],
            id="added to each term",
        ),
        pytest.param(
            {},
            [{ZONE: ["a"], REGION: ["r"]}],
            [{GKE_ZONE: ("a",), REGION: ("r",)}],
            id="regions stay",
        ),
        pytest.param(
            {},
            [{OLD_ZONE: ["a"], OLD_REGION: ["r"]}],
            [{GKE_ZONE: ("a",), REGION: ("r",)}],
            id="old regions are new",
        ),
    ],
)
def test_zones_in_the_words_of_the_driver(
    labels: dict[str, str],
    terms: list[dict[str, list[str]]] | None,
    expected: list[dict[str, tuple[str, ...]]],
) -> None:
    assert terms_of(csi_migration.translated(volume(GCE, labels=labels, terms=terms))) == expected


def test_vsphere_has_words_for_regions_too() -> None:
    in_affinity = volume(VSPHERE, terms=[{ZONE: ["a"], REGION: ["r"]}])
    in_labels = volume(VSPHERE, labels={ZONE: "a", REGION: "r"})

    expected = [{"topology.csi.vmware.com/zone": ("a",), "topology.csi.vmware.com/region": ("r",)}]
    assert terms_of(csi_migration.translated(in_affinity)) == expected
    assert terms_of(csi_migration.translated(in_labels)) == expected


def test_drivers_without_words_of_their_own_leave_the_affinity_alone() -> None:
    disk = volume({"azureDisk": {"diskName": "d", "diskURI": "u"}}, terms=[{ZONE: ["a"]}])

    assert terms_of(csi_migration.translated(disk)) == [{ZONE: ("a",)}]


# --- who has taken over -------------------------------------------------------------------------


def test_a_node_says_which_plugins_were_taken_over() -> None:
    listed = f"{csi_migration.GCE_PD},{csi_migration.AWS_EBS}"
    there = CSINode(metadata=ObjectMeta(annotations={ANNOTATION_MIGRATED_PLUGINS: listed}))

    assert csi_migration.is_migrated_on(csi_migration.AWS_EBS, there)
    assert not csi_migration.is_migrated_on(csi_migration.CINDER, there)
    assert not csi_migration.is_migrated_on(csi_migration.AWS_EBS, CSINode())
    assert not csi_migration.is_migrated_on(csi_migration.AWS_EBS, None)


def test_which_volumes_count_against_limits() -> None:
    counted = {
        plugin
        for plugin in csi_migration.SUCCESSORS
        if csi_migration.is_counted(plugin, has_csi_node=True)
    }

    assert csi_migration.SUCCESSORS.keys() - counted == {
        csi_migration.AZURE_FILE,
        csi_migration.VSPHERE,
    }
    assert not csi_migration.is_counted(csi_migration.GCE_PD, has_csi_node=False)
