"""Nodes, applications and pods of a large cluster, as the JSON that an API server sends.

An object is text with a few placeholders, so that a million of them are made in seconds.

    Application ──> text of its pods, anew for each rollout ──name, uid, node──> JSON
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kubesched.bench import objects
from kubesched.bench.objects import HOSTNAME, ZONE

ZONES = 10
NAMESPACES = 100
PODS_A_NODE = 10
#: One node in so many is full of pods that may be preempted, and only preemptors come there.
FULL_EVERY = 100
POOL = "example.com/pool"
DRIVER = "disk.csi.example"
IMAGES, IMAGES_A_NODE = 200, 5

#: What the pods of an application require, for each twentieth application; the rest are plain.
_KINDS = {
    0: "node-affinity",
    1: "node-affinity",
    2: "hard-spread",
    3: "hard-spread",
    4: "soft-spread",
    5: "zone-affinity",
    6: "zone-affinity",
    7: "host-anti-affinity",
    8: "own-sizes",
    9: "preferred-affinity",
}
#: One application in so many has pods that preempt others, and one has pods that fit nowhere.
_SPECIAL_EVERY = 200

_encode = msgspec.json.Encoder().encode


def kind_of(app: int) -> str:
    """Return what the pods of an application are like."""
    special = {10: "preempting", 110: "fits-nowhere"}.get(app % _SPECIAL_EVERY)
    return special or _KINDS.get(app % 20, "plain")


def namespace_of(app: int) -> str:
    """Return the namespace of an application."""
    return f"team-{app % NAMESPACES}"


# --- nodes ---------------------------------------------------------------------------------------


def node(number: int, *, name: str, is_full: bool) -> dict[str, Any]:
    """A node of 32 CPUs in one of the zones."""
    room = {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "200Gi"}
    labels = {
        HOSTNAME: name,
        ZONE: f"zone-{number % ZONES}",
        "topology.kubernetes.io/region": "region",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": f"type-{number % 7}",
        POOL: "full" if is_full else f"pool-{number % 20}",
    }
    taints = [{"key": POOL, "value": "full", "effect": "NoSchedule"}] if is_full else []
    images = [
        {"names": [f"registry.example/image-{(number + each) % IMAGES}:v1"], "sizeBytes": 100 << 20}
        for each in range(0, IMAGES_A_NODE * 7, 7)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels, "resourceVersion": "1"},
        "spec": {"taints": taints},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": HEARTBEAT}],
            "images": images,
        },
    }


#: The time of a heartbeat; each is as good as any other.
HEARTBEAT = "2026-01-01T00:00:00Z"


def csi_node(name: str) -> bytes:
    """The storage driver of a node."""
    driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": 39}}
    meta = {"name": name, "uid": f"csi-{name}", "resourceVersion": "1"}
    return _encode({"metadata": meta, "spec": {"drivers": [driver]}})


# --- pods ----------------------------------------------------------------------------------------


class PodText:
    """The JSON of an application's pods, without what differs between them."""

    def __init__(self, app: int, revision: int = 0) -> None:
        self.kind = kind_of(app)
        made = _pod(app, revision, self.kind)
        self._text = _encode(made)

    def pod(self, number: int, *, name: str, node_name: str = "") -> bytes:
        """Return the JSON of a pod; `number` is its own size, where pods have one."""
        text = self._text.replace(b"@name", name.encode())
        text = text.replace(b"@size", b"%d" % (100 + number % 4000))
        return text.replace(b"@node", node_name.encode())


def _pod(app: int, revision: int, kind: str) -> dict[str, Any]:
    label = {"app": f"app-{app}"}
    made = objects.pod(
        labels={**label, "pod-template-hash": f"hash-{app}-{revision}"},
        cpu="@sizem" if kind == "own-sizes" else _CPU.get(kind, "250m"),
        memory=f"{500 + revision}Mi",
        **_required(kind, label),
    )
    made["metadata"] |= {
        "name": "@name",
        "namespace": namespace_of(app),
        "uid": "uid-@name",
        "resourceVersion": "1",
    }
    del made["metadata"]["generateName"]
    made["spec"] |= {"schedulerName": "default-scheduler", "nodeName": "@node"}
    made["status"] = {"phase": "Pending"}
    return made


_CPU: Mapping[str, str] = {"preempting": "3", "fits-nowhere": "64", "filling": "3100m"}


def _required(kind: str, label: dict[str, str]) -> dict[str, Any]:
    """Return the fields of a pod's spec that its kind has beside others."""
    affinity = {
        "node-affinity": objects.node_affinity(key=ZONE, values=["zone-1", "zone-2"]),
        "zone-affinity": objects.pod_affinity(label, topology=ZONE),
        "preferred-affinity": objects.pod_affinity(label, topology=ZONE, preferred=True),
        "host-anti-affinity": objects.pod_affinity(label, topology=HOSTNAME, anti=True),
    }.get(kind)
    if affinity is not None:
        return {"affinity": affinity}
    if kind in ("hard-spread", "soft-spread"):
        return {"topologySpreadConstraints": [objects.spread(label, hard=kind == "hard-spread")]}
    return dict(_PREEMPTING) if kind == "preempting" else {}


_PREEMPTING: Mapping[str, Any] = {
    "priority": 100,
    "nodeSelector": {POOL: "full"},
    "tolerations": [{"key": POOL, "operator": "Exists"}],
}


class FillingText(PodText):
    """The JSON of pods that fill a node, and may be preempted."""

    def __init__(self) -> None:
        self.kind = "filling"
        self._text = _encode(_pod(0, 0, "filling"))


# --- all of them ---------------------------------------------------------------------------------


class Contents:
    """All objects that are there at the beginning, by kind, as JSON."""

    def __init__(self, *, nodes: int, pods: int, apps: int) -> None:
        self._nodes = nodes
        self._pods = pods
        self._apps = apps

    def of(self, kind: str) -> Iterator[bytes]:
        """Yield the objects of a kind."""
        match kind:
            case "Node":
                for number in range(self._nodes):
                    yield _encode(
                        node(number, name=node_name(number), is_full=not number % FULL_EVERY)
                    )
            case "CSINode":
                yield from (csi_node(node_name(number)) for number in range(self._nodes))
            case "Namespace":
                for number in range(NAMESPACES):
                    name = f"team-{number}"
                    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
                    yield _encode({"metadata": meta})
            case "Service":
                yield from (_service(app) for app in range(self._apps))
            case "Pod":
                yield from self._placed_pods()

    def _placed_pods(self) -> Iterator[bytes]:
        texts = [PodText(app) for app in range(self._apps)]
        filling = FillingText()
        for number in range(self._pods):
            host = number % self._nodes
            app = number // self._nodes * 389 + host
            text = texts[app % self._apps]
            if text.kind in ("preempting", "fits-nowhere"):
                text = texts[(app + 1) % self._apps]
            if not host % FULL_EVERY:
                text = filling
            yield text.pod(number, name=f"there-{number}", node_name=node_name(host))


def node_name(number: int) -> str:
    """Return the name of a node that is there at the beginning."""
    return f"node-{number}"


def _service(app: int) -> bytes:
    meta = {
        "name": f"app-{app}",
        "namespace": namespace_of(app),
        "uid": f"service-{app}",
        "resourceVersion": "1",
    }
    return _encode({"metadata": meta, "spec": {"selector": {"app": f"app-{app}"}}})
