"""Nodes with devices on a real API server, and pods that claim them, for tests.

cluster = DeviceCluster(plane, namespace, nodes=2)
cluster.publish("n0", [{"name": "a"}, {"name": "b"}])
cluster.claim("c", request("r", count=2)); cluster.pod("p", "c")
"""

from __future__ import annotations

from typing import Any

from tests.support.waiting import until

from .claim_controller import DEVICES, all_claims, claims_path
from .control_plane import MERGE_PATCH, ControlPlane
from .scheduler_process import condition_of, node, pod, pods_path

Json = dict[str, Any]

DRIVER = "gpu.example.com"
CLASS = "gpu"


def request(name: str = "r", of: str = CLASS, **fields: Any) -> Json:
    """One request of a claim."""
    return {"name": name, "exactly": {"deviceClassName": of, **fields}}


def selecting(*expressions: str) -> list[Json]:
    """Selectors of a request or a class."""
    return [{"cel": {"expression": each}} for each in expressions]


class DeviceCluster:
    """Nodes n0, n1, …, a class for all devices of the driver, and objects of one namespace."""

    def __init__(self, plane: ControlPlane, namespace: str, *, nodes: int = 1) -> None:
        self.plane = plane
        self.namespace = namespace
        self.nodes = [f"n{number}" for number in range(nodes)]
        plane.create_many("/api/v1/nodes", [node(name) for name in self.nodes])
        self.device_class(CLASS)

    def device_class(self, name: str, driver: str = DRIVER, **spec: Any) -> None:
        """A class for the devices of a driver."""
        selectors = selecting(f'device.driver == "{driver}"')
        body = {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}
        self.plane.request("POST", f"{DEVICES}/deviceclasses", body)

    def publish(
        self, name: str, devices: list[Json], *, driver: str = DRIVER, pool: str = "", **spec: Any
    ) -> None:
        """Publish a slice, by default all devices of the node of that name; again, if it exists."""
        path = f"{DEVICES}/resourceslices"
        count = spec.pop("count", 1)
        if not spec:
            spec = {"nodeName": name}
        of = {"name": pool or name, "generation": 1, "resourceSliceCount": count}
        body: Json = {
            "metadata": {"name": name},
            "spec": {"driver": driver, "pool": of, **spec, "devices": devices},
        }
        found = {
            each["metadata"]["name"]: each for each in self.plane.request("GET", path)["items"]
        }
        if name not in found:
            self.plane.request("POST", path, body)
            return
        body["metadata"]["resourceVersion"] = found[name]["metadata"]["resourceVersion"]
        of["generation"] = found[name]["spec"]["pool"]["generation"] + 1
        self.plane.request("PUT", f"{path}/{name}", body)

    def withdraw(self, name: str) -> None:
        """Delete a slice."""
        self.plane.request("DELETE", f"{DEVICES}/resourceslices/{name}")

    def template(self, name: str, *requests: Json) -> None:
        """A template of claims."""
        path = f"{DEVICES}/namespaces/{self.namespace}/resourceclaimtemplates"
        spec = {"spec": {"devices": {"requests": list(requests)}}}
        self.plane.request("POST", path, {"metadata": {"name": name}, "spec": spec})

    def claim(self, name: str, *requests: Json, **devices: Any) -> None:
        """A claim; without requests, to one device."""
        spec = {"devices": {"requests": list(requests) or [request()], **devices}}
        body = {"metadata": {"name": name}, "spec": spec}
        self.plane.request("POST", claims_path(self.namespace), body)

    def pod(self, name: str, *claims: str, **more: Any) -> None:
        """A pod with these claims; of its own name, if none is named."""
        named = [{"name": each, "resourceClaimName": each} for each in claims or (name,)]
        body = pod(name, resourceClaims=named, **more)
        self.plane.request("POST", pods_path(self.namespace), body)

    def claiming_pod(self, name: str, *requests: Json, **devices: Any) -> None:
        """A pod, and a claim of the same name."""
        self.claim(name, *requests, **devices)
        self.pod(name)

    def status(self, claim: str) -> Json:
        """The status of a claim."""
        path = claims_path(self.namespace, claim)
        found: Json = self.plane.request("GET", path).get("status", {})
        return found

    def devices_of(self, claim: str) -> list[str]:
        """The names of the devices that a claim has."""
        allocation = self.status(claim).get("allocation") or {"devices": {}}
        return [each["device"] for each in allocation["devices"].get("results", ())]

    def wait_for_devices(self, claim: str, *devices: str, seconds: float = 30) -> None:
        """Wait until a claim has these devices."""
        until(lambda: self.devices_of(claim) == list(devices), seconds=seconds)

    def all_devices(self) -> list[tuple[str, str]]:
        """Pool and name of each device of each claim."""
        return [
            (each["pool"], each["device"])
            for claim in all_claims(self.plane, self.namespace)
            for each in (claim.get("status", {}).get("allocation") or {"devices": {}})[
                "devices"
            ].get("results", ())
        ]

    def report(self, claim: str, pool: str, device: str, condition: str) -> None:
        """Write a condition of a device, as its driver would."""
        stated = {
            "type": condition,
            "status": "True",
            "reason": "Testing",
            "message": "said by the test",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        entry = {"driver": DRIVER, "pool": pool, "device": device, "conditions": [stated]}
        self.plane.request(
            "PATCH",
            f"{claims_path(self.namespace, claim)}/status",
            {"status": {"devices": [entry]}},
            content_type=MERGE_PATCH,
        )

    def wait_until_told(self, name: str, text: str, *, seconds: float = 30) -> str:
        """Wait until a pod's condition has a text; return all of it."""

        def told() -> str | None:
            found = condition_of(self.plane, self.namespace, name) or {}
            message: str = found.get("message", "")
            return message if text in message else None

        return until(told, seconds=seconds)
