"""API objects for tests, from plain values and from manifests.

cpu=4, labels={…}       ─┐
YAML of Nodes, Pods, and ├──> JSON ──> the structs that the scheduler decodes from the wire
workloads with templates ┘
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

import msgspec
import yaml

from kubesched.api import names
from kubesched.api.core import Node, Pod
from kubesched.api.decoding import convert
from kubesched.api.meta import ObjectMeta
from kubesched.api.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kubesched.errors import UsageError

Json = dict[str, Any]
Amount = int | float | str

#: Kinds with a pod template.
_WORKLOADS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "Job", "DaemonSet")


class NodeProperties(TypedDict, total=False):
    """Properties of a node; all of them are optional."""

    #: allocatable: 4 cpus, 16Gi and 110 pods by default
    cpu: Amount
    memory: Amount
    pods: int
    #: other allocatable resources: ``{"nvidia.com/gpu": 8}``
    resources: Mapping[str, Amount]
    zone: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    #: ``key=value:Effect`` or ``key:Effect``
    taints: Iterable[str]
    #: image → its size in bytes
    images: Mapping[str, int]
    #: ``{"Ready": "True"}`` by default
    conditions: Mapping[str, str]
    #: features that the kubelet declares
    features: Iterable[str]
    unschedulable: bool


class PodProperties(TypedDict, total=False):
    """Properties of a pod; all of them are optional."""

    #: requests of its container
    cpu: Amount
    memory: Amount
    resources: Mapping[str, Amount]
    image: str
    host_ports: Iterable[int]
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    priority: int
    node_selector: Mapping[str, str]
    #: ``key=value:Effect``; without a value any is tolerated, without an effect all are
    tolerations: Iterable[str]
    #: names of its PersistentVolumeClaims
    claims: Iterable[str]
    #: devices that it claims for itself: of class ``gpu``, or ``{"gpu": 2, "nic": 1}``
    devices: int | Mapping[str, int]
    #: CEL expression that these devices have to meet
    device_selector: str
    #: names of ResourceClaims that it uses, which may be shared with others
    device_claims: Iterable[str]
    #: name of its PodGroup
    group: str
    #: its node; a pod without one is pending
    node: str
    #: other fields of its spec, as in a manifest
    spec: Mapping[str, Any]


def make_node(name: str, **given: Unpack[NodeProperties]) -> Node:
    """Make a node."""
    zone = given.get("zone")
    offered = {
        "cpu": given.get("cpu", 4),
        "memory": given.get("memory", "16Gi"),
        "pods": given.get("pods", 110),
        **given.get("resources", {}),
    }
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "uid": name,
                "labels": {
                    names.LABEL_HOSTNAME: name,
                    **({names.LABEL_ZONE: zone} if zone else {}),
                    **given.get("labels", {}),
                },
                "annotations": dict(given.get("annotations", {})),
            },
            "spec": {
                "unschedulable": given.get("unschedulable", False),
                "taints": [_taint(each) for each in given.get("taints", ())],
            },
            "status": {
                "allocatable": _amounts(offered),
                "conditions": [
                    {"type": kind, "status": status}
                    for kind, status in given.get("conditions", {"Ready": "True"}).items()
                ],
                "images": [
                    {"names": [image], "sizeBytes": size}
                    for image, size in given.get("images", {}).items()
                ],
                "declaredFeatures": list(given.get("features", ())),
            },
        },
        Node,
    )


def make_pod(name: str, **given: Unpack[PodProperties]) -> Pod:
    """Make a pod of one container."""
    namespace = given.get("namespace", "default")
    requests: dict[str, Amount] = dict(given.get("resources", {}))
    if "cpu" in given:
        requests["cpu"] = given["cpu"]
    if "memory" in given:
        requests["memory"] = given["memory"]
    container = {
        "name": "main",
        "image": given.get("image", "app:1"),
        "ports": [{"hostPort": each} for each in given.get("host_ports", ())],
        "resources": {"requests": _amounts(requests)},
    }
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"{namespace}/{name}",
                "labels": dict(given.get("labels", {})),
                "annotations": dict(given.get("annotations", {})),
            },
            "spec": {
                "schedulerName": names.DEFAULT_SCHEDULER,
                "containers": [container],
                "priority": given.get("priority", 0),
                "nodeName": given.get("node", ""),
                "nodeSelector": dict(given.get("node_selector", {})),
                "tolerations": [_toleration(each) for each in given.get("tolerations", ())],
                "volumes": [
                    {"name": each, "persistentVolumeClaim": {"claimName": each}}
                    for each in given.get("claims", ())
                ],
                **(
                    {"schedulingGroup": {"podGroupName": given["group"]}}
                    if "group" in given
                    else {}
                ),
                **given.get("spec", {}),
            },
        },
        Pod,
    )


def make_claim(
    name: str,
    *,
    storage: Amount = "1Gi",
    storage_class: str = "",
    volume: str = "",
    access_modes: Iterable[str] = ("ReadWriteOnce",),
    namespace: str = "default",
) -> PersistentVolumeClaim:
    """Make a claim; with a `volume` it is bound to that."""
    bound = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"{namespace}/{name}",
                "annotations": bound,
            },
            "spec": {
                "accessModes": list(access_modes),
                "resources": {"requests": {"storage": str(storage)}},
                "storageClassName": storage_class,
                "volumeName": volume,
            },
            "status": {"phase": "Bound" if volume else "Pending"},
        },
        PersistentVolumeClaim,
    )


def make_volume(
    name: str,
    *,
    storage: Amount = "1Gi",
    storage_class: str = "",
    nodes: Iterable[str] = (),
    zone: str = "",
    driver: str = "csi.example.com",
    access_modes: Iterable[str] = ("ReadWriteOnce",),
) -> PersistentVolume:
    """Make a volume of a CSI driver, accessible from the named `nodes` or those of a `zone`."""
    reachable = [(names.LABEL_HOSTNAME, [*nodes]), (names.LABEL_ZONE, [zone] if zone else [])]
    wanted = [
        {"key": key, "operator": "In", "values": values} for key, values in reachable if values
    ]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": name},
            "spec": {
                "capacity": {"storage": str(storage)},
                "accessModes": list(access_modes),
                "storageClassName": storage_class,
                "csi": {"driver": driver, "volumeHandle": name},
                **({"nodeAffinity": affinity} if wanted else {}),
            },
            "status": {"phase": "Available"},
        },
        PersistentVolume,
    )


def make_storage_class(
    name: str,
    *,
    provisioner: str = "kubernetes.io/no-provisioner",
    binding_mode: str = WAIT_FOR_FIRST_CONSUMER,
) -> StorageClass:
    """Make a class; by default its volumes are bound when a pod needs them."""
    return StorageClass(
        metadata=ObjectMeta(name=name), provisioner=provisioner, volume_binding_mode=binding_mode
    )


def read_manifests(source: str | Path) -> Iterator[Node | Pod]:
    """Read nodes and pods from a YAML file, a folder of them, or a text of several lines."""
    for where, text in _texts(source):
        try:
            documents = [each for each in yaml.safe_load_all(text) if each is not None]
        except yaml.YAMLError as wrong:
            raise UsageError(f"{where}: {' '.join(str(wrong).split())}") from None
        for document in documents:
            yield from _objects(document, where)


def _texts(source: str | Path) -> Iterator[tuple[str, str]]:
    if isinstance(source, str) and "\n" in source:
        yield "manifest", source
        return
    path = Path(source)
    files = sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"{path} has no YAML files")
    for file in files:
        try:
            yield str(file), file.read_text()
        except OSError as failed:
            raise UsageError(f"open {file}: {(failed.strerror or '').lower()}") from None


def _objects(document: object, where: str) -> Iterator[Node | Pod]:
    if not isinstance(document, dict):
        raise UsageError(f"{where}: expected an object with a kind, got {document!r}")
    kind = document.get("kind")
    if kind == "List":
        for item in document.get("items") or ():
            yield from _objects(item, where)
    elif kind == "Node":
        yield _converted(_with_uid(document), Node, where)
    elif kind == "Pod":
        yield _converted(_complete_pod(document), Pod, where)
    elif kind in _WORKLOADS:
        yield from _pods_of(document, where)
    else:
        known = ", ".join(("List", "Node", "Pod", *_WORKLOADS))
        raise UsageError(f"{where}: cannot schedule a {kind}: known are {known}")


def _pods_of(workload: Json, where: str) -> Iterator[Pod]:
    meta, spec = workload.get("metadata") or {}, workload.get("spec") or {}
    count = spec.get("parallelism" if workload["kind"] == "Job" else "replicas", 1)
    for number in range(int(count)):
        template = spec.get("template") or {}
        pod = {
            "metadata": {
                **(template.get("metadata") or {}),
                "name": f"{meta.get('name', 'pod')}-{number}",
                "namespace": meta.get("namespace", "default"),
            },
            "spec": template.get("spec") or {},
        }
        yield _converted(_complete_pod(pod), Pod, where)


def _complete_pod(document: Json) -> Json:
    """Set the API server's defaults."""
    meta, spec = dict(document.get("metadata") or {}), dict(document.get("spec") or {})
    meta.setdefault("namespace", "default")
    meta.setdefault("uid", f"{meta['namespace']}/{meta.get('name', '')}")
    spec.setdefault("schedulerName", names.DEFAULT_SCHEDULER)
    spec["containers"] = [_with_requests(each) for each in spec.get("containers") or ()]
    return {**document, "metadata": meta, "spec": spec}


