"""Translates in-tree volumes to volumes of the CSI drivers that replaced them.

    in-tree plugin            CSI driver                 handle of the volume
    kubernetes.io/aws-ebs     ebs.csi.aws.com            the disk's id
    kubernetes.io/gce-pd      pd.csi.storage.gke.io      projects/…/zones/<zone>/disks/<name>
    …

A translated volume has a CSI source, and a node affinity with the labels that the driver sets on
nodes. A volume that cannot be translated raises ObjectError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    GCEPersistentDiskVolumeSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Volume,
)
from kubesched.api.storage import (
    ANNOTATION_MIGRATED_PLUGINS,
    CSINode,
    CSIPersistentVolumeSource,
    PersistentVolume,
    VolumeNodeAffinity,
)
from kubesched.errors import ObjectError

AWS_EBS: Final = "kubernetes.io/aws-ebs"
AZURE_DISK: Final = "kubernetes.io/azure-disk"
AZURE_FILE: Final = "kubernetes.io/azure-file"
CINDER: Final = "kubernetes.io/cinder"
GCE_PD: Final = "kubernetes.io/gce-pd"
PORTWORX: Final = "kubernetes.io/portworx-volume"
VSPHERE: Final = "kubernetes.io/vsphere-volume"


class Successor(NamedTuple):
    """The CSI driver that replaced an in-tree plugin."""

    driver: str
    #: node label of the driver for zones; None if volumes keep their node affinity as it is
    zone_key: str | None = None
    #: the same for regions
    region_key: str | None = None


SUCCESSORS: Final = {
    AWS_EBS: Successor("ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"),
    AZURE_DISK: Successor("disk.csi.azure.com"),
    AZURE_FILE: Successor("file.csi.azure.com"),
    CINDER: Successor("cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"),
    GCE_PD: Successor("pd.csi.storage.gke.io", "topology.gke.io/zone"),
    PORTWORX: Successor("pxd.portworx.com"),
    VSPHERE: Successor(
        "csi.vsphere.vmware.com", "topology.csi.vmware.com/zone", "topology.csi.vmware.com/region"
    ),
}

#: Field of a volume's source → in-tree plugin; pods and persistent volumes have the same fields.
_PLUGIN_OF_SOURCE: Final = {
    "gce_persistent_disk": GCE_PD,
    "aws_elastic_block_store": AWS_EBS,
    "cinder": CINDER,
    "azure_disk": AZURE_DISK,
    "azure_file": AZURE_FILE,
    "vsphere_volume": VSPHERE,
    "portworx_volume": PORTWORX,
}
#: Plugins whose volumes count against the limits of their successors.
_COUNTED: Final = frozenset({AWS_EBS, AZURE_DISK, CINDER, GCE_PD, PORTWORX})

_UNSPECIFIED: Final = "UNSPECIFIED"
_ZONE_SEPARATOR: Final = "__"
_AZURE_FILE_RESOURCE_GROUP: Final = "kubernetes.io/azure-file-resource-group"
_AWS_VOLUME = re.compile(r"vol-[^/]*")
_AZURE_SECRET = re.compile(r"azure-storage-account-(.+)-secret")


# --- which plugin, which driver -----------------------------------------------------------------


def plugin_of(volume: PersistentVolume) -> str | None:
    """Return the in-tree plugin of a volume, None if it has a CSI source."""
    spec = volume.spec
    sources = _PLUGIN_OF_SOURCE.items()
    return next((plugin for field, plugin in sources if getattr(spec, field) is not None), None)


def plugin_of_inline(volume: Volume) -> str | None:
    """Return the in-tree plugin of an inline volume."""
    sources = _PLUGIN_OF_SOURCE.items()
    return next((plugin for field, plugin in sources if getattr(volume, field) is not None), None)


def is_counted(plugin: str, *, has_csi_node: bool) -> bool:
    """Return whether volumes of an in-tree plugin count against the limits of a node."""
    return has_csi_node and plugin in _COUNTED


def is_migrated_on(plugin: str, csi_node: CSINode | None) -> bool:
    """Return whether a CSINode lists a plugin as migrated."""
    annotations = csi_node.metadata.annotations if csi_node is not None else None
    migrated = (annotations or {}).get(ANNOTATION_MIGRATED_PLUGINS, "")
    return bool(migrated) and plugin in migrated.split(",")


# --- translation --------------------------------------------------------------------------------


def inline_source(volume: Volume, namespace: str) -> CSIPersistentVolumeSource:
    """Return the CSI source of an inline volume."""
    plugin = plugin_of_inline(volume)
    if plugin is None:
        raise ObjectError(f'could not find in-tree plugin translation logic for "{volume.name}"')
    handle = ""
    if volume.gce_persistent_disk is not None:
        handle = _gce_handle(volume.gce_persistent_disk, "zones", _UNSPECIFIED)
    elif volume.aws_elastic_block_store is not None:
        handle = _aws_handle(volume.aws_elastic_block_store)
    elif volume.azure_disk is not None:
        handle = _azure_disk_handle(volume.azure_disk)
    elif volume.azure_file is not None:
        share = volume.azure_file
        handle = _azure_file_handle(share, "", volume.name, namespace or "default")
    else:
        handle = _plain_handle(volume)
    return CSIPersistentVolumeSource(driver=SUCCESSORS[plugin].driver, volume_handle=handle)


def translated(volume: PersistentVolume) -> PersistentVolume:
    """Return an in-tree volume, translated to its CSI driver."""
    plugin = plugin_of(volume)
    if plugin is None:
        name = volume.metadata.name
        raise ObjectError(f'could not find in-tree plugin translation logic for "{name}"')
    successor = SUCCESSORS[plugin]
    source = CSIPersistentVolumeSource(driver=successor.driver, volume_handle=_handle(volume))
    affinity = _translated_affinity(volume, successor)
    without = dict.fromkeys(_PLUGIN_OF_SOURCE)
    return replace(volume, spec=replace(volume.spec, **without, csi=source, node_affinity=affinity))


def csi_source(volume: PersistentVolume) -> CSIPersistentVolumeSource:
    """Return the CSI source of a volume of an in-tree plugin."""
    plugin = plugin_of(volume)
    driver = SUCCESSORS[plugin].driver if plugin is not None else ""
    return CSIPersistentVolumeSource(driver=driver, volume_handle=_handle(volume))


def _handle(volume: PersistentVolume) -> str:
    spec = volume.spec
    if spec.gce_persistent_disk is not None:
        return _gce_volume_handle(volume, spec.gce_persistent_disk)
    if spec.aws_elastic_block_store is not None:
        return _aws_handle(spec.aws_elastic_block_store)
    if spec.azure_disk is not None:
        return _azure_disk_handle(spec.azure_disk)
    if spec.azure_file is not None:
        return _azure_file_volume_handle(volume, spec.azure_file)
    return _plain_handle(spec)


def _plain_handle(sources: object) -> str:
    """Return the handle of a disk whose id is the same in Kubernetes and in the driver."""
    for field, attribute in (
        ("cinder", "volume_id"),
        ("portworx_volume", "volume_id"),
        ("vsphere_volume", "volume_path"),
    ):
        source = getattr(sources, field)
        if source is not None:
            return str(getattr(source, attribute))
    return ""


def _gce_handle(disk: GCEPersistentDiskVolumeSource, kind: str, place: str) -> str:
    return f"projects/{_UNSPECIFIED}/{kind}/{place}/disks/{disk.pd_name}"


def _gce_volume_handle(volume: PersistentVolume, disk: GCEPersistentDiskVolumeSource) -> str:
    labels = volume.metadata.labels or {}
    label = labels.get(names.LABEL_ZONE_BETA) or labels.get(names.LABEL_ZONE, "")
    zones = label.split(_ZONE_SEPARATOR)
    if len(zones) > 1:
        return _gce_handle(disk, "regions", _gce_region(zones))
    return _gce_handle(disk, "zones", zones[0] or _UNSPECIFIED)


def _gce_region(zones: Iterable[str]) -> str:
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise ObjectError(
                "failed to get region from zones: zone in unexpected format, "
                f"expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add(f"{parts[0]}-{parts[1]}")
    if len(regions) != 1:
        got = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise ObjectError(
            "failed to get region from zones: "
            f"multiple or no regions gotten from zones, got: map[{got}]"
        )
    return regions.pop()


def _aws_handle(disk: AWSElasticBlockStoreVolumeSource) -> str:
    volume_id = disk.volume_id
    if not volume_id.startswith("aws://"):
        return volume_id
    try:
        handle = urlsplit(volume_id).path.strip("/")
    except ValueError:
        handle = ""
    if not _AWS_VOLUME.fullmatch(handle):
        raise ObjectError(
            "failed to translate Kubernetes ID to EBS Volume ID "
            f"Invalid format for AWS volume ({volume_id})"
        )
    return handle


def _azure_disk_handle(disk: AzureDiskVolumeSource) -> str:
    if disk.kind is not None and disk.kind.lower() != "managed":
        raise ObjectError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def _azure_file_volume_handle(volume: PersistentVolume, share: AzureFileVolumeSource) -> str:
    meta, claim = volume.metadata, volume.spec.claim_ref
    namespace = share.secret_namespace
    if namespace is None and claim is not None:
        namespace = claim.namespace
    if not namespace:
        raise ObjectError("could not find a secret namespace in PersistentVolumeSource or ClaimRef")
    group = (meta.annotations or {}).get(_AZURE_FILE_RESOURCE_GROUP, "")
    return _azure_file_handle(share, group, meta.name, namespace)


def _azure_file_handle(
    share: AzureFileVolumeSource, resource_group: str, name: str, namespace: str
) -> str:
    found = _AZURE_SECRET.search(share.secret_name)
    account = found[1] if found else share.secret_name
    return f"{resource_group}#{account}#{share.share_name}#{name}#{namespace}"


# --- node affinity ------------------------------------------------------------------------------


def _translated_affinity(
    volume: PersistentVolume, successor: Successor
) -> VolumeNodeAffinity | None:
    """Translate a volume's zone, from its node affinity or its labels, to the driver's labels."""
    affinity = volume.spec.node_affinity
    if successor.zone_key is None:
        return affinity
    labels = volume.metadata.labels or {}
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    zone, region = _topology_labels(terms, labels)
    whole = successor.region_key is not None  # vSphere's zones are never several
    terms = _in_words_of(terms, labels, zone, successor.zone_key, whole=whole)
    if successor.region_key is not None:
        terms = _in_words_of(terms, labels, region, successor.region_key, whole=whole)
    elif region == names.LABEL_REGION_BETA:
        # New nodes lack the deprecated label.
        terms = _renamed(terms, region, names.LABEL_REGION)
    if not terms:
        return affinity
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def _in_words_of(
    terms: tuple[NodeSelectorTerm, ...],
    labels: dict[str, str],
    key: str,
    driver_key: str,
    *,
    whole: bool,
) -> tuple[NodeSelectorTerm, ...]:
    if any(each.values for term in terms for each in term.match_expressions if each.key == key):
        return _renamed(terms, key, driver_key)
    if key not in labels:
        return terms
    values = [labels[key]] if whole else labels[key].split(_ZONE_SEPARATOR)
    return _with_topology(terms, driver_key, values)


def _topology_labels(
    terms: tuple[NodeSelectorTerm, ...], labels: dict[str, str]
) -> tuple[str, str]:
    """Return the zone and region labels of a volume: the current or the deprecated ones."""
    new = (names.LABEL_ZONE, names.LABEL_REGION)
    old = (names.LABEL_ZONE_BETA, names.LABEL_REGION_BETA)
    in_terms = {each.key for term in terms for each in term.match_expressions}
    for known in (in_terms, labels):
        for pair in (new, old):
            if pair[0] in known:
                return pair
    return new


def _renamed(
    terms: tuple[NodeSelectorTerm, ...], key: str, new_key: str
) -> tuple[NodeSelectorTerm, ...]:
    def rename(each: NodeSelectorRequirement) -> NodeSelectorRequirement:
        return replace(each, key=new_key) if each.key == key else each

    return _with_expressions(terms, lambda term: tuple(map(rename, term.match_expressions)))


def _with_topology(
    terms: tuple[NodeSelectorTerm, ...], key: str, values: Iterable[str]
) -> tuple[NodeSelectorTerm, ...]:
    """Add a condition to each term, or to a new one if there is none."""
    known = sorted({value.strip() for value in values} - {""})
    if not known:
        return terms
    condition = NodeSelectorRequirement(key=key, operator="In", values=tuple(known))
    return _with_expressions(
        terms or (NodeSelectorTerm(),), lambda term: (*term.match_expressions, condition)
    )


def _with_expressions(
    terms: tuple[NodeSelectorTerm, ...],
    expressions: Callable[[NodeSelectorTerm], tuple[NodeSelectorRequirement, ...]],
) -> tuple[NodeSelectorTerm, ...]:
    return tuple(replace(term, match_expressions=expressions(term)) for term in terms)
