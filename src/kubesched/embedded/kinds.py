"""Defaults and validation of all kinds but pods.

``Kinds`` has the same three operations as ``pods.Pods``: they turn a request's body into the object
to be stored. Its top level and metadata are not shared; anything below may be shared with a stored
version and is replaced, never modified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from kubesched.embedded import device_validation, event_forms, group_validation
from kubesched.embedded.kind_defaults import (
    DEFAULTS,
    device_taints,
    job_selector,
    namespace_defaults,
    pod_template,
    template_defaults,
)
from kubesched.embedded.pods import admitted_priority, default_class
from kubesched.embedded.quantities import canonical_amounts
from kubesched.embedded.refusals import forbidden, invalid, not_allowed, not_supported, not_valid
from kubesched.embedded.resources import PRIORITY_CLASSES, ServedResource
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.validation import (
    IMMUTABLE,
    Errors,
    amount_errors,
    metadata_errors,
    metadata_update_errors,
    taint_errors,
)
from kubesched.embedded.versions import encode

JsonObject = dict[str, Any]

#: Initial status. Kinds that are not here start with an empty one.
_FIRST_STATUS: Final[Mapping[str, JsonObject]] = {
    "Namespace": {"phase": "Active"},
    "PersistentVolume": {"phase": "Pending"},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "PodDisruptionBudget": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
    "DaemonSet": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "ReplicaSet": {"replicas": 0},
    "ReplicationController": {"replicas": 0},
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
    "Service": {"loadBalancer": {}},
    "VolumeAttachment": {"attached": False},
}
#: Kinds of which a status update changes only the status.
_STATUS_ONLY: Final = frozenset(
    {"CompositePodGroup", "DeviceTaintRule", "PodGroup", "ResourceClaim", "VolumeAttachment"}
)
#: What keeps a group until none of its pods is left.
GROUP_FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
_STATUS_META: Final = ("labels", "annotations", "finalizers", "ownerReferences")

_HIGHEST_USER_PRIORITY: Final = 1_000_000_000
_SYSTEM_CLASSES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_SPEC_ERRORS: Final = {**device_validation.ERRORS, **group_validation.ERRORS}
_CHANGE_ERRORS: Final = {**device_validation.UPDATE_ERRORS, **group_validation.UPDATE_ERRORS}


class Kinds:
    """Prepares objects of all kinds but pods for the store."""

    def __init__(self, store: VersionedStore, now: Callable[[], str]) -> None:
        self._store = store
        self._now = now
        self._services = 1

    def create(self, resource: ServedResource, obj: JsonObject) -> None:
        """Turn a request's body into a new object; rejects invalid ones."""
        meta = obj["metadata"]
        if resource.generation or resource.kind == "PriorityClass":
            meta["generation"] = 1
        if resource.status and resource.kind != "Node":
            obj["status"] = dict(_FIRST_STATUS.get(resource.rules, {}))
        self._set_defaults(resource, obj)
        if resource.rules == "PodGroup":
            self._admit_group(obj)
        if resource.kind == "Event":
            errors = event_forms.creation_errors(obj, resource)
        else:
            errors = metadata_errors(resource, meta) + _errors(resource, obj)
        if errors:
            raise invalid(resource.kind, meta.get("name", ""), errors, group=_error_group(resource))
        if resource is PRIORITY_CLASSES:
            self._refuse_second_default(obj)

    def update(self, resource: ServedResource, obj: JsonObject, old: JsonObject) -> None:
        """Turn a request's body into the next version; rejects forbidden changes."""
        if resource.status:
            obj["status"] = old.get("status", {})
        self._set_defaults(resource, obj)
        if resource.kind == "Event":
            errors = event_forms.update_errors(obj, old, resource)
        else:
            errors = metadata_update_errors(obj["metadata"], old["metadata"])
            errors += _errors(resource, obj) + _update_errors(resource, obj, old)
        if errors:
            name = old["metadata"]["name"]
            raise invalid(resource.kind, name, errors, group=_error_group(resource))
        if resource is PRIORITY_CLASSES:
            self._refuse_second_default(obj)

    def update_status(self, resource: ServedResource, obj: JsonObject, old: JsonObject) -> None:
        """Update the status, and the metadata that this kind allows."""
        for name in old.keys() | obj.keys():
            if name not in {"metadata", "status"}:
                _copy_field(old, obj, name)
        obj["status"] = obj.get("status") or {}
        if resource.rules in _STATUS_ONLY:
            for name in _STATUS_META:
                _copy_field(old["metadata"], obj["metadata"], name)
        if resource.kind == "Node":
            obj["status"] = _owned(obj["status"])
            canonical_amounts(obj["status"], "capacity", "allocatable")
        errors = metadata_update_errors(obj["metadata"], old["metadata"])
        errors += _status_errors(resource, obj, old)
        if errors:
            raise invalid(resource.kind, old["metadata"]["name"], errors, group=resource.group)

    # ------------------------------------------------------------ defaults

    def _set_defaults(self, resource: ServedResource, obj: JsonObject) -> None:
        if resource.kind == "Event":
            event_forms.complete(obj)
            return
        if resource.kind == "Namespace":
            namespace_defaults(obj)
            return
        if resource.kind == "Node":
            self._node_defaults(obj)
            return
        if "spec" in obj:
            obj["spec"] = _owned(obj["spec"] or {})
        if resource.kind == "Service":
            self._service_defaults(obj)
        elif fill := DEFAULTS.get(resource.rules):
            fill(obj)
        if (template := pod_template(obj)) is not None:
            template_defaults(resource, template)
        if resource.kind == "Job":
            job_selector(obj)
        elif resource.kind in {"DeviceTaintRule", "ResourceSlice"}:
            device_taints(resource, obj, self._now())
        elif resource.kind == "PersistentVolume":
            obj["status"].setdefault("lastPhaseTransitionTime", self._now())

    def _node_defaults(self, node: JsonObject) -> None:
        node["spec"] = node.get("spec") or {}
        status = _owned(node.get("status") or {})
        if status.get("capacity") and "allocatable" not in status:
            status["allocatable"] = status["capacity"]
        canonical_amounts(status, "capacity", "allocatable")
        node["status"] = status

    def _service_defaults(self, service: JsonObject) -> None:
        spec = service.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port.get("port"))
        if spec["type"] == "ExternalName":
            return
        spec.setdefault("internalTrafficPolicy", "Cluster")
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("ipFamilies", ["IPv4"])
        if not spec.get("clusterIP"):
            self._services += 1
            spec["clusterIP"] = f"10.96.{self._services // 256 % 256}.{self._services % 256}"
        spec.setdefault("clusterIPs", [spec["clusterIP"]])

    def _admit_group(self, group: JsonObject) -> None:
        """Set a group's priority from its class, and the finalizer that protects its pods."""
        spec, meta = group["spec"], group["metadata"]
        name, class_name = meta.get("name", ""), spec.get("priorityClassName") or ""
        classes = self._store.collection(PRIORITY_CLASSES).versions()
        priority = admitted_priority(classes, class_name)
        where = {"resource": "podgroups", "name": name, "group": "scheduling.k8s.io"}
        if priority is None:
            raise forbidden(why=f"no PriorityClass with name {class_name} was found", **where)
        given = spec.get("priority")
        if given is not None and given != priority.value:
            why = (
                f"priority set in the pod group ({given}) must match the priority computed "
                f"({priority.value}) based on the priority class set in the spec"
            )
            raise forbidden(why=why, **where)
        spec["priority"] = priority.value
        if priority.class_name:
            spec["priorityClassName"] = priority.class_name
        if GROUP_FINALIZER not in (meta.get("finalizers") or ()):
            meta["finalizers"] = [*(meta.get("finalizers") or ()), GROUP_FINALIZER]

    def _refuse_second_default(self, obj: JsonObject) -> None:
        if not obj.get("globalDefault"):
            return
        name = obj["metadata"]["name"]
        first = default_class(self._store.collection(PRIORITY_CLASSES).versions())
        if first is not None and first["metadata"]["name"] != name:
            why = (
                f"PriorityClass {first['metadata']['name']} is already marked as default. "
                "Only one default can exist"
            )
            raise forbidden("priorityclasses", name, why, group="scheduling.k8s.io")


