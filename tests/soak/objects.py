"""Nodes, pods and what belongs to them; none is like another."""

from __future__ import annotations

import random
import time
from typing import Any

JsonObject = dict[str, Any]
Labels = dict[str, str]

NAMESPACE = "default"
NODES = "/api/v1/nodes"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
VOLUMES = "/api/v1/persistentvolumes"
VOLUME_CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
REPLICA_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
GROUPS = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{NAMESPACE}/podgroups"
DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
DEVICE_CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"

DRIVER = "gpu.example.com"
SLOT = "example.com/slot"
ARENA = "soak/arena"
URGENT = "urgent"
_ZONES = 3
_DEVICES = 2


def ready() -> JsonObject:
    """The condition that a kubelet reports."""
    beat = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": beat}


def node(name: str, number: int, *, arena: str = "") -> JsonObject:
    """A node with labels and images of its own; in an arena, for pods that tolerate it only."""
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"} | ({SLOT: "2"} if arena else {})
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{number % _ZONES}",
        "example.com/serial": f"serial-{name}",
        f"example.com/batch-{number // 20}": "true",
    }
    images = [{"names": [f"registry.invalid/of-{name}:1"], "sizeBytes": 50_000_000 + number}]
    taints = [{"key": ARENA, "value": arena, "effect": "NoSchedule"}] if arena else []
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {
            "allocatable": room,
            "capacity": room,
            "images": images,
            "conditions": [ready()],
        },
    }


def resource_slice(node_name: str) -> JsonObject:
    """The devices of a node."""
    devices = [
        {"name": f"gpu-{n}", "attributes": {"uuid": {"string": f"{node_name}-{n}"}}}
        for n in range(_DEVICES)
    ]
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node_name, "devices": devices}
    return {"metadata": {"name": f"slice-{node_name}"}, "spec": spec}


def pod(name: str, rng: random.Random, labels: Labels, **spec: Any) -> JsonObject:
    """A pod of a size that no other pod has."""
    requests = {"cpu": f"{rng.randint(20, 250)}m", "memory": str(rng.randint(1 << 24, 1 << 28))}
    resources = {"requests": requests | spec.pop("requests", {}), "limits": spec.pop("limits", {})}
    container = {"name": "c", "image": f"registry.invalid/{name}:1", "resources": resources}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def spread(labels: Labels, *, must: bool) -> JsonObject:
    """Pods with these labels are to be spread over zones."""
    return {
        "maxSkew": 5,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule" if must else "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }


def apart(labels: Labels, *, must: bool) -> JsonObject:
    """Pods with these labels are to be on different nodes."""
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    if must:
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    preferred = [{"weight": 10, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def replica_set(name: str, labels: Labels) -> JsonObject:
    """A ReplicaSet; no controller creates its pods."""
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "registry.invalid/c"}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def service(name: str, labels: Labels) -> JsonObject:
    """A service without an address of its own."""
    return {"metadata": {"name": name}, "spec": {"clusterIP": "None", "selector": labels}}


def budget(name: str, labels: Labels) -> JsonObject:
    """A disruption budget."""
    return {
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }


def gang(name: str, size: int) -> JsonObject:
    """A group whose pods are scheduled together or not at all."""
    return {
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    }


def device_claim(name: str, count: int) -> JsonObject:
    """A claim of some devices."""
    exactly = {"deviceClassName": "gpu", "count": count}
    return {
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }


def volume(name: str, claim: str) -> JsonObject:
    """A volume that is bound to a claim."""
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": claim},
            "csi": {"driver": "disk.example.com", "volumeHandle": name},
            "storageClassName": "",
        },
    }


def volume_claim(name: str, volume_name: str) -> JsonObject:
    """A claim that is bound to a volume."""
    return {
        "metadata": {
            "name": name,
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "volumeName": volume_name,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
