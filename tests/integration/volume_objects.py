"""Storage objects as an API server takes them."""

from __future__ import annotations

from kubesched.api import names
from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject
from .scheduler_process import node, pod

DRIVER = "disk.example.com"


def zoned(name: str, zone: str, **room: str) -> JsonObject:
    return node(name, labels={names.LABEL_ZONE: zone}, allocatable=room)


def create_class(
    plane: ControlPlane, name: str, *, provisioner: str = DRIVER, zones: tuple[str, ...] = ()
) -> None:
    topologies = [{"matchLabelExpressions": [{"key": names.LABEL_ZONE, "values": list(zones)}]}]
    body: JsonObject = {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    if zones:
        body["allowedTopologies"] = topologies
    plane.request("POST", "/apis/storage.k8s.io/v1/storageclasses", body)


def claims_path(namespace: str, name: str = "") -> str:
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    return f"{path}/{name}" if name else path


def claim(name: str, storage_class: str, size: str = "1Gi") -> JsonObject:
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
        },
    }


def local_volume(name: str, storage_class: str, host: str, size: str = "1Gi") -> JsonObject:
    expression = {"key": names.LABEL_HOSTNAME, "operator": "In", "values": [host]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "local": {"path": "/mnt"},
            "nodeAffinity": {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            },
        },
    }


def pod_with(name: str, *claims: str, requests: dict[str, str] | None = None) -> JsonObject:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return pod(name, requests=requests, volumes=volumes)


def create_volumes(plane: ControlPlane, *volumes: JsonObject) -> None:
    plane.create_many("/api/v1/persistentvolumes", volumes)
    wanted = {each["metadata"]["name"] for each in volumes}

    def available() -> bool:
        # A pod that waits for a volume may have it by the time that we look.
        found = plane.request("GET", "/api/v1/persistentvolumes")["items"]
        phases = {each["metadata"]["name"]: each["status"].get("phase") for each in found}
        return all(phases[name] in ("Available", "Bound") for name in wanted)

    until(available)
