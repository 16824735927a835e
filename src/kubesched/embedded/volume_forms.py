"""Volumes and claims when they are provisioned, bound, or released.

Pure functions from objects to objects; an unchanged object is returned as it is, so that the caller
can skip the write.
"""

from __future__ import annotations

from typing import Any, Final

from kubesched.api import labels, names
from kubesched.api.quantity import nano
from kubesched.api.storage import (
    ANNOTATION_BIND_COMPLETED,
    ANNOTATION_BOUND_BY_CONTROLLER,
    ANNOTATION_CLASS,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.errors import SelectorError

JsonObject = dict[str, Any]

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
#: The provisioner of a class whose volumes are created by hand.
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


def class_of(obj: JsonObject) -> str | None:
    """Return the class name of a claim or a volume, None if it has none."""
    annotated = (obj["metadata"].get("annotations") or {}).get(ANNOTATION_CLASS)
    named = obj["spec"].get("storageClassName")
    return named if annotated is None else str(annotated)


def refers_to(reference: JsonObject, claim: JsonObject) -> bool:
    """Tell whether a volume's reference is to this claim, and not to an older one of its name."""
    meta = claim["metadata"]
    return (
        reference.get("namespace") == meta["namespace"]
        and reference.get("name") == meta["name"]
        and reference.get("uid") in (None, "", meta["uid"])
    )


def reference_to(claim: JsonObject) -> JsonObject:
    """Return a volume's reference to a claim."""
    meta = claim["metadata"]
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "resourceVersion": meta["resourceVersion"],
    }


def bound_volume(volume: JsonObject, claim: JsonObject, now: str) -> JsonObject:
    """Return a volume that is bound to a claim."""
    meta, spec = volume["metadata"], volume["spec"]
    reference = spec.get("claimRef") or {}
    if not reference:
        meta = _annotated(meta, **{ANNOTATION_BOUND_BY_CONTROLLER: "yes"})
    if not reference.get("uid"):
        spec = {**spec, "claimRef": reference_to(claim)}
    return in_phase({**volume, "metadata": meta, "spec": spec}, "Bound", now)


def bound_claim(claim: JsonObject, volume: JsonObject) -> JsonObject:
    """Return a claim that is bound to a volume."""
    meta, spec, status = claim["metadata"], claim["spec"], claim["status"]
    marks = {ANNOTATION_BIND_COMPLETED: "yes"}
    if not spec.get("volumeName"):
        marks[ANNOTATION_BOUND_BY_CONTROLLER] = "yes"
    granted = {
        "phase": "Bound",
        "accessModes": volume["spec"].get("accessModes") or [],
        "capacity": volume["spec"].get("capacity") or {},
    }
    return {
        **claim,
        "metadata": _annotated(meta, **marks),
        "spec": {**spec, "volumeName": volume["metadata"]["name"]},
        "status": {**status, **granted},
    }


def in_phase(obj: JsonObject, phase: str, now: str) -> JsonObject:
    """Return a volume or claim in a phase; volumes have the time of the transition."""
    status = obj.get("status") or {}
    if status.get("phase") == phase:
        return obj
    changed = {**status, "phase": phase}
    if "lastPhaseTransitionTime" in status:
        changed["lastPhaseTransitionTime"] = now
    return {**obj, "status": changed}


def without_annotation(obj: JsonObject, name: str) -> JsonObject:
    """Return an object without an annotation."""
    annotations = dict(obj["metadata"].get("annotations") or {})
    annotations.pop(name, None)
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def provisioned_volume(
    claim: JsonObject, storage_class: JsonObject, node: JsonObject | None
) -> JsonObject:
    """Return a new volume for a claim; in the zone of the selected node, if any."""
    name, spec = f"pvc-{claim['metadata']['uid']}", claim["spec"]
    driver = storage_class["provisioner"]
    volume: JsonObject = {
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: driver}},
        "spec": {
            "capacity": {"storage": storage_request(claim)},
            "accessModes": list(spec.get("accessModes") or ()),
            "claimRef": reference_to(claim),
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": spec.get("volumeMode") or "Filesystem",
            "csi": {"driver": driver, "volumeHandle": name},
        },
    }
    if spec.get("volumeAttributesClassName"):
        volume["spec"]["volumeAttributesClassName"] = spec["volumeAttributesClassName"]
    zone = ((node or {}).get("metadata", {}).get("labels") or {}).get(names.LABEL_ZONE)
    if zone:
        condition = {"key": names.LABEL_ZONE, "operator": "In", "values": [zone]}
        terms = [{"matchExpressions": [condition]}]
        volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return volume


def storage_request(claim: JsonObject) -> str:
    """Return the storage request of a claim."""
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return str(requests.get("storage", "0"))


def serves(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether an unclaimed volume of the claim's class satisfies the claim."""
    wanted, offered = claim.spec, volume.spec
    requests = (wanted.resources.requests if wanted.resources else None) or {}
    try:
        selector = labels.from_label_selector(wanted.selector) if wanted.selector else None
    except SelectorError:
        return False
    return (
        nano((offered.capacity or {}).get("storage", 0)) >= nano(requests.get("storage", 0))
        and set(wanted.access_modes) <= set(offered.access_modes)
        and (wanted.volume_mode or "Filesystem") == (offered.volume_mode or "Filesystem")
        and (wanted.volume_attributes_class_name or "")
        == (offered.volume_attributes_class_name or "")
        and (selector is None or selector.matches(volume.metadata.labels or {}))
    )


def _annotated(meta: JsonObject, **annotations: str) -> JsonObject:
    return {**meta, "annotations": {**(meta.get("annotations") or {}), **annotations}}
