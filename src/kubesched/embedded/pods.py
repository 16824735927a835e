"""Pods: creation, binding, restricted updates, status.

A spec is prepared (defaults, validation, QoS class) once and then shared by all pods with the same
spec: ten thousand replicas share one. Shared objects are never modified; a pod that needs its own
spec gets a copy of the top level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from kubesched.api import names
from kubesched.embedded.pod_defaults import (
    add_default_tolerations,
    qos_class,
    set_spec_defaults,
    without_empty_lists,
)
from kubesched.embedded.pod_updates import status_update_errors, update_errors
from kubesched.embedded.pod_validation import creation_errors, node_name_errors, spec_errors
from kubesched.embedded.refusals import StatusError, conflict, forbidden, invalid
from kubesched.embedded.resources import NODES, PODS, PRIORITY_CLASSES
from kubesched.embedded.schemas import PodSpecSchema, read
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.validation import metadata_errors, metadata_update_errors
from kubesched.embedded.versions import Version, encode

JsonObject = dict[str, Any]

#: Maximum number of cached specs; then the cache is cleared.
_SPEC_CACHE: Final = 4096
_TOPOLOGY_LABELS: Final = (names.LABEL_ZONE, names.LABEL_REGION)
_PREEMPT: Final = "PreemptLowerPriority"
_AFFINITIES: Final = ("podAffinity", "podAntiAffinity")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class Admission(NamedTuple):
    """The admission plugins that act on pods."""

    #: the priority is that of the pod's class
    priority: bool = True
    #: pods tolerate a node that is not ready or unreachable for five minutes
    default_toleration_seconds: bool = True
    #: a bound pod gets the zone and region labels of its node
    topology_labels: bool = True


class Priority(NamedTuple):
    """The fields that a priority class sets in a pod."""

    class_name: str
    value: int
    policy: str


class PreparedSpec:
    """A spec with everything that can be computed without the pod."""

    __slots__ = ("_by_priority", "errors", "label_keys", "qos", "spec")

    def __init__(self, spec: JsonObject) -> None:
        self.spec = spec
        self.qos = qos_class(spec)
        #: a selector in it depends on the pod's own labels, and is validated with them
        self.label_keys = _uses_label_keys(spec)
        self.errors = creation_errors(spec)
        if not self.label_keys:
            self.errors += spec_errors(spec)
        self._by_priority: dict[Priority, JsonObject] = {}

    def with_priority(self, priority: Priority) -> JsonObject:
        """Return the spec with the fields that admission sets."""
        spec = self._by_priority.get(priority)
        if spec is None:
            spec = {**self.spec, "priority": priority.value, "preemptionPolicy": priority.policy}
            if priority.class_name:
                spec["priorityClassName"] = priority.class_name
            self._by_priority[priority] = spec
        return spec


class Pods:
    """Prepares pods for the store."""

    def __init__(self, store: VersionedStore, now: Callable[[], str], admission: Admission) -> None:
        self._store = store
        self._now = now
        self._admission = admission
        self._specs: dict[bytes, PreparedSpec] = {}
        #: class name ("" for none) → its fields, as of the revision
        self._priorities: dict[str, Priority] = {}
        self._priorities_revision = -1

    # ------------------------------------------------------------ creation

    def create(self, pod: JsonObject) -> None:
        """Turn a request's body into a new pod; rejects invalid ones."""
        meta = pod["metadata"]
        sent, node_name = _without_node(pod.get("spec") or {})
        prepared = self._prepared(sent)
        spec = prepared.spec
        if self._admission.priority:
            spec = prepared.with_priority(self._priority(meta.get("name", ""), spec))
        meta["generation"] = 1
        errors = metadata_errors(PODS, meta) + prepared.errors
        if node_name:
            spec = {**spec, "nodeName": node_name}
            errors += node_name_errors(spec)
        if prepared.label_keys:
            spec = with_label_keys(spec, meta.get("labels") or {})
            errors += spec_errors(spec)
        if errors:
            raise invalid("Pod", meta.get("name", ""), errors)
        pod["spec"] = spec
        pod["status"] = self._first_status(spec, prepared.qos)
        if node_name and self._admission.topology_labels:
            self._label_with_topology(meta, node_name)

    def _prepared(self, spec: JsonObject) -> PreparedSpec:
        key = encode(spec)
        prepared = self._specs.get(key)
        if prepared is None:
            prepared = PreparedSpec(self._with_defaults(key))
            if len(self._specs) >= _SPEC_CACHE:
                self._specs.clear()
            self._specs[key] = prepared
        return prepared

    def _with_defaults(self, encoded: bytes) -> JsonObject:
        """Return a new spec with defaults."""
        spec: JsonObject = without_empty_lists(msgspec.json.decode(encoded))
        read(PODS, spec, PodSpecSchema)
        set_spec_defaults(spec)
        if self._admission.default_toleration_seconds:
            add_default_tolerations(spec)
        return spec

    def _first_status(self, spec: JsonObject, qos: str) -> JsonObject:
        status: JsonObject = {"phase": "Pending", "qosClass": qos}
        if spec.get("schedulingGates"):
            condition = {
                "type": names.POD_SCHEDULED,
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": self._now(),
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
            status["conditions"] = [condition]
        return status

    def _priority(self, pod_name: str, spec: JsonObject) -> Priority:
        class_name = spec.get("priorityClassName") or ""
        classes = self._store.collection(PRIORITY_CLASSES)
        if classes.changed != self._priorities_revision:
            self._priorities = _priorities(classes.versions())
            self._priorities_revision = classes.changed
        priority = self._priorities.get(class_name)
        if priority is None:
            why = f"no PriorityClass with name {class_name} was found"
            raise forbidden("pods", pod_name, why)
        self._refuse_other_priority(pod_name, spec, priority)
        return priority

    def _refuse_other_priority(self, pod_name: str, spec: JsonObject, priority: Priority) -> None:
        computed = "must not be provided in pod spec; priority admission controller computed"
        given = spec.get("priority")
        if given is not None and given != priority.value:
            why = (
                f"the integer value of priority ({given}) {computed} {priority.value} "
                "from the given PriorityClass name"
            )
            raise forbidden("pods", pod_name, why)
        policy = spec.get("preemptionPolicy")
        if policy is not None and policy != priority.policy:
            why = (
                f"the string value of PreemptionPolicy ({policy}) {computed} {priority.policy} "
                "from the given PriorityClass name"
            )
            raise forbidden("pods", pod_name, why)

    # ------------------------------------------------------------ changes

    def update(self, pod: JsonObject, old: JsonObject) -> None:
        """Turn a request's body into the next version of a pod; rejects forbidden changes."""
        pod["status"] = old["status"]
        errors = metadata_update_errors(pod["metadata"], old["metadata"])
        if pod.get("spec") != old["spec"]:
            spec = self._with_defaults(encode(pod.get("spec") or {}))
            for name in ("priority", "preemptionPolicy"):
                if spec.get(name) is None and name in old["spec"]:
                    spec[name] = old["spec"][name]
            errors += spec_errors(spec)
            errors += update_errors(spec, old["spec"])
            pod["spec"] = spec
        if pod["spec"] == old["spec"]:
            pod["spec"] = old["spec"]
        if errors:
            raise invalid("Pod", old["metadata"]["name"], errors)

    def update_status(self, pod: JsonObject, old: JsonObject) -> None:
        """Update the status, and the metadata that may come with it."""
        meta, old_meta = pod["metadata"], old["metadata"]
        pod["spec"] = old["spec"]
        if "ownerReferences" in old_meta:
            meta["ownerReferences"] = old_meta["ownerReferences"]
        else:
            meta.pop("ownerReferences", None)
        status = dict(pod.get("status") or {})
        if not status.get("qosClass"):
            status["qosClass"] = old["status"]["qosClass"]
        pod["status"] = status
        errors = metadata_update_errors(meta, old_meta) + status_update_errors(pod, old)
        if errors:
            raise invalid("Pod", old_meta["name"], errors)

    # ------------------------------------------------------------ binding

    def bind(self, old: Version, node_name: str, binding_meta: JsonObject) -> JsonObject:
        """Return the pod bound to a node; rejects one that cannot be."""
        pod = old.obj
        name = pod["metadata"]["name"]
        self._refuse_unbindable(name, pod)
        meta = dict(pod["metadata"])
        if annotations := binding_meta.get("annotations"):
            meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
        if labels := binding_meta.get("labels"):
            meta["labels"] = {**(meta.get("labels") or {}), **labels}
        if self._admission.topology_labels:
            self._label_with_topology(meta, node_name)
        status = {k: v for k, v in pod["status"].items() if k != "nominatedNodeName"}
        status["conditions"] = self._with_scheduled(status.get("conditions") or [])
        spec = {**pod["spec"], "nodeName": node_name}
        return {**pod, "metadata": meta, "spec": spec, "status": status}

    def _refuse_unbindable(self, name: str, pod: JsonObject) -> None:
        why = ""
        if pod["metadata"].get("deletionTimestamp"):
            why = f"pod {name} is being deleted, cannot be assigned to a host"
        elif node := pod["spec"].get("nodeName"):
            why = f'pod {name} is already assigned to node "{node}"'
        elif pod["spec"].get("schedulingGates"):
            why = f"pod {name} has non-empty .spec.schedulingGates"
        if why:
            raise conflict("pods/binding", name, why)

    def _with_scheduled(self, conditions: list[JsonObject]) -> list[JsonObject]:
        scheduled = {
            "type": names.POD_SCHEDULED,
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": self._now(),
        }
        for index, condition in enumerate(conditions):
            if condition.get("type") == names.POD_SCHEDULED:
                return [*conditions[:index], scheduled, *conditions[index + 1 :]]
        return [*conditions, scheduled]

    def _label_with_topology(self, meta: JsonObject, node_name: str) -> None:
        node = self._store.get(NODES, node_name)
        if node is None:
            return
        of_node = node.obj["metadata"].get("labels") or {}
        copied = {key: of_node[key] for key in _TOPOLOGY_LABELS if key in of_node}
        if copied:
            meta["labels"] = {**(meta.get("labels") or {}), **copied}


def _without_node(spec: JsonObject) -> tuple[JsonObject, str]:
    """Return a spec without its node, and the node: the rest can be shared with other pods."""
    node_name = spec.get("nodeName")
    if not node_name or not isinstance(node_name, str):
        return spec, ""
    return {name: value for name, value in spec.items() if name != "nodeName"}, node_name


def default_class(classes: Iterable[Version]) -> JsonObject | None:
    """Return the default priority class: the lowest, if there are several."""
    defaults = [version.obj for version in classes if version.obj.get("globalDefault")]
    return min(defaults, key=lambda obj: int(obj["value"]), default=None)


def _priorities(classes: Iterable[Version]) -> dict[str, Priority]:
    """Return the fields of each class, and of "" for a pod without one."""
    known = {version.key: version.obj for version in classes}
    found = {
        name: Priority(name, obj["value"], obj["preemptionPolicy"]) for name, obj in known.items()
    }
    default = min(
        (priority for name, priority in found.items() if known[name].get("globalDefault")),
        key=lambda priority: priority.value,
        default=Priority("", 0, _PREEMPT),
    )
    return {**found, "": default}


def admitted_priority(classes: Iterable[Version], class_name: str) -> Priority | None:
    """Return the priority of a class, or without a name the default one; None if there is none."""
    return _priorities(classes).get(class_name)


def precondition_failed(kind: str, key: str, details: str) -> StatusError:
    """409: the object does not match the precondition."""
    name = key.rpartition("/")[2]
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{kind}/{key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {details}"
    )
    return conflict(kind, name, why)


# ---------------------------------------------------------------- selectors that name own labels


def _terms(spec: JsonObject) -> Iterable[JsonObject]:
    affinity = spec.get("affinity") or {}
    for name in _AFFINITIES:
        group = affinity.get(name) or {}
        yield from group.get(_REQUIRED) or ()
        yield from (wish.get("podAffinityTerm") or {} for wish in group.get(_PREFERRED) or ())
    yield from spec.get("topologySpreadConstraints") or ()


def _uses_label_keys(spec: JsonObject) -> bool:
    return any(term.get("matchLabelKeys") or term.get("mismatchLabelKeys") for term in _terms(spec))


def with_label_keys(spec: JsonObject, labels: JsonObject) -> JsonObject:
    """Return the spec with the pod's values of matchLabelKeys added to the selectors."""
    copy: JsonObject = msgspec.json.decode(encode(spec))
    for term in _terms(copy):
        selector = term.get("labelSelector")
        if selector is None:
            continue
        added = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for key in term.get(field) or ()
            if key in labels
        ]
        if added:
            selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]
    return copy