def _with_requests(container: Json) -> Json:
    """Set missing requests to the limits."""
    resources = container.get("resources") or {}
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": _amounts(requests)}}


def _with_uid(document: Json) -> Json:
    meta = dict(document.get("metadata") or {})
    meta.setdefault("uid", meta.get("name", ""))
    return {**document, "metadata": meta}


def _converted(document: Json, kind: Any, where: str) -> Any:  # noqa: ANN401 (an instance of `kind`)
    try:
        return convert(document, kind)
    except msgspec.ValidationError as wrong:
        name = (document.get("metadata") or {}).get("name", "")
        raise UsageError(f"{where}: {kind.__name__} {name}: {wrong}") from None


def _amounts(amounts: Mapping[str, Amount]) -> dict[str, str]:
    return {key: str(each) for key, each in amounts.items()}


def _taint(text: str) -> dict[str, str]:
    rest, colon, effect = text.rpartition(":")
    if not colon:
        raise UsageError(f"taint {text!r}: expected key=value:Effect or key:Effect")
    key, _, value = rest.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _toleration(text: str) -> dict[str, str]:
    rest, colon, effect = text.rpartition(":")
    key, equals, value = (rest if colon else text).partition("=")
    operator = "Equal" if equals else "Exists"
    return {"key": key, "operator": operator, "value": value, "effect": effect if colon else ""}
