"""The nodes, pods and volumes of the built-in workloads, as plain API objects.

Each function makes an object that is the same for all indexes; ``same`` turns it into a template.
"""

from __future__ import annotations

from typing import Any

from kubesched.bench.operations import JsonObject, Labels, Template

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
IMAGE = "registry.k8s.io/pause:3.10.1"
EBS_DRIVER = "ebs.csi.aws.com"
EBS_LIMIT = f"attachable-volumes-csi-{EBS_DRIVER}"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def same(made: JsonObject) -> Template:
    """Give the same object for all indexes."""
    return lambda _index, _count: made


def node(
    *,
    name: str = "",
    prefix: str = "node-",
    pods: str = "110",
    taints: list[JsonObject] | None = None,
) -> JsonObject:
    """A ready node of 4 CPUs and 32 GiB; without a name it gets a number after its prefix."""
    room = {"cpu": "4", "memory": "32Gi", "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name} if name else {"generateName": prefix},
        "spec": {"taints": taints} if taints else {},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def base_node(_index: int, _count: int) -> JsonObject:
    """The default node."""
    return _BASE_NODE


def pod(
    prefix: str = "pod-",
    *,
    cpu: str = "100m",
    memory: str = "500Mi",
    labels: Labels | None = None,
    finalizers: list[str] | None = None,
    **spec: Any,  # noqa: ANN401  fields of a pod's spec
) -> JsonObject:
    """A pod of one container that requests something, or nothing if ``cpu`` is empty."""
    container: JsonObject = {"name": "pause", "image": IMAGE}
    if cpu:
        amounts = {"cpu": cpu, "memory": memory}
        container["resources"] = {"requests": amounts, "limits": amounts}
        container["ports"] = [{"containerPort": 80}]
    metadata: JsonObject = {"generateName": prefix}
    if labels:
        metadata["labels"] = dict(labels)
    if finalizers:
        metadata["finalizers"] = finalizers
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


def base_pod(_index: int, _count: int) -> JsonObject:
    """The default pod."""
    return _BASE_POD


def node_affinity(*, key: str, values: list[str], fields: bool = False) -> JsonObject:
    """Required affinity to nodes by a label, or by a field."""
    requirement = {"key": key, "operator": "In", "values": values}
    term = {"matchFields" if fields else "matchExpressions": [requirement]}
    return {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [term]}}}


def pod_affinity(
    labels: Labels,
    *,
    topology: str,
    anti: bool = False,
    preferred: bool = False,
    namespaces: list[str] | None = None,
    namespace_labels: Labels | None = None,
) -> JsonObject:
    """Affinity to pods with some labels, of some kind."""
    term: JsonObject = {"topologyKey": topology, "labelSelector": {"matchLabels": dict(labels)}}
    if namespaces:
        term["namespaces"] = namespaces
    if namespace_labels:
        term["namespaceSelector"] = {"matchLabels": dict(namespace_labels)}
    kind = "podAntiAffinity" if anti else "podAffinity"
    if preferred:
        return {kind: {_PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}}
    return {kind: {_REQUIRED: [term]}}


def spread(labels: Labels, *, topology: str = ZONE, hard: bool, max_skew: int = 5) -> JsonObject:
    """An even spread of the pods with some labels."""
    return {
        "maxSkew": max_skew,
        "topologyKey": topology,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(labels)},
    }


def volume(source: JsonObject) -> JsonObject:
    """A volume that many may read."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            **source,
        },
    }


def claim() -> JsonObject:
    """A claim in phase Bound."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "true"}},
        "spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def service(prefix: str) -> JsonObject:
    """A service that selects none of our pods."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"generateName": prefix},
        "spec": {"selector": {"app": "nobody"}, "ports": [{"port": 8080, "protocol": "TCP"}]},
    }


def namespace(labels: Labels) -> JsonObject:
    """A namespace with labels."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": dict(labels)}}


_BASE_NODE = node()
_BASE_POD = pod()