def _owned(value: JsonObject) -> JsonObject:
    copy: JsonObject = msgspec.json.decode(encode(value))
    return copy


def _copy_field(source: JsonObject, target: JsonObject, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _error_group(resource: ServedResource) -> str:
    """Return the group in error messages: events count as core objects in both APIs."""
    return "" if resource.kind == "Event" else resource.group


# ---------------------------------------------------------------- validation


def _errors(resource: ServedResource, obj: JsonObject) -> Errors:
    if resource.kind == "Node":
        return _node_errors(obj)
    if resource is PRIORITY_CLASSES:
        return _priority_class_errors(obj)
    validate = _SPEC_ERRORS.get(resource.rules)
    return validate(obj) if validate is not None else []


def _status_errors(resource: ServedResource, obj: JsonObject, old: JsonObject) -> Errors:
    match resource.rules:
        case "ResourceClaim":
            return device_validation.claim_status_errors(obj, old)
        case "PodGroup" | "CompositePodGroup":
            return group_validation.group_status_errors(obj)
    return _errors(resource, obj)


def _node_errors(node: JsonObject) -> Errors:
    errors = taint_errors("metadata.taints", node["spec"].get("taints") or ())
    for name in ("capacity", "allocatable"):
        for resource, amount in (node["status"].get(name) or {}).items():
            errors += amount_errors(f"status.{name}.{resource}", resource, amount)
    return errors


def _priority_class_errors(obj: JsonObject) -> Errors:
    name, value = obj["metadata"].get("name", ""), obj["value"]
    errors: Errors = []
    if name.startswith("system-"):
        if _SYSTEM_CLASSES.get(name) != value:
            detail = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class"
            )
            errors.append(not_allowed("metadata.name", detail))
    elif value > _HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
        errors.append(not_allowed("value", detail))
    policy = obj["preemptionPolicy"]
    if policy not in {"PreemptLowerPriority", "Never"}:
        choices = ("PreemptLowerPriority", "Never")
        errors.append(not_supported("preemptionPolicy", policy, choices))
    return errors


def _update_errors(resource: ServedResource, obj: JsonObject, old: JsonObject) -> Errors:
    if validate := _CHANGE_ERRORS.get(resource.rules):
        return validate(obj, old)
    if resource is not PRIORITY_CLASSES:
        return []
    errors: Errors = []
    if obj["value"] != old["value"]:
        errors.append(not_allowed("value", "may not be changed in an update."))
    if obj["preemptionPolicy"] != old["preemptionPolicy"]:
        errors.append(not_valid("preemptionPolicy", obj["preemptionPolicy"], IMMUTABLE))
    return errors
