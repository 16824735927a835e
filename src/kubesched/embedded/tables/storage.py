"""Cells of storage kinds."""

from __future__ import annotations

from typing import Any, Final

from kubesched.embedded.tables.text import Age, meta_age, spec_of, status_of

JsonObject = dict[str, Any]


_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access_modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in (modes or ()))


def _volume(obj: JsonObject, age: Age) -> list[Any]:
    spec, status, claim = spec_of(obj), status_of(obj), spec_of(obj).get("claimRef") or {}
    deleted = obj["metadata"].get("deletionTimestamp")
    return [
        obj["metadata"]["name"],
        (spec.get("capacity") or {}).get("storage", "0"),
        _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if deleted else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        meta_age(obj, age),
        spec.get("volumeMode") or "<unset>",
    ]


def _volume_claim(obj: JsonObject, age: Age) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    bound = bool(spec.get("volumeName"))
    deleted = obj["metadata"].get("deletionTimestamp")
    return [
        obj["metadata"]["name"],
        "Terminating" if deleted else status.get("phase", ""),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        _access_modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        meta_age(obj, age),
        spec.get("volumeMode") or "<unset>",
    ]


def _storage_class(obj: JsonObject, age: Age) -> list[Any]:
    annotations = obj["metadata"].get("annotations") or {}
    default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return [
        obj["metadata"]["name"] + (" (default)" if default else ""),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        obj.get("allowVolumeExpansion") or False,
        meta_age(obj, age),
    ]


def _csi_node(obj: JsonObject, age: Age) -> list[Any]:
    return [obj["metadata"]["name"], len(spec_of(obj).get("drivers") or ()), meta_age(obj, age)]


def _csi_driver(obj: JsonObject, age: Age) -> list[Any]:
    spec = spec_of(obj)
    tokens = spec.get("tokenRequests")
    return [
        obj["metadata"]["name"],
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        "<unset>" if tokens is None else ",".join(t.get("audience", "") for t in tokens),
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or "<none>",
        meta_age(obj, age),
    ]


def _storage_capacity(obj: JsonObject, _age: Age) -> list[Any]:
    name = obj["metadata"]["name"]
    return [name, obj.get("storageClassName", ""), obj.get("capacity") or "<unset>"]


def _volume_attachment(obj: JsonObject, age: Age) -> list[Any]:
    spec = spec_of(obj)
    return [
        obj["metadata"]["name"],
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        status_of(obj).get("attached", False),
        meta_age(obj, age),
    ]


CELLS: Final = {
    "CSIDriver": _csi_driver,
    "CSINode": _csi_node,
    "CSIStorageCapacity": _storage_capacity,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _volume_claim,
    "StorageClass": _storage_class,
    "VolumeAttachment": _volume_attachment,
}
