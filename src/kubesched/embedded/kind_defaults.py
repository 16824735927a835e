"""Defaults of each kind.

Each function modifies its argument, whose top level, metadata and spec are not shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kubesched.embedded.pod_defaults import set_spec_defaults
from kubesched.embedded.quantities import canonical, canonical_amounts
from kubesched.embedded.resources import ServedResource
from kubesched.embedded.schemas import PodSpecSchema, read

JsonObject = dict[str, Any]


def namespace_defaults(namespace: JsonObject) -> None:
    """Label a namespace with its name, and add its finalizer."""
    meta = namespace["metadata"]
    if name := meta.get("name"):
        meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": name}
    spec = namespace.get("spec") or {}
    if not meta.get("deletionTimestamp") and "kubernetes" not in (spec.get("finalizers") or ()):
        spec = {**spec, "finalizers": [*(spec.get("finalizers") or ()), "kubernetes"]}
    namespace["spec"] = spec


def pod_template(obj: JsonObject) -> JsonObject | None:
    """Return the pod template of an object, None if there is none."""
    spec = obj.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        return template
    return None


def template_defaults(resource: ServedResource, template: JsonObject) -> None:
    """Set the defaults of a pod template."""
    read(resource, template["spec"], PodSpecSchema)
    set_spec_defaults(template["spec"], is_template=True)
    template.setdefault("metadata", {})


def _rolling(spec: JsonObject, name: str, **update: str | int) -> None:
    strategy = spec.setdefault(name, {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        for field, value in update.items():
            rolling.setdefault(field, value)


def _deployment(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _rolling(spec, "strategy", maxUnavailable="25%", maxSurge="25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _daemon_set(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    _rolling(spec, "updateStrategy", maxUnavailable=1, maxSurge=0)
    spec.setdefault("revisionHistoryLimit", 10)


def _stateful_set(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    _rolling(spec, "updateStrategy", partition=0)
    spec.setdefault("revisionHistoryLimit", 10)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")


def _replicas(obj: JsonObject) -> None:
    obj.setdefault("spec", {}).setdefault("replicas", 1)


def _replication_controller(obj: JsonObject) -> None:
    _replicas(obj)
    template = (obj["spec"].get("template") or {}).get("metadata") or {}
    if labels := template.get("labels"):
        obj["spec"].setdefault("selector", labels)
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = labels


def _job(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    if "parallelism" not in spec:
        spec.setdefault("completions", 1)
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def job_selector(job: JsonObject) -> None:
    """Make a job select the pods that carry its uid."""
    spec, meta = job["spec"], job["metadata"]
    if spec["manualSelector"]:
        return
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    labels = template.setdefault("labels", {})
    for key in ("job-name", "batch.kubernetes.io/job-name"):
        labels.setdefault(key, meta.get("name", ""))
    for key in ("controller-uid", "batch.kubernetes.io/controller-uid"):
        labels.setdefault(key, meta["uid"])
    selector = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    selector.setdefault("batch.kubernetes.io/controller-uid", meta["uid"])
    if not meta.get("labels"):
        meta["labels"] = dict(labels)


def _volume(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    canonical_amounts(spec, "capacity")


def _volume_claim(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    canonical_amounts(spec.get("resources") or {}, "requests", "limits")


def _storage_class(obj: JsonObject) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _storage_capacity(obj: JsonObject) -> None:
    for name in ("capacity", "maximumVolumeSize"):
        if obj.get(name) is not None:
            obj[name] = canonical(obj[name])


def _csi_driver(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    for name, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("requiresRepublish", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("volumeLifecycleModes", ["Persistent"]),
        ("seLinuxMount", False),
    ):
        spec.setdefault(name, value)


def _priority_class(obj: JsonObject) -> None:
    obj.setdefault("value", 0)
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _secret(obj: JsonObject) -> None:
    obj.setdefault("type", "Opaque")


def _claim(obj: JsonObject) -> None:
    _device_requests(obj.setdefault("spec", {}))


def _claim_template(obj: JsonObject) -> None:
    _device_requests(obj.setdefault("spec", {}).setdefault("spec", {}))


def _device_requests(spec: JsonObject) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        exactly = request.get("exactly")
        for each in ([] if exactly is None else [exactly]) + (request.get("firstAvailable") or []):
            each["allocationMode"] = each.get("allocationMode") or "ExactCount"
            if each["allocationMode"] == "ExactCount":
                each["count"] = each.get("count") or 1


def _device_class(obj: JsonObject) -> None:
    obj.setdefault("spec", {})


def _pod_group(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("schedulingPolicy", {})
    spec["disruptionMode"] = spec.get("disruptionMode") or {"single": {}}


def _workload(obj: JsonObject) -> None:
    obj.setdefault("spec", {})


def device_taints(resource: ServedResource, obj: JsonObject, now: str) -> None:
    """Note when the taints of devices were added."""
    spec = obj.setdefault("spec", {})
    taints = [spec.setdefault("taint", {})] if resource.kind == "DeviceTaintRule" else []
    for device in spec.get("devices") or ():
        taints += device.get("taints") or ()
    for taint in taints:
        taint["timeAdded"] = taint.get("timeAdded") or now


DEFAULTS: Final[Mapping[str, Callable[[JsonObject], None]]] = {
    "CSIDriver": _csi_driver,
    "CSIStorageCapacity": _storage_capacity,
    "DaemonSet": _daemon_set,
    "Deployment": _deployment,
    "DeviceClass": _device_class,
    "Job": _job,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _volume_claim,
    "PodGroup": _pod_group,
    "PriorityClass": _priority_class,
    "ReplicaSet": _replicas,
    "ReplicationController": _replication_controller,
    "ResourceClaim": _claim,
    "ResourceClaimTemplate": _claim_template,
    "Secret": _secret,
    "StatefulSet": _stateful_set,
    "StorageClass": _storage_class,
    "Workload": _workload,
}
