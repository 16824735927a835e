"""API objects for tests, from plain values and from manifests.

cpu=4, labels={…}       ─┐
YAML of Nodes, Pods, and ├──> JSON ──> the structs that the scheduler decodes from the wire
workloads with templates ┘
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from kubesched.api import names
from kubesched.api.core import Node, Pod
from kubesched.api.decoding import convert
from kubesched.errors import UsageError

Json = dict[str, Any]
Amount = int | float | str

#: Kinds that make pods of a template.
_WORKLOADS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "Job", "DaemonSet")


def make_node(
    name: str,
    *,
    cpu: Amount = 4,
    memory: Amount = "16Gi",
    pods: int = 110,
    resources: Mapping[str, Amount] | None = None,
    zone: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    conditions: Mapping[str, str] | None = None,
    unschedulable: bool = False,
) -> Node:
    """Make a node; a taint is ``key=value:Effect``, `resources` are beside cpu and memory."""
    offered = {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})}
    all_labels = {names.LABEL_HOSTNAME: name, **({names.LABEL_ZONE: zone} if zone else {})}
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "uid": name,
                "labels": {**all_labels, **(labels or {})},
                "annotations": dict(annotations or {}),
            },
            "spec": {
                "unschedulable": unschedulable,
                "taints": [_taint(each) for each in taints],
            },
            "status": {
                "allocatable": _amounts(offered),
                "conditions": [
                    {"type": kind, "status": status}
                    for kind, status in (conditions or {"Ready": "True"}).items()
                ],
            },
        },
        Node,
    )


def make_pod(
    name: str,
    *,
    cpu: Amount | None = None,
    memory: Amount | None = None,
    resources: Mapping[str, Amount] | None = None,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    priority: int = 0,
    node: str = "",
    spec: Mapping[str, Any] | None = None,
) -> Pod:
    """Make a pod of one container; `spec` has what else its spec is to say, as in a manifest."""
    wanted = {"cpu": cpu, "memory": memory, **(resources or {})}
    requests = _amounts({key: each for key, each in wanted.items() if each is not None})
    container = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"{namespace}/{name}",
                "labels": dict(labels or {}),
                "annotations": dict(annotations or {}),
            },
            "spec": {
                "schedulerName": names.DEFAULT_SCHEDULER,
                "containers": [container],
                "priority": priority,
                "nodeName": node,
                **(spec or {}),
            },
        },
        Pod,
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
    """Fill in what the API server would."""
    meta, spec = dict(document.get("metadata") or {}), dict(document.get("spec") or {})
    meta.setdefault("namespace", "default")
    meta.setdefault("uid", f"{meta['namespace']}/{meta.get('name', '')}")
    spec.setdefault("schedulerName", names.DEFAULT_SCHEDULER)
    spec["containers"] = [_with_requests(each) for each in spec.get("containers") or ()]
    return {**document, "metadata": meta, "spec": spec}


def _with_requests(container: Json) -> Json:
    """What has a limit and no request, requests the limit."""
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
